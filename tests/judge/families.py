"""All families of random problems, by name, and the fixed schemes of seeds."""

import zlib

import numpy as np

from judge.fits import FITS
from judge.functions import FUNCTIONS
from judge.problem import Problem
from judge.structured import OBJECTIVES

FAMILIES = {**FUNCTIONS, **FITS, **OBJECTIVES}


def problem_of(family: str, seed: int) -> Problem:
    """Return the problem of a family and a seed; families with one seed have other numbers."""
    return FAMILIES[family](np.random.default_rng([zlib.crc32(family.encode()), seed]))
