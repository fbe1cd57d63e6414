"""The best step of a span: the way from the last few terminals and the scaled gradient."""

from __future__ import annotations

from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from cfgd.algebra import inner
from cfgd.method.base import Info, Method, State, ending
from cfgd.method.step import MOST_TRIES
from cfgd.objective.base import Objective
from cfgd.objective.line import Line, Point
from cfgd.types import Count, Flag, Number, Scalar, Vector, Vectors

Matrix: TypeAlias = Float[Array, "n n"]

# terminals x_{k-1}, ..., x_{k-TERMINALS} of an objective that is not quadratic
TERMINALS = 16
# up to this dimension the first scaling is diag(|H|), beyond it the mean of probes
EXACT_DIMENSION, PROBES = 32, 8
# squared part of a unit direction that must be new, and curvatures that count as zero
SPAN_TOLERANCE = 1e-10
CURVATURE_TOLERANCE = 1e-10


class SpanState(State):
    """Steps between the last points, latest first, with the changes of the gradient along them."""

    gamma: Scalar
    steps: Vectors
    changes: Vectors
    scaling: Vector
    damping: Scalar


class Span(Method):
    """x - c for the last few terminals c, and the scaled gradient: the best step of their span."""

    def describe(self, objective: Objective) -> str:
        scaled = objective.scaled_by or "a secant"
        return f"best of the span of {TERMINALS} terminals, scaled by {scaled} diagonal"

    def measure(self, objective: Objective, state: SpanState) -> Scalar:
        return inner(state.point.gradient, state.point.gradient)

    def start(self, objective: Objective, x0: Vector) -> SpanState:
        none = jnp.full((), jnp.nan, x0.dtype)
        point = objective.at(x0)
        past = jnp.zeros((TERMINALS, x0.size), x0.dtype)
        return SpanState(
            k=jnp.zeros((), jnp.int32),
            point=point,
            eta=none,
            gamma=none,
            steps=past,
            changes=past,
            scaling=_first(objective, point),
            damping=jnp.zeros((), x0.dtype),
        )

    def start_cost(self, objective: Objective, d: int) -> float:
        if objective.scaled_by is not None:
            return 1.0
        return 1.0 + (d if d <= EXACT_DIMENSION else PROBES) * objective.product_cost

    def step(
        self, objective: Objective, state: SpanState, floor: Number = 0.0
    ) -> tuple[SpanState, Info]:
        point, g = state.point, state.point.gradient
        norm2 = inner(g, g)
        moves = norm2 > floor
        scaled = objective.scaled_by is not None
        P = _positive(objective.scaling_at(point) if scaled else state.scaling)
        u = g / P
        p, eta, gamma, alone, largest = _best_of_span(state, P, u)
        slope = inner(g, p)
        # a model that rounding or overflow has spoilt is not followed
        bad = ~(slope > 0) | ~jnp.isfinite(slope)
        p, slope = jnp.where(bad, u, p), jnp.where(bad, inner(g, u), slope)
        eta, gamma = jnp.where(bad, 1, eta), jnp.where(bad, 0, gamma)

        t, new, tries = _search(objective.line(point, p, slope), moves)
        moved, change = new.x - point.x, new.gradient - g
        went = t > 0
        # without a step the past is forgotten: what is left is the scaled gradient
        steps = jnp.where(went, jnp.concatenate([moved[None], state.steps[:-1]]), 0)
        changes = jnp.where(went, jnp.concatenate([change[None], state.changes[:-1]]), 0)
        # a step that had to be shortened shows a model trusted too far
        damped = jnp.maximum(4 * state.damping, 1e-3 * largest)
        after = SpanState(
            k=state.k + moves,
            point=new,
            eta=jnp.where(moves, t * eta, state.eta),
            gamma=jnp.where(moves, gamma, state.gamma),
            steps=jnp.where(moves, steps, state.steps),
            changes=jnp.where(moves, changes, state.changes),
            scaling=_secant_diagonal(state.scaling, moved, change, went),
            damping=jnp.where(t == 1, state.damping / 2, damped),
        )
        stuck = moves & ~went & (alone | bad)
        return after, Info(norm2, 1.0 + tries, bad & moves, ending(stalled=stuck))


def _best_of_span(
    state: SpanState, P: Vector, u: Vector
) -> tuple[Vector, Scalar, Scalar, Flag, Scalar]:
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


def _inverse_by_size(M: Matrix, least: Scalar, damping: Scalar) -> Matrix:
    """(max(|M|, least) + damping)^-1; where M is positive a Cholesky factor will do, for less."""
    identity = jnp.eye(len(M), dtype=M.dtype)

    def factor(more: Scalar) -> Matrix:
        return jnp.linalg.cholesky(M + more * identity, symmetrize_input=False)

    def positive() -> Matrix:
        half = jax.scipy.linalg.solve_triangular(factor(least + damping), identity, lower=True)
        return half.T @ half

    def by_size() -> Matrix:
        curvatures, axes = jnp.linalg.eigh(M, symmetrize_input=False)
        return (axes / (jnp.maximum(jnp.abs(curvatures), least) + damping)) @ axes.T

    # without the damping: it must not make a negative curvature a small positive one
    return jax.lax.cond(jnp.all(jnp.isfinite(factor(least))), positive, by_size)


