"""The best step of a span: the way from the last few terminals and the scaled gradient."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd.iteration import Info
from cfgd.objective.base import Objective, Point, inner
from cfgd.objective.local import Local

# terminals x_{k-1}, ..., x_{k-TERMINALS} of an objective that is not quadratic
TERMINALS = 16
# up to this dimension the first scaling is diag(|H|), beyond it the mean of probes
EXACT_DIMENSION, PROBES = 32, 8
MOST_TRIES = 60
# squared part of a unit direction that must be new, and curvatures that count as zero
SPAN_TOLERANCE = 1e-10
CURVATURE_TOLERANCE = 1e-10


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


def start(objective: Objective, x0: Any) -> SpanState:
    none = jnp.full((), jnp.nan, x0.dtype)
    point = objective.at(x0)
    past = jnp.zeros((TERMINALS, x0.size), x0.dtype)
    return SpanState(
        k=jnp.zeros((), jnp.int32),
        point=point,
        steps=past,
        changes=past,
        scaling=_first(objective, point),
        damping=jnp.zeros((), x0.dtype),
        eta=none,
        gamma=none,
    )


def start_cost(objective: Objective, d: int) -> float:
    if isinstance(objective, Local) or _has_gauss_newton(objective):
        return 1.0
    return 1.0 + (d if d <= EXACT_DIMENSION else PROBES) * objective.product_cost


def describe(objective: Objective) -> str:
    scaled = "Gauss-Newton's" if _has_gauss_newton(objective) else "a secant"
    scaled = "the given" if isinstance(objective, Local) else scaled
    return f"best of the span of {TERMINALS} terminals, scaled by {scaled} diagonal"


def step(objective: Objective, state: SpanState, floor: Any) -> tuple[SpanState, Info]:
    point, g = state.point, state.point.gradient
    norm2 = inner(g, g)
    moves = norm2 > floor
    P = _positive(_diagonal(objective, point, state.scaling))
    u = g / P
    p, eta, gamma, alone, largest = _best_of_span(state, P, u)
    slope = inner(g, p)
    # a model that rounding or overflow has spoilt is not followed
    bad = ~(slope > 0) | ~jnp.isfinite(slope)
    p, slope = jnp.where(bad, u, p), jnp.where(bad, inner(g, u), slope)
    eta, gamma = jnp.where(bad, 1, eta), jnp.where(bad, 0, gamma)

    t, new, tries = _search(objective, point, p, slope, moves)
    moved, change = new.x - point.x, new.gradient - g
    went = t > 0
    # without a step the past is forgotten: what is left is the scaled gradient
    steps = jnp.where(went, jnp.concatenate([moved[None], state.steps[:-1]]), 0)
    changes = jnp.where(went, jnp.concatenate([change[None], state.changes[:-1]]), 0)
    after = SpanState(
        k=state.k + 1,
        point=new,
        steps=jnp.where(moves, steps, state.steps),
        changes=jnp.where(moves, changes, state.changes),
        scaling=_secant_diagonal(state.scaling, moved, change, went),
        # a step that had to be shortened shows a model trusted too far
        damping=jnp.where(
            t == 1, state.damping / 2, jnp.maximum(4 * state.damping, 1e-3 * largest)
        ),
        eta=t * eta,
        gamma=gamma,
    )
    cost = 1.0 + tries
    stuck = moves & ~went & (alone | bad)
    none = jnp.zeros((), bool)
    return after, Info(norm2, bad & moves, cost, none, stuck, after.eta, after.gamma)


def _best_of_span(state: SpanState, P: Any, u: Any) -> tuple[Any, ...]:
    """Minimise the quadratic model over the last steps and u = P^-1 g.

    In the norm of P, directions that depend on others are dropped; curvatures count by size. The
    model of the steps, and what couples them to u, are gradients already seen. Nobody has seen
    the curvature of what is new in u: see `_new_curvature`.
    """
    basis = jnp.concatenate([state.steps, u[None]])
    norms = jnp.sqrt(jnp.sum(basis * P * basis, 1))
    there = norms > 0
    scale = jnp.where(there, 1 / jnp.where(there, norms, 1), 0)
    basis, images = scale[:, None] * basis, scale[:-1, None] * state.changes

    to_span, kept = _orthonormal((basis * P) @ basis.T)
    slopes = to_span @ (basis @ state.point.gradient)
    model = to_span @ (basis @ images.T) @ to_span[:-1, :-1].T
    among, coupling, old = model[:-1], model[-1], kept[:-1]
    among = jnp.where(old[:, None] & old, (among + among.T) / 2, jnp.eye(len(old), dtype=u.dtype))
    largest = jnp.linalg.norm(among)
    inverse = _inverse_by_size(among, CURVATURE_TOLERANCE * largest, state.damping)
    sigma = _new_curvature(state, P, largest) + state.damping
    new = (slopes[-1] - coupling @ inverse @ slopes[:-1]) / sigma
    best = jnp.append(inverse @ (slopes[:-1] - new * coupling), new)
    weights = scale * (best @ to_span)
    p = weights[:-1] @ state.steps + weights[-1] * u
    gamma = jnp.where(weights[-1] != 0, weights[0] / weights[-1], 0)
    return p, weights[-1], gamma, ~jnp.any(there[:-1]), largest


def _inverse_by_size(M: Any, least: Any, damping: Any) -> Any:
    """(max(|M|, least) + damping)^-1; where M is positive a Cholesky factor will do, for less."""
    identity = jnp.eye(len(M), dtype=M.dtype)

    def factor(more: Any) -> Any:
        return jnp.linalg.cholesky(M + more * identity, symmetrize_input=False)

    def positive() -> Any:
        half = jax.scipy.linalg.solve_triangular(factor(least + damping), identity, lower=True)
        return half.T @ half

    def by_size() -> Any:
        curvatures, axes = jnp.linalg.eigh(M, symmetrize_input=False)
        return (axes / (jnp.maximum(jnp.abs(curvatures), least) + damping)) @ axes.T

    # without the damping: it must not make a negative curvature a small positive one
    return jax.lax.cond(jnp.all(jnp.isfinite(factor(least))), positive, by_size)


def _new_curvature(state: SpanState, P: Any, largest: Any) -> Any:
    """y'P^-1 y / y's of the last step s and its change of the gradient y, as L-BFGS takes it."""
    s, y = state.steps[0], state.changes[0]
    along = inner(s, y)
    # without a step P is the curvature
    otherwise = jnp.where(inner(s, s) > 0, largest, 1)
    return jnp.where(along > 0, inner(y, y / P) / jnp.where(along > 0, along, 1), otherwise)


def _orthonormal(gram: Any) -> tuple[Any, Any]:
    """Coefficients of an orthonormal basis, by Cholesky in the given order, and which it keeps.

    The order matters: the latest steps are the ones to trust.
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


