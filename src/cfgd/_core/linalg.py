"""Products of vectors, in the form that costs least inside a loop on a CPU."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from cfgd._core.either import chosen, on_host, space
from cfgd._core.types import Column, Data, DType, Scalar, Vector


def inner(a: Column, b: Column) -> Scalar:
    """<a, b>."""
    here = type(a) is np.ndarray and type(b) is np.ndarray
    return a.dot(b) if here else jnp.dot(a, b)


@functools.cache
def _eps_of(dtype: DType) -> np.floating:
    return np.finfo(dtype).eps


def eps_of(x: Scalar | Vector) -> np.floating:
    """What rounding does to one, in the precision of x; asked for in every step."""
    return _eps_of(x.dtype)


def logistic(u: Data) -> Data:
    """1 / (1 + exp(-u))."""
    return expit(u) if on_host(u) else jax.nn.sigmoid(u)


def size(v: Column, P: Column) -> Scalar:
    """The norm of v, its coordinates weighted by P."""
    return space(v).sqrt(inner(P * v, v))


def positive(D: Column, least: float = 1e-8) -> Vector:
    """|D|, not smaller than a fraction of its largest entry; ones where there is none."""
    xp = space(D)
    sizes = xp.abs(D)
    largest = sizes.max()
    usable = (largest > 0) & (largest < np.inf)
    return chosen(usable, xp.maximum(sizes, least * largest), xp.ones_like(sizes))
