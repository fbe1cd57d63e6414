"""Solve small symmetric positive definite systems inside compiled batches."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve

from cfgd._core.types import Column, Flag, Rows

# Unknowns up to which Gauss-Jordan elimination is taken. In a batch it is a loop of elementwise
# operations over all systems at once, while LAPACK is called for each system: measured in batches
# of 1024 systems, elimination takes a quarter of the time for 3 unknowns and the same for 12.
MOST_ELIMINATED = 12


class Solved(NamedTuple):
    """The solution of a system, and whether its matrix is positive definite."""

    solution: Column
    is_definite: Flag


def solve_definite(A: Rows, B: Rows) -> Solved:
    """Solve A X = B for a symmetric positive definite A; the solution is arbitrary for others."""
    if len(A) > MOST_ELIMINATED:
        L = jnp.linalg.cholesky(A)
        return Solved(cho_solve((L, True), B), jnp.isfinite(L).all())
    return _eliminate(A, B)


def _eliminate(A: Rows, B: Rows) -> Solved:
    """Reduce [A B] to [I X] without exchanging rows, as is stable for positive definite A."""
    n = len(A)
    rows = jnp.arange(n)[:, None]

    def eliminate(k: int, state: tuple[Rows, Flag]) -> tuple[Rows, Flag]:
        M, is_definite = state
        pivot = M[k, k]
        row = M[k] / jnp.where(pivot > 0, pivot, 1)
        return jnp.where(rows == k, row, M - M[:, k, None] * row), is_definite & (pivot > 0)

    M, is_definite = lax.fori_loop(0, n, eliminate, (jnp.concatenate([A, B], 1), jnp.bool_(True)))
    return Solved(M[:, n:], is_definite)
