"""Solve symmetric positive definite systems by products, inside compiled programs.

Reference: Nocedal and Wright, algorithm 5.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from cfgd._core.types import Count, Flag, Scalar, Vector

# Power of the rounding unit to which the residual falls: errors are then beyond six digits up to a
# condition number of 10^5, and rounding does not prevent it.
RESIDUAL = 0.75
# If the final residual is above the rounding unit to this power, the system could not be solved.
UNSOLVED = 0.5
# Curvature in rounding units of the largest one, below which a matrix is singular to rounding.
SINGULAR_UNITS = 64.0
# A negative curvature is no rounding error if its size is above the rounding unit to this power,
# relative to the largest curvature.
NEGATIVE = 0.5
# Iterations for each unknown: without rounding errors one would be enough.
ITERATIONS = 10


class SolvedByProducts(NamedTuple):
    """A solution, whether the matrix is positive definite, and whether it has a negative curvature.

    A singular matrix is neither. Both are known only along the directions of the iterations.
    """

    solution: Vector
    is_definite: Flag
    is_indefinite: Flag


class _State(NamedTuple):
    x: Vector
    residual: Vector
    direction: Vector
    norm2: Scalar  # of the residual
    largest: Scalar  # curvature so far
    is_definite: Flag
    is_indefinite: Flag
    iteration: Count


def solve_by_products(times: Callable[[Vector], Vector], b: Vector) -> SolvedByProducts:
    """Solve A x = b, where `times` is the product with A, from x = 0."""
    eps = float(jnp.finfo(b.dtype).eps)
    # numbers near one, whatever the unit of b: squares do not underflow
    size = jnp.max(abs(b))
    size = jnp.where(size == 0, 1, size)
    r = b / size
    first = _State(
        x=jnp.zeros_like(b),
        residual=r,
        direction=r,
        norm2=r @ r,
        largest=jnp.zeros((), b.dtype),
        is_definite=jnp.isfinite(r).all(),
        is_indefinite=jnp.bool_(False),
        iteration=jnp.int32(0),
    )
    goal = eps ** (2 * RESIDUAL) * first.norm2

    def continues(state: _State) -> Flag:
        is_early = state.iteration < ITERATIONS * b.size
        return (state.norm2 > goal) & state.is_definite & is_early

    def step(state: _State) -> _State:
        p = state.direction
        product = times(p)
        length2 = p @ p
        curvature = (p @ product) / length2
        largest = jnp.maximum(state.largest, abs(curvature))
        is_definite = curvature > SINGULAR_UNITS * eps * largest
        t = state.norm2 / (length2 * jnp.where(is_definite, curvature, 1))
        r = state.residual - t * product
        norm2 = r @ r
        return _State(
            x=state.x + t * p,
            residual=r,
            direction=r + norm2 / state.norm2 * p,
            norm2=norm2,
            largest=largest,
            is_definite=is_definite,
            is_indefinite=curvature < -(eps**NEGATIVE) * largest,
            iteration=state.iteration + 1,
        )

    end = lax.while_loop(continues, step, first)
    is_solved = end.norm2 <= eps ** (2 * UNSOLVED) * first.norm2
    return SolvedByProducts(size * end.x, end.is_definite & is_solved, end.is_indefinite)
