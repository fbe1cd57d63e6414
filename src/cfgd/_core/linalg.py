"""Array namespaces, norms and the LAPACK routines that the solvers call.

Formulas of objectives run on NumPy arrays in Auto's solvers and on JAX arrays in the paper's
methods: `array_namespace` returns the module whose functions take the array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import blas, lapack

from cfgd._core.namespace import (
    array_namespace as array_namespace,
    is_numpy as is_numpy,
    logistic as logistic,
)
from cfgd._core.types import Column, DType, Scalar, Vector

# Columns that LAPACK reflects at once: its own block size, with which `lwork` is optimal.
QR_BLOCK = 64


def map_rows(fn: Callable[[Any], Any], rows: Any) -> Any:
    """Apply `fn` to every row: in a loop for NumPy, as one batch for JAX."""
    return np.array([fn(row) for row in rows]) if is_numpy(rows) else jax.vmap(fn)(rows)


def inner(a: Column, b: Column) -> Scalar:
    """Return the inner product <a, b>."""
    # the method `dot` of a NumPy array does not dispatch to JAX
    return a.dot(b) if type(b) is np.ndarray else jnp.dot(a, b)


@functools.cache
def _eps(dtype: DType) -> np.floating:
    return np.finfo(dtype).eps


def eps_of(x: Scalar | Vector) -> np.floating:
    """Return the rounding unit of the precision of `x`."""
    return _eps(x.dtype)


def weighted_norm(v: Column, weight: Column) -> Scalar:
    """Return sqrt(sum_j weight_j v_j^2)."""
    return array_namespace(v).sqrt(inner(weight * v, v))


def clip_positive(diagonal: Column, relative: float = 1e-8) -> Vector:
    """Return |diagonal|, entries below `relative` times the largest one raised to that.

    Return ones where the largest entry is zero or not finite.
    """
    xp = array_namespace(diagonal)
    sizes = xp.abs(diagonal)
    largest = sizes.max()
    usable = (largest > 0) & (largest < np.inf)
    return xp.where(usable, xp.maximum(sizes, relative * largest), xp.ones_like(sizes))


# ------------------------------------------------------------------ LAPACK, on NumPy arrays


def add_to_diagonal(A: np.ndarray, number: float) -> np.ndarray:
    """Return A + number * I."""
    sum_ = A.copy()
    sum_.flat[:: len(A) + 1] += number
    return sum_


def cholesky_solver(A: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Factorise a symmetric positive definite A and return b -> A^-1 b.

    The solver returns NaN where A is not positive definite.
    """
    triangle, failed = routine(A, "potrf")(A, lower=1, clean=0)
    if failed:
        return lambda b: np.full_like(b, np.nan)
    return lambda b: routine(A, "potrs")(triangle, b, lower=1)[0]


def solve_upper(R: np.ndarray, b: np.ndarray, transposed: bool = False) -> np.ndarray:
    """Return R^-1 b, or R'^-1 b if `transposed`, for an upper triangular R."""
    return routine(R, "trtrs")(R, b, trans=int(transposed))[0]


def qr_reflections(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the QR factorisation of A in LAPACK's form (R above, reflectors below), and tau."""
    found = routine(A, "geqrf")(A, lwork=QR_BLOCK * A.shape[1], overwrite_a=1)
    return found[0], found[1]


def qr_basis(reflections: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Return the columns of Q from the output of `qr_reflections`."""
    return routine(tau, "orgqr")(reflections, tau, lwork=QR_BLOCK * len(tau))[0]


def triangular_factor(A: np.ndarray) -> np.ndarray:
    """Return R of the QR factorisation of A; A, in columns, is overwritten if it is float64.

    It is computed in float64, as `numpy.linalg.qr` does, which takes three times as long for a
    small matrix.
    """
    rows = min(A.shape)
    found, _ = qr_reflections(A.astype(np.float64, copy=False))
    R = np.where(_is_above(rows, A.shape[1]), found[:rows], 0)
    return R.astype(A.dtype, order="C", copy=False)


@functools.cache
def _is_above(rows: int, columns: int) -> np.ndarray:
    """Return whether an entry is on or above the diagonal."""
    return np.tri(rows, columns, -1) == 0


def singular_values(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return U, s and V' with A = U diag(s) V', as `numpy.linalg.svd` does in twice the time.

    Raises
    ------
    LinAlgError
        If the computation does not converge.
    """
    U, s, Vt, failed = lapack.dgesdd(A)
    if failed:
        raise np.linalg.LinAlgError("SVD did not converge")
    # by rows: the order of the entries decides how products with them are rounded
    U, Vt = np.ascontiguousarray(U), np.ascontiguousarray(Vt)
    if A.dtype == s.dtype:
        return U, s, Vt
    return tuple(part.astype(A.dtype, copy=False) for part in (U, s, Vt))  # type: ignore[return-value]


def symmetric_eigen(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ascending eigenvalues and eigenvectors of A; NaN where A is not finite."""
    if not np.all(np.isfinite(A)):
        return np.full_like(A[0], np.nan), np.full_like(A, np.nan)
    values, vectors = np.linalg.eigh(A)
    return values, vectors


def routine(A: np.ndarray, name: str) -> Any:
    """Return the routine of BLAS or LAPACK for the precision of A, float32 or float64."""
    return _ROUTINES[A.dtype.char, name]


_ROUTINES = {
    (char, name): getattr(lapack, letter + name)
    for char, letter in (("f", "s"), ("d", "d"))
    for name in ("trtrs", "potrf", "potrs", "geqrf", "orgqr")
} | {
    (char, name): getattr(blas, letter + name)
    for char, letter in (("f", "s"), ("d", "d"))
    for name in ("symv", "syr", "syr2")
}
