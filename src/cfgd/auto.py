"""Auto: fractional descent with nothing to choose.

The adaptive terminal is heavy ball whose momentum is weighted by curvature. In coordinates scaled
by that curvature the direction is P^-1 g + gamma (x - c), and the best eta and gamma of every step
follow from a problem as small as the number of terminals.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd.iteration import Info, Iteration
from cfgd.objective.base import Objective, Point, inner
from cfgd.objective.least_squares import LeastSquares
from cfgd.objective.local import Local

# terminals x_{k-1}, ..., x_{k-TERMINALS} of an objective that is not quadratic
TERMINALS = 12
# up to this dimension the first scaling is the exact diagonal, beyond it the mean of probes
EXACT_DIMENSION, PROBES = 32, 8
MOST_TRIES = 60


class QuadraticState(eqx.Module):
    """`p` is the last direction and `product` its <g, P^-1 g>: what conjugacy needs."""

    k: Any
    point: Point
    p: Any
    product: Any
    eta: Any
    gamma: Any


class SpanState(eqx.Module):
    """Steps between the last points, latest first, with the changes of the gradient along them."""

    k: Any
    point: Point
    steps: Any
    changes: Any
    scaling: Any
    damping: Any
    eta: Any
    gamma: Any


class Auto(Iteration):
    """No parameters to choose.

    On quadratics and least squares: the terminal is the previous point, coordinates are scaled by
    D = diag(A), and eta_k and gamma_k are the best of the plane of D^-1 g and x - c, in the
    residual form of conjugate gradients (FIELD.md, relation 3). A singular system converges to
    the solution that is nearest to x0 in the norm of D.

    On other objectives: the span of P^-1 g and of x - c for the last few points c. P is the
    curvature diagonal: Gauss-Newton's where the objective has one, else a first diagonal (exact up
    to dimension 32, hutchinson beyond) kept up to date by the gradients seen. The quadratic model
    on the span takes one Hessian-vector product; the rest follows from the last gradients.
    Negative curvature is walked along by its size, directions that have become dependent are
    dropped, the model is damped after a step that was too long, and a search makes every step a
    decrease.

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
            return "Auto: best eta and gamma of every step, coordinates scaled by diag(A)"
        scaled = "Gauss-Newton's" if _has_gauss_newton(objective) else "a secant"
        scaled = "the given" if isinstance(objective, Local) else scaled
        return f"Auto: best of the span of {TERMINALS} terminals, scaled by {scaled} diagonal"

    def measure(self, objective: Objective, state: Any) -> Any:
        return inner(state.point.gradient, state.point.gradient)

    def start(self, objective: Objective, x0: Any) -> Any:
        zero, nothing = jnp.zeros((), jnp.int32), jnp.full((), jnp.nan, x0.dtype)
        point = objective.at(x0)
        if objective.is_quadratic:
            empty = jnp.zeros_like(x0)
            return QuadraticState(zero, point, empty, jnp.ones((), x0.dtype), nothing, nothing)
        past = jnp.zeros((TERMINALS, x0.size), x0.dtype)
        scaling, none = _first(objective, point), jnp.zeros((), x0.dtype)
        return SpanState(zero, point, past, past, scaling, none, nothing, nothing)

    def start_cost(self, objective: Objective, d: int) -> float:
        if objective.is_quadratic or isinstance(objective, Local) or _has_gauss_newton(objective):
            return 1.0
        return 1.0 + (d if d <= EXACT_DIMENSION else PROBES * objective.product_cost)

    def step(self, objective: Objective, state: Any, floor: Any = 0.0) -> tuple[Any, Info]:
        take = _conjugate_step if objective.is_quadratic else _span_step
        return take(objective, state, floor)


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
        k=state.k + 1,
        point=objective.move(point, p, image, eta, slope),
        p=jnp.where(moves, p, state.p),
        product=jnp.where(moves, product, state.product),
        eta=eta,
        # x - c is -eta p of the step before
        gamma=jnp.where(state.k > 0, -share / state.eta, 0),
    )
    indefinite = moves & (curvature < 0)
    stuck = moves & (eta == 0)
    return new, Info(norm2, reset & moves, 1.0, indefinite, stuck)


