"""The best step of a span: the way from the last few terminals and the scaled gradient.

Every call of `step` looks at the objective once: at the start, at a step that is tried, or at a
probe around the point. So the function stands once in the compiled loop, and a function that JAX
cannot trace can be walked on from outside.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cfgd.algebra import inner, positive, size as size_of
from cfgd.method.base import Info, Method, State, ending
from cfgd.method.probe import next_probe, noise, probed, probes
from cfgd.method.subspace import Memory, best_direction, looked_direction
from cfgd.method.trial import Around, Start, Trial, chosen, decreases, judged, shorter
from cfgd.objective.base import Objective
from cfgd.objective.line import Point
from cfgd.types import Count, Flag, Number, Scalar, Vector

# terminals x_{k-1}, ..., x_{k-TERMINALS} of an objective that is not quadratic
TERMINALS = 16
# iterations without progress after which the curvature is looked at, and after which the run ends
IDLE, TOO_IDLE = 16, 40
# how often a step may be shortened, each time at least to its half
MOST_TRIES = 40
# of the curvature that the first step meets, the part that all coordinates start with
FIRST = 1e-8
# x counts as no smaller than this part of the way from the start: the solution may be zero
AWAY = 1e-3
# a valley along which x has grown by this factor is taken to lead to infinity
FAR = 1e2


class SpanState(State):
    """`k` is -1 until the start was looked at. Of its point, the value never grows by rounding."""

    seen: Scalar  # the value at the point, as it was computed
    gamma: Scalar
    memory: Memory
    scaling: Vector
    damping: Scalar
    trial: Trial
    looked: Flag  # the memory is of probes around the point
    stuck: Flag  # no step helps: the probes have the last word
    asked: Scalar  # |g|^2 where probes last showed that there is more to gain
    idle: Count  # iterations without progress
    least: Scalar  # |g|^2 so far
    start: Start


class Plan(NamedTuple):
    """The step to try next, and what the model says of the point."""

    trial: Trial
    quiet: Flag  # it promises no more than the tolerance
    saddle: Flag
    largest: Scalar


class Span(Method):
    """x - c for the last few terminals c, and the scaled gradient: the best step of their span."""

    def describe(self, objective: Objective) -> str:
        scaled = objective.scaled_by or "a secant"
        return f"best of the span of {TERMINALS} terminals, scaled by {scaled} diagonal"

    def measure(self, objective: Objective, state: SpanState) -> Scalar:
        return inner(state.point.gradient, state.point.gradient)

    @property
    def scale_free(self) -> bool:
        return True

    @property
    def judges(self) -> bool:
        return True

    def start_cost(self, objective: Objective | None, d: int) -> float:
        return 0.0

    def start(self, objective: Objective | None, x0: Vector) -> SpanState:
        def of(value: float, *shape: int) -> Any:
            return jnp.full(shape, value, x0.dtype)

        d, none, no = x0.size, jnp.zeros((), jnp.int32), jnp.zeros((), bool)
        trial = Trial(of(0, d), of(0), of(0), none, of(np.nan), of(np.nan), none - 1, no)
        return SpanState(
            k=none - 1,
            point=Point(x0, of(np.inf), of(0, d)),
            seen=of(np.inf),
            eta=of(np.nan),
            gamma=of(np.nan),
            memory=Memory(of(0, TERMINALS, d), of(0, TERMINALS, d)),
            scaling=of(1, d),
            damping=of(0),
            trial=trial,
            looked=no,
            stuck=no,
            asked=of(np.inf),
            idle=none,
            least=of(np.inf),
            start=Start(x0, of(0), of(0)),
        )

    def step(
        self, objective: Objective, state: SpanState, floor: Number = 0.0, tolerance: Number = 0.0
    ) -> tuple[SpanState, Info]:
        goes = jnp.asarray(floor) < jnp.inf  # a run of a sweep that is over waits
        told = partial(self._told, objective, state, jnp.asarray(floor), jnp.asarray(tolerance))

        def waits() -> tuple[SpanState, Info]:
            zero, no = jnp.zeros((), state.asked.dtype), jnp.zeros((), bool)
            return state, Info(self.measure(objective, state), zero, no, ending(), no)

        return jax.lax.cond(goes, told, waits)

    def _told(
        self, objective: Objective, state: SpanState, floor: Scalar, tolerance: Scalar
    ) -> tuple[SpanState, Info]:
        trial, old, start = state.trial, state.point, state.start
        at = objective.at(old.x - trial.t * trial.p)

        # what came of it
        first, probing = state.k < 0, trial.probe >= 0
        walking = ~first & ~probing
        least = jnp.finfo(old.value.dtype).tiny * jnp.asarray(objective.resolution, old.value.dtype)
        value = judged(trial, old, at, least)
        finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(at.gradient))
        good = walking & finite & decreases(trial, old, value, least)
        gave_up = walking & ~good & (trial.tries >= MOST_TRIES)
        accepted = first | good
        point = chosen(accepted, Point(at.x, value, at.gradient), old)
        g = point.gradient
        norm2 = inner(g, g)
        start = chosen(first, Start(at.x, value, jnp.sqrt(norm2)), start)

        # what is remembered of it
        moved, change = at.x - old.x, at.gradient - old.gradient
        memory = jax.lax.cond(
            good,
            lambda: state.memory.then(moved, change),
            lambda: jax.lax.cond(
                probing,
                lambda: probed(state.memory, trial.probe, moved, change),
                lambda: state.memory,
            ),
        )
        seen_all = probing & (trial.probe == probes(g.size) - 1)
        looked = (state.looked & ~accepted) | seen_all
        D = jnp.where(state.k == 0, _first_scaling(moved, change), state.scaling)
        scaling = _scaling(objective, D, at, memory, accepted, good, seen_all)
        eps = jnp.finfo(g.dtype).eps
        better = (value < old.value - 4 * eps * jnp.abs(old.value)) | (norm2 < state.least / 2)
        idle = jnp.where(good, jnp.where(better, 0, state.idle + 1), state.idle)

        # what comes next
        P = positive(scaling, 1e-30 if objective.scaled_by is None else 1e-8)
        size = size_of(point.x, P) + AWAY * size_of(point.x - start.x, P)
        near, no = norm2 <= floor, jnp.zeros((), bool)
        damping = _damping(state, good, seen_all)
        around = Around(memory, point, start, P, size, damping)
        plan = jax.lax.cond(
            accepted | seen_all,
            partial(_plan, objective, around, first, looked, near, tolerance),
            lambda: Plan(shorter(trial, old, value), no, no, damping),
        )
        stuck = (state.stuck & ~accepted) | gave_up | (good & (idle >= TOO_IDLE))
        done = seen_all & plan.quiet & ~plan.saddle & (near | stuck)
        worth = norm2 <= state.asked / 100
        asks = accepted & near & plan.quiet & worth | (good & (idle == IDLE)) | (stuck & ~looked)
        asks = asks & ~probing
        memory, next_trial = jax.lax.cond(
            asks | (probing & ~seen_all),
            lambda: next_probe(around, asks, trial.probe),
            lambda: (memory, plan.trial),
        )

        # a fall of 1/eps^2 times all that the start knows of
        known = jnp.abs(start.value) + start.norm * (1 + jnp.sqrt(inner(start.x, start.x)))
        end = (gave_up & looked) | (seen_all & (idle >= TOO_IDLE))
        # at a pole the gradient grows for ever
        steep = (start.norm > 0) & (jnp.sqrt(norm2) > start.norm / eps**0.6)
        falls = walking & (at.value < start.value - jnp.where(known > 0, known / eps**2, jnp.inf))
        falls = falls | (walking & (at.value == -jnp.inf))
        ends = ending(
            unbounded=falls | (end & steep & (point.value < start.value)),
            nonfinite=first & ~finite,
            converged=done,
            saddle=end & trial.leaves,
            stalled=end,
        )
        shortened = good & (trial.t != 1)
        after = SpanState(
            k=state.k + accepted,
            point=point,
            seen=jnp.where(accepted, at.value, state.seen),
            eta=jnp.where(good, trial.t * trial.eta, state.eta),
            gamma=jnp.where(good, trial.gamma, state.gamma),
            memory=memory,
            scaling=scaling,
            damping=jnp.where(shortened, jnp.maximum(damping, 1e-3 * plan.largest), damping),
            trial=next_trial,
            looked=looked & ~asks,
            stuck=stuck,
            asked=jnp.where(seen_all, norm2, state.asked),
            idle=idle,
            least=jnp.minimum(state.least, norm2),
            start=start,
        )
        return after, Info(norm2, jnp.ones_like(norm2), no, ends, good)


def _plan(
    objective: Objective, around: Around, first: Flag, looked: Flag, near: Flag, tolerance: Scalar
) -> Plan:
    """The best step that the memory knows of, and whether it promises anything."""
    memory, point, start, P, size, damping = around
    g, x = point.gradient, point.x
    nothing = jnp.zeros((), g.dtype)

    def from_steps() -> tuple[Any, ...]:
        p, slope, eta, gamma, largest = best_direction(memory, g, P, damping)
        length = jnp.sqrt(inner(P * p, p))
        return p, eta, gamma, largest, slope / 2, length, jnp.zeros((), bool)

    def from_probes() -> tuple[Any, ...]:
        far = jnp.abs(x) > FAR * (jnp.abs(start.x) + jnp.sqrt(jnp.mean(start.x**2)))
        far = far & jnp.any(start.x != 0)
        found = looked_direction(memory, g, P, size, noise(g), far)
        leaves = near & (found.least < 0)
        p = jnp.where(leaves, jnp.where(size > 0, size, 1) * found.downwards, found.p)
        return p, nothing + 1, nothing, nothing, found.decrease, found.length, leaves

    p, eta, gamma, largest, decrease, length, leaves = jax.lax.cond(looked, from_probes, from_steps)
    typical = jnp.sqrt(jnp.mean(x**2))
    sizes = jnp.abs(x) + AWAY * (jnp.abs(x - start.x) + typical)
    small = (decrease <= tolerance / 100 * jnp.abs(point.value)) & jnp.all(
        jnp.abs(p) <= jnp.sqrt(tolerance) * sizes
    )
    quiet = small | (length <= tolerance * size)
    if objective.scaled_by is None:
        # nothing is known of the scale yet: a tenth of x, or one
        reach = jnp.where(jnp.any(x != 0), jnp.sqrt(inner(x, x)) / 10, 1)
        there = start.norm > 0
        p = jnp.where(first & there, reach / jnp.where(there, start.norm, 1) * g, p)
    trial = Trial(
        p=p,
        slope=inner(g, p),
        t=nothing + 1,
        tries=jnp.zeros((), jnp.int32),
        eta=eta,
        gamma=gamma,
        probe=jnp.full((), -1, jnp.int32),
        leaves=leaves,
    )
    return Plan(trial, quiet, leaves, largest)


def _damping(state: SpanState, good: Flag, looked: Flag) -> Scalar:
    """A step that had to be shortened shows a model trusted too far."""
    walked = jnp.where(state.trial.t == 1, state.damping / 2, 4 * state.damping)
    return jnp.where(good, walked, jnp.where(looked, 0, state.damping))


def _scaling(
    objective: Objective,
    D: Vector,
    at: Point,
    memory: Memory,
    accepted: Flag,
    good: Flag,
    seen_all: Flag,
) -> Vector:
    """The curvature diagonal: the objective's own, else kept up to date by the gradients seen."""
    if objective.scaled_by is not None:
        return jnp.where(accepted, objective.scaling_at(at), D)
    D = jnp.where(good, _secant_diagonal(D, memory.steps[0], memory.changes[0]), D)
    if D.size > TERMINALS:
        return D
    along = jnp.diagonal(memory.steps), jnp.diagonal(memory.changes)
    return jnp.where(seen_all, jnp.abs(along[1] / along[0]), D)


def _first_scaling(step: Vector, change: Vector) -> Vector:
    """Of all coordinates a part of the curvature that the first step has met.

    A small one: the secant update adds to it where it sees more, and takes little away.
    """
    along, squares = inner(step, change), inner(change, change)
    curvature = jnp.where(along > 0, FIRST * squares / jnp.where(along > 0, along, 1), 1)
    return jnp.full_like(step, jnp.where(jnp.isfinite(curvature), curvature, 1))


def _secant_diagonal(D: Vector, step: Vector, change: Vector) -> Vector:
    """The diagonal of the BFGS update of diag(D), where it is positive."""
    along = inner(step, change)
    enough = along > 1e-12 * jnp.sqrt(inner(step, step)) * jnp.sqrt(inner(change, change))
    size = inner(step, D * step)
    usable = enough & (size > 0)
    new = D - (D * step) * (D * step / jnp.where(usable, size, 1))
    new = new + change * (change / jnp.where(usable, along, 1))
    return jnp.where(usable & jnp.all(new > 0) & jnp.all(jnp.isfinite(new)), new, D)