def _search(
    objective: Objective, point: Point, p: Any, slope: Any, moves: Any
) -> tuple[Any, Point, Any]:
    """The longest t = 1, ... with f(x - t p) <= f(x) - t <g, p> / 10^4, by interpolation.

    Returns t, the point there (t = 0 and x itself if there is none) and the tries after the first.
    Where rounding hides the decrease that the slope promises, not to increase will do, and of the
    whole step the slopes at its ends say that better than values.
    """
    value, eps = point.value, jnp.finfo(point.value.dtype).eps
    image = objective.image(point, p)
    whole = objective.move(point, p, image, jnp.ones_like(value), slope)
    hidden = slope <= eps**0.6 * jnp.abs(value)
    by_slopes = hidden & (inner(whole.gradient, p) >= -0.8 * slope)
    same = by_slopes & (whole.value <= value + eps**0.8 * jnp.abs(value))
    seen = jnp.where(same, jnp.minimum(whole.value, value), whole.value)
    whole = eqx.tree_at(lambda at: at.value, whole, seen)

    def too_far(state: Any) -> Any:
        t, at, tries = state
        enough = (at.value <= value - 1e-4 * t * slope) | (hidden & (at.value <= value))
        return moves & ~enough & (tries < MOST_TRIES)

    def shorter(state: Any) -> Any:
        t, at, tries = state
        parabola = slope * t * t / (2 * (at.value - value + slope * t))
        inside = jnp.clip(parabola, t / 10, t / 2)
        t = jnp.where(jnp.isfinite(inside), inside, t / 10)
        return t, objective.move(point, p, image, t, slope), tries + 1

    start = (jnp.ones_like(value), whole, jnp.zeros((), jnp.int32))
    t, new, tries = jax.lax.while_loop(too_far, shorter, start)
    went = moves & (new.value <= value)
    new = jax.tree.map(lambda new, old: jnp.where(went, new, old), new, point)
    return jnp.where(went, t, 0), new, tries


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
        return _positive(_size_diagonal(objective, point), 1e-3)
    signs = jax.random.rademacher(jax.random.key(0), (PROBES, point.x.size), point.x.dtype)
    probes = jax.lax.map(lambda v: v * objective.hessian_times(point, v), signs)
    mean, error = jnp.mean(probes, 0), jnp.std(probes, 0) / PROBES**0.5
    # a Hessian that is far from diagonal makes the probes noise: better no scaling than that
    clear = jnp.mean(error <= jnp.abs(mean) / 4) >= 0.9
    return jnp.where(clear, _positive(mean, 1e-3), 1)


def _size_diagonal(objective: Objective, point: Point) -> Any:
    """diag(|H|): where H is indefinite its own diagonal says nothing of how far to trust it."""
    identity = jnp.eye(point.x.size, dtype=point.x.dtype)
    H = jax.vmap(lambda v: objective.hessian_times(point, v))(identity)
    curvatures, axes = jnp.linalg.eigh((H + H.T) / 2)
    return axes**2 @ jnp.abs(curvatures)


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