def _span_step(objective: Objective, state: SpanState, floor: Any) -> tuple[SpanState, Info]:
    point, g = state.point, state.point.gradient
    norm2 = inner(g, g)
    moves = norm2 > floor
    P = _positive(_diagonal(objective, point, state.scaling))
    u = g / P
    p, eta, gamma, alone, largest = _best_of_span(objective, state, P, u)
    slope = inner(g, p)
    # a model that rounding or overflow has spoilt is not followed
    bad = ~(slope > 0) | ~jnp.isfinite(slope)
    p, slope = jnp.where(bad, u, p), jnp.where(bad, inner(g, u), slope)

    image = objective.image(point, p)
    whole = objective.move(point, p, image, jnp.ones((), g.dtype), slope)
    t, tries = _search(objective, point, p, image, slope, whole)
    t = jnp.where(moves, t, 0)
    new = jax.lax.cond(t == 1, lambda: whole, lambda: objective.move(point, p, image, t, slope))
    step, change = new.x - point.x, new.gradient - g
    went = t > 0
    # without a step the past is forgotten: what is left is the scaled gradient
    steps = jnp.where(went, jnp.concatenate([step[None], state.steps[:-1]]), 0)
    changes = jnp.where(went, jnp.concatenate([change[None], state.changes[:-1]]), 0)
    after = SpanState(
        k=state.k + 1,
        point=new,
        steps=jnp.where(moves, steps, state.steps),
        changes=jnp.where(moves, changes, state.changes),
        scaling=_secant_diagonal(state.scaling, step, change, went),
        # a step that had to be shortened shows a model trusted too far
        damping=jnp.where(
            t == 1, state.damping / 4, jnp.maximum(4 * state.damping, 1e-3 * largest)
        ),
        eta=t * eta,
        gamma=gamma,
    )
    cost = 1.0 + objective.product_cost + objective.value_cost * tries
    stuck = moves & ~went & (alone | bad)
    return after, Info(norm2, bad & moves, cost, jnp.zeros((), bool), stuck)


def _best_of_span(objective: Objective, state: SpanState, P: Any, u: Any) -> tuple[Any, ...]:
    """Minimise the quadratic model over P^-1 g and the last steps.

    In the norm of P, directions that depend on others are dropped; curvatures count by size.
    """
    g = state.point.gradient
    Hu = objective.hessian_times(state.point, u)
    basis = jnp.concatenate([u[None], state.steps])
    images = jnp.concatenate([Hu[None], state.changes])
    norms = jnp.sqrt(jnp.sum(basis * P * basis, 1))
    there = norms > 0
    scale = jnp.where(there, 1 / jnp.where(there, norms, 1), 0)
    basis, images = scale[:, None] * basis, scale[:, None] * images

    to_span, kept = _orthonormal((basis * P) @ basis.T)
    model = to_span @ (basis @ images.T) @ to_span.T
    exact = model[:, 0]  # the product is at x; the changes are means along a step
    model = ((model + model.T) / 2).at[0].set(exact).at[:, 0].set(exact)
    model = jnp.where(kept[:, None] & kept, model, jnp.eye(len(model), dtype=model.dtype))
    curvatures, axes = jnp.linalg.eigh(model)
    largest = jnp.max(jnp.abs(curvatures))
    curvatures = jnp.maximum(jnp.abs(curvatures), CURVATURE_TOLERANCE * largest) + state.damping
    slopes = to_span @ (basis @ g)
    best = axes @ ((axes.T @ slopes) / jnp.where(curvatures > 0, curvatures, 1))
    weights = scale * (best @ to_span)
    p = weights[0] * u + weights[1:] @ state.steps
    gamma = jnp.where(weights[0] != 0, weights[1] / weights[0], 0)
    return p, weights[0], gamma, ~jnp.any(there[1:]), largest


