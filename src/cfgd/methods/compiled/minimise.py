"""Choose a compiled solver for one problem and run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from cfgd._core.box import Box
from cfgd._core.types import Column, Count, Flag, Matrix, Number, Scalar, Vector
from cfgd.methods.compiled import lbfgs, levenberg_marquardt as lm
from cfgd.methods.compiled.face import face_gradient, is_regular
from cfgd.methods.compiled.linear_systems import MOST_ELIMINATED

# Unknowns up to which the Hessian is computed and factored. Of a logistic regression, a chain of
# Rosenbrock's valleys and a badly scaled quartic, damped Newton steps take 1/6 to 3/4 of the CPU time
# of L-BFGS with 50 unknowns, 1/3 to 3 times as much with 100, and 2/3 to 9 times with 200.
MOST_DENSE = 100


class Found(NamedTuple):
    """Where a run ended; `status` is a code of `Status`.

    `is_regular` says whether the Hessian of the free coordinates is positive definite beyond
    rounding, so that the solution has derivatives.
    """

    z: Vector
    value: Scalar
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
    max_iterations: Number,
) -> Found:
    """Minimise fn, which is |r|^2 / 2 where there are residuals r."""
    if z.size > MOST_DENSE:
        state, regular = lbfgs.solve(fn, bounds, z, tolerance, max_iterations)
        value, g = state.value, state.gradient
    else:
        problem = _problem(fn, residuals, bounds, z.size)
        state = lm.solve(problem, z, tolerance, max_iterations)
        value, g = state.model.value, state.model.gradient
        regular = is_regular(jax.jacfwd(face_gradient(fn, bounds))(state.z))
    free = g if bounds is None else bounds.free_gradient(state.z, g)
    norm = jnp.sqrt(free @ free)
    return Found(state.z, value, norm, state.status, state.iteration, regular)


def _problem(
    fn: Callable[[Vector], Scalar],
    residuals: Callable[[Vector], Column] | None,
    bounds: Box | None,
    size: int,
) -> lm.Problem:
    if residuals is None:
        return lm.smooth(fn, bounds)
    if size <= MOST_ELIMINATED:
        return lm.least_squares(residuals, bounds)
    return _least_squares_by_products(fn, residuals, bounds)


def _least_squares_by_products(
    fn: Callable[[Vector], Scalar], residuals: Callable[[Vector], Column], bounds: Box | None
) -> lm.Problem:
    """Return the problem of `least_squares` with products of matrices.

    `least_squares` has code for each pair of unknowns: with 20 of them it compiles for twice as
    long.
    """

    def model(z: Vector) -> lm.Model:
        r, along = jax.linearize(residuals, z)
        J = jax.vmap(along)(jnp.eye(z.size, dtype=z.dtype))
        return lm.Model(r @ r / 2, J @ r, J @ J.T)

    def hessian(z: Vector) -> Matrix:
        return jax.jacfwd(jax.grad(fn))(z)

    return lm.Problem(model, hessian, bounds)