def _new_curvature(state: SpanState, P: Vector, largest: Scalar) -> Scalar:
    """y'P^-1 y / y's of the last step s and its change of the gradient y, as L-BFGS takes it."""
    s, y = state.steps[0], state.changes[0]
    along = inner(s, y)
    # without a step P is the curvature
    otherwise = jnp.where(inner(s, s) > 0, largest, 1)
    return jnp.where(along > 0, inner(y, y / P) / jnp.where(along > 0, along, 1), otherwise)


def _orthonormal(gram: Matrix) -> tuple[Matrix, Bool[Array, " n"]]:
    """Coefficients of an orthonormal basis, by Cholesky in the given order, and which it keeps.

    The order matters: the latest steps are the ones to trust.
    """
    n = len(gram)
    rows = jnp.arange(n)

    def column(j: Count, L: Matrix) -> Matrix:
        rest = gram[:, j] - L @ L[j]
        new = rest[j] > SPAN_TOLERANCE
        rest = jnp.where(new & (rows >= j), rest / jnp.sqrt(jnp.where(new, rest[j], 1)), 0)
        return L.at[:, j].set(rest)

    # rolled: unrolled it would take half of the time that Auto compiles for
    L = jax.lax.fori_loop(0, n, column, jnp.zeros_like(gram))
    keep = jnp.diagonal(L) > 0
    L = L + jnp.diag(jnp.where(keep, 0, 1).astype(L.dtype))
    inverse = jax.scipy.linalg.solve_triangular(L, jnp.eye(n, dtype=L.dtype), lower=True)
    return jnp.where(keep[:, None], inverse, 0), keep


def _search(line: Line, moves: Flag) -> tuple[Scalar, Point, Count]:
    """The longest t = 1, ... with f(x - t p) <= f(x) - t <g, p> / 10^4, by interpolation.

    Returns t, the point there (t = 0 and x itself if there is none) and the tries after the first.
    Below rounding any non-increase is accepted, and the slopes at both ends say what is one.
    """
    point, slope, value = line.point, line.slope, line.point.value
    eps = jnp.finfo(value.dtype).eps
    hidden = slope <= eps**0.6 * jnp.abs(value)

    def seen(t: Scalar) -> Point:
        at = line.to(t)
        by_slopes = hidden & (inner(at.gradient, line.d) >= -0.8 * slope)
        same = by_slopes & (at.value <= value + eps**0.8 * jnp.abs(value))
        judged = jnp.where(same, jnp.minimum(at.value, value), at.value)
        return eqx.tree_at(lambda at: at.value, at, judged)

    def too_far(state: Any) -> Flag:
        t, at, tries = state
        enough = (at.value <= value - 1e-4 * t * slope) | (hidden & (at.value <= value))
        return moves & ~enough & (tries < MOST_TRIES)

    def shorter(state: Any) -> Any:
        t, at, tries = state
        parabola = slope * t * t / (2 * (at.value - value + slope * t))
        inside = jnp.clip(parabola, t / 10, t / 2)
        t = jnp.where(jnp.isfinite(inside), inside, t / 10)
        return t, seen(t), tries + 1

    whole = jnp.ones_like(value)
    start = (whole, seen(whole), jnp.zeros((), jnp.int32))
    t, new, tries = jax.lax.while_loop(too_far, shorter, start)
    went = moves & (new.value <= value)
    new = jax.tree.map(lambda new, old: jnp.where(went, new, old), new, point)
    return jnp.where(went, t, 0), new, tries


def _first(objective: Objective, point: Point) -> Vector:
    """The curvature diagonal at x0, for objectives that offer none at every point."""
    if objective.scaled_by is not None:
        return jnp.ones_like(point.x)
    if point.x.size <= EXACT_DIMENSION:
        return _positive(_size_diagonal(objective, point), 1e-3)
    signs = jax.random.rademacher(jax.random.key(0), (PROBES, point.x.size), point.x.dtype)
    probes = jax.lax.map(lambda v: v * objective.hessian_times(point, v), signs)
    mean, error = jnp.mean(probes, 0), jnp.std(probes, 0) / PROBES**0.5
    # a Hessian that is far from diagonal makes the probes noise: better no scaling than that
    clear = jnp.mean(error <= jnp.abs(mean) / 4) >= 0.9
    return jnp.where(clear, _positive(mean, 1e-3), 1)


def _size_diagonal(objective: Objective, point: Point) -> Vector:
    """diag(|H|): where H is indefinite its own diagonal says nothing of how far to trust it."""
    identity = jnp.eye(point.x.size, dtype=point.x.dtype)
    H = jax.vmap(lambda v: objective.hessian_times(point, v))(identity)
    curvatures, axes = jnp.linalg.eigh((H + H.T) / 2)
    return axes**2 @ jnp.abs(curvatures)


def _positive(D: Vector, least: float = 1e-8) -> Vector:
    """|D|, not smaller than a fraction of its largest entry; ones where there is none."""
    D = jnp.abs(D)
    largest = jnp.max(D)
    usable = (largest > 0) & jnp.isfinite(largest)
    return jnp.where(usable, jnp.maximum(D, least * largest), 1)


def _secant_diagonal(D: Vector, step: Vector, change: Vector, went: Flag) -> Vector:
    """The diagonal of the BFGS update of diag(D), where it is positive."""
    along = inner(step, change)
    enough = along > 1e-12 * jnp.sqrt(inner(step, step) * inner(change, change))
    size = inner(step, D * step)
    usable = went & enough & (size > 0)
    new = D - (D * step) ** 2 / jnp.where(usable, size, 1)
    new = new + change**2 / jnp.where(usable, along, 1)
    return jnp.where(usable & jnp.all(new > 0) & jnp.all(jnp.isfinite(new)), new, D)
