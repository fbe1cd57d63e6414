"""Auto: fractional descent with nothing to choose.

The adaptive terminal is heavy ball whose momentum is weighted by curvature. In coordinates scaled
by that curvature the direction is P^-1 g + gamma (x - c), and the best eta and gamma of every step
follow from a problem as small as the number of terminals.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from cfgd import span
from cfgd.iteration import Info, Iteration
from cfgd.objective.base import Objective, Point, inner
from cfgd.objective.design import Dense
from cfgd.objective.least_squares import LeastSquares
from cfgd.objective.quadratic import Quadratic

# operations that may be spent on finding out whether a system is singular: some milliseconds
AFFORDABLE = 10**8


class QuadraticState(eqx.Module):
    """`p` is the last direction and `product` its <g, P^-1 g>: what conjugacy needs."""

    k: Any
    point: Point
    p: Any
    product: Any
    eta: Any
    gamma: Any


class Auto(Iteration):
    """No parameters to choose.

    On quadratics and least squares: the terminal is the previous point, coordinates are scaled by
    D = diag(A), and eta_k and gamma_k are the best of the plane of D^-1 g and x - c, in the
    residual form of conjugate gradients: the gamma_k that makes successive directions conjugate is
    the best one. A singular system converges to the solution nearest to x0 in the norm of D.

    On other objectives: the span of P^-1 g and of x - c for the last few points c. P is the
    curvature diagonal: Gauss-Newton's where the objective has one, else a first diagonal (of |H| up
    to dimension 32, hutchinson beyond) kept up to date by the gradients seen. The quadratic model
    on the span follows from the last gradients and takes no Hessian-vector product: an iteration
    costs one gradient, and another where the step has to be shortened. Negative curvature is
    walked along by its size, directions that have become dependent are dropped, the model is
    damped after a step that was too long, and a search makes every step a decrease.

    It is for deterministic objectives: with a minibatch another function is seen at every step
    and neither the model nor the search means anything.

    >>> import cfgd
    >>> f = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    >>> print(cfgd.minimize(f, [-1.2, 1.0]).x.round(6))
    [1. 1.]
    """

    def view(self, objective: Objective) -> Objective:
        if isinstance(objective, LeastSquares) and objective.gram is not None:
            # products with X'X would cost the digits that the residual form keeps
            return eqx.tree_at(lambda f: f.gram, objective, None)
        return objective

    def describe(self, objective: Objective) -> str:
        if objective.is_quadratic:
            words = "Auto: best eta and gamma of every step, coordinates scaled by diag(A)"
            return words + (NEAREST if _deficient(objective) else "")
        return f"Auto: {span.describe(objective)}"

    def measure(self, objective: Objective, state: Any) -> Any:
        return inner(state.point.gradient, state.point.gradient)

    def start(self, objective: Objective, x0: Any) -> Any:
        if not objective.is_quadratic:
            return span.start(objective, x0)
        none = jnp.full((), jnp.nan, x0.dtype)
        return QuadraticState(
            k=jnp.zeros((), jnp.int32),
            point=objective.at(x0),
            p=jnp.zeros_like(x0),
            product=jnp.ones((), x0.dtype),
            eta=none,
            gamma=none,
        )

    def forget(self, state: Any) -> Any:
        if isinstance(state, span.SpanState):
            return state
        # the share of the last direction is then zero
        return dataclasses.replace(state, product=jnp.full_like(state.product, jnp.inf))

    def start_cost(self, objective: Objective, d: int) -> float:
        return 1.0 if objective.is_quadratic else span.start_cost(objective, d)

    def step(self, objective: Objective, state: Any, floor: Any = 0.0) -> tuple[Any, Info]:
        take = _conjugate_step if objective.is_quadratic else span.step
        return take(objective, state, floor)


NEAREST = "; the system is singular and x the solution nearest to x0 in the norm of diag(A)"


def _deficient(objective: Objective) -> bool:
    """Whether there is more than one minimiser, where that costs little to see."""
    if isinstance(objective, LeastSquares):
        m, d = objective.X.shape
        if float(objective.l2) > 0 or m < d:
            return float(objective.l2) == 0
        if not isinstance(objective.X, Dense) or m * d * d > AFFORDABLE:
            return False
        A = np.asarray(objective.X.gram(objective.sample_weight, objective.l2))
    elif isinstance(objective, Quadratic) and objective.dimension**3 <= AFFORDABLE:
        A = np.asarray(objective.A)
    else:
        return False
    root = np.sqrt(np.diag(A))
    if not root.all():
        return True
    eigenvalues = np.linalg.eigvalsh(A / np.outer(root, root))
    return bool(eigenvalues[0] <= len(A) * np.finfo(A.dtype).eps * eigenvalues[-1])


def _conjugate_step(
    objective: Objective, state: QuadraticState, floor: Any
) -> tuple[QuadraticState, Info]:
    """The best eta and gamma on the plane: the directions are conjugate, so both are ratios."""
    point, g = state.point, state.point.gradient
    D = objective.diagonal_at(point)
    z = g / jnp.where(D > 0, D, 1)
    norm2, product = jnp.stack([g, z]) @ g
    share = jnp.where(state.k > 0, product / state.product, 0)
    p = z + share * state.p
    slope = inner(g, p)
    # rounding has spoilt conjugacy: start over from the scaled gradient
    reset = ~(slope > 0)
    p, slope = jnp.where(reset, z, p), jnp.where(reset, product, slope)
    image = objective.image(point, p)
    curvature = objective.curvature_along(point, p, image)
    moves = norm2 > floor
    eta = jnp.where(moves & (curvature > 0), slope / curvature, 0)
    new = QuadraticState(
        k=state.k + moves,
        point=objective.move(point, p, image, eta, slope),
        p=p,
        product=product,
        eta=jnp.where(moves, eta, state.eta),
        # x - c is -eta p of the step before
        gamma=jnp.where(moves, jnp.where(state.k > 0, -share / state.eta, 0), state.gamma),
    )
    indefinite = moves & (curvature < 0)
    stuck = moves & (eta == 0)
    return new, Info(norm2, reset & moves, 1.0, indefinite, stuck, new.eta, new.gamma)
