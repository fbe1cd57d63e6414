"""Choose a compiled solver for one problem and run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from cfgd._core.box import Box
from cfgd._core.types import Column, Count, Flag, Number, Scalar, Vector
from cfgd.methods.compiled import lbfgs, levenberg_marquardt as lm
from cfgd.methods.compiled.face import face_gradient, is_regular
from cfgd.methods.compiled.problem import least_squares, smooth

# Unknowns up to which the Hessian is computed and factored. On a logistic regression, a chain of
# Rosenbrock's valleys and a badly scaled quartic, damped Newton steps take 1/6 to 3/4 of the CPU
# time of L-BFGS with 50 unknowns, 1/3 to 3 times as much with 100, and 2/3 to 9 times with 200.
MOST_DENSE = 100


class Found(NamedTuple):
    """Where a run ended; `status` is a code of `Status`.

    `is_regular` says whether the Hessian of the free coordinates is positive definite beyond
    rounding, so that the solution has derivatives.
    """

    z: Vector
    gradient_norm: Scalar  # of the free coordinates
    status: Count
    iterations: Count
    is_regular: Flag


def minimise(
    fn: Callable[[Vector], Scalar],
    residuals: Callable[[Vector], Column] | None,
    bounds: Box | None,
    z: Vector,
    tolerance: Number,
    max_iterations: Count | int,
) -> Found:
    """Minimise fn, which is |r|^2 / 2 where there are residuals r."""
    if z.size > MOST_DENSE:
        state, regular, _ = lbfgs.solve(fn, bounds, z, tolerance, max_iterations)
        return _found(state.z, state.gradient, state.status, state.iteration, regular, bounds)
    problem = smooth(fn, bounds) if residuals is None else least_squares(residuals, bounds)
    end = lm.solve(problem, z, tolerance, max_iterations)
    regular = is_regular(jax.jacfwd(face_gradient(fn, bounds))(end.z))
    return _found(end.z, end.model.gradient, end.status, end.iteration, regular, bounds)


def _found(
    z: Vector, g: Vector, status: Count, iterations: Count, regular: Flag, bounds: Box | None
) -> Found:
    free = g if bounds is None else bounds.free_gradient(z, g)
    return Found(z, jnp.sqrt(free @ free), status, iterations, regular)