def _orthonormal(gram: Any) -> tuple[Any, Any]:
    """Coefficients of an orthonormal basis, by Cholesky in the given order, and which it keeps.

    The order matters: the scaled gradient and the latest steps are the ones to trust.
    """
    n = len(gram)
    L = jnp.zeros_like(gram)
    kept = []
    for j in range(n):
        column = gram[:, j] - L[:, :j] @ L[j, :j]
        kept.append(column[j] > SPAN_TOLERANCE)
        column = jnp.where(kept[j], column / jnp.sqrt(jnp.where(kept[j], column[j], 1)), 0)
        L = L.at[j:, j].set(column[j:])
    keep = jnp.stack(kept)
    L = L + jnp.diag(jnp.where(keep, 0, 1).astype(L.dtype))
    inverse = jax.scipy.linalg.solve_triangular(L, jnp.eye(n, dtype=L.dtype), lower=True)
    return jnp.where(keep[:, None], inverse, 0), keep


# squared part of a unit direction that must be new, and curvatures that count as zero
SPAN_TOLERANCE = 1e-10
CURVATURE_TOLERANCE = 1e-10


def _search(
    objective: Objective, point: Point, p: Any, image: Any, slope: Any, whole: Point
) -> tuple[Any, Any]:
    """The longest t = 1, ... with f(x - t p) <= f(x) - t <g, p> / 10^4, by interpolation.

    Where rounding hides the decrease that the slope promises, not to increase will do.
    """
    value = point.value
    hidden = slope <= jnp.finfo(value.dtype).eps ** 0.6 * jnp.abs(value)

    def too_far(state: Any) -> Any:
        t, seen, tries = state
        enough = (seen <= value - 1e-4 * t * slope) | (hidden & (seen <= value))
        return ~enough & (tries < MOST_TRIES)

    def shorter(state: Any) -> Any:
        t, seen, tries = state
        parabola = slope * t * t / (2 * (seen - value + slope * t))
        inside = jnp.clip(parabola, t / 10, t / 2)
        t = jnp.where(jnp.isfinite(inside), inside, t / 10)
        return t, objective.values_along(point, p, image, t[None])[0], tries + 1

    start = (jnp.ones_like(value), whole.value, jnp.zeros((), jnp.int32))
    t, seen, tries = jax.lax.while_loop(too_far, shorter, start)
    return jnp.where(seen <= value, t, 0), tries


def _has_gauss_newton(objective: Objective) -> bool:
    return type(objective).gauss_newton_diagonal is not Objective.gauss_newton_diagonal


def _diagonal(objective: Objective, point: Point, scaling: Any) -> Any:
    if isinstance(objective, Local):
        return objective.diagonal_at(point)
    if _has_gauss_newton(objective):
        return objective.gauss_newton_diagonal(point)
    return scaling


def _first(objective: Objective, point: Point) -> Any:
    """The curvature diagonal at x0, for objectives that offer none at every point."""
    if isinstance(objective, Local) or _has_gauss_newton(objective):
        return jnp.ones_like(point.x)
    if point.x.size <= EXACT_DIMENSION:
        return _positive(objective.diagonal_at(point), 1e-3)
    signs = jax.random.rademacher(jax.random.key(0), (PROBES, point.x.size), point.x.dtype)
    probes = jax.lax.map(lambda v: v * objective.hessian_times(point, v), signs)
    mean, error = jnp.mean(probes, 0), jnp.std(probes, 0) / PROBES**0.5
    # a Hessian that is far from diagonal makes the probes noise: better no scaling than that
    clear = jnp.mean(error <= jnp.abs(mean) / 4) >= 0.9
    return jnp.where(clear, _positive(mean, 1e-3), 1)


def _positive(D: Any, least: float = 1e-8) -> Any:
    """|D|, not smaller than a fraction of its largest entry; ones where there is none."""
    D = jnp.abs(D)
    largest = jnp.max(D)
    usable = (largest > 0) & jnp.isfinite(largest)
    return jnp.where(usable, jnp.maximum(D, least * largest), 1)


def _secant_diagonal(D: Any, step: Any, change: Any, went: Any) -> Any:
    """The diagonal of the BFGS update of diag(D), where it is positive."""
    along = inner(step, change)
    enough = along > 1e-12 * jnp.sqrt(inner(step, step) * inner(change, change))
    size = inner(step, D * step)
    usable = went & enough & (size > 0)
    new = D - (D * step) ** 2 / jnp.where(usable, size, 1)
    new = new + change**2 / jnp.where(usable, along, 1)
    return jnp.where(usable & jnp.all(new > 0) & jnp.all(jnp.isfinite(new)), new, D)
