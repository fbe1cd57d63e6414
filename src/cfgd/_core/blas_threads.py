"""One thread for BLAS where its threads would compete with those of compiled programs.

The threads of OpenBLAS wait actively for some time after a product of a matrix and a vector. Where
such products alternate with compiled JAX functions, both then compete for the cores: on two cores
an iteration on a network of 921 weights takes 1.5 times as long. `threadpoolctl`, which
scikit-learn brings along, can change that; without it nothing is changed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import math
from contextlib import AbstractContextManager
from typing import Any


@functools.cache
def _controller() -> Any:
    """Return the controller of the libraries that are loaded now, or None."""
    if importlib.util.find_spec("threadpoolctl") is None:
        return None
    return importlib.import_module("threadpoolctl").ThreadpoolController()


# Rows of a square matrix up to which its products with vectors have one thread in any case.
# OpenBLAS takes more beyond 9,216 entries (its file interface/gemv.c), and setting their number
# takes as long as a small step.
FEW_ROWS = 64


def one_blas_thread(rows: float = math.inf) -> AbstractContextManager[Any]:
    """Return a context in which BLAS has one thread; the old number is restored at its end.

    It is for products of vectors with square matrices of so many rows, if that is given.
    """
    controller = None if rows <= FEW_ROWS else _controller()
    if controller is None:
        return contextlib.nullcontext()
    return controller.limit(limits=1, user_api="blas")
