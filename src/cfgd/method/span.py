"""Steps in the span of the last few terminals and the scaled gradients there.

Every call of `step` looks at the objective once: at the start, at a step that is tried, or at a
probe around the point. So the function stands once in a compiled loop, and one that JAX cannot
trace, or that is not worth a loop of its own, is walked on from outside: see `either`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cfgd.algebra import inner, positive, size as size_of
from cfgd.either import branch, chosen, made, space
from cfgd.method.base import Info, Method, State, ending
from cfgd.method.probe import next_probe, noise, probed, probes
from cfgd.method.scaling import first_scaling, first_step, furthest, new_scaling
from cfgd.method.subspace import (
    TERMINALS,
    Memory,
    best_direction,
    is_small,
    looked_direction,
)
from cfgd.method.trial import AWAY, Around, Start, Trial, decreases, hidden, judged, shorter
from cfgd.objective.base import Objective
from cfgd.objective.line import Point
from cfgd.types import Count, Flag, Number, Scalar, Vector

# iterations without progress after which the curvature is looked at, and after which the run ends
IDLE, TOO_IDLE = 16, 40
# iterations after which the curvature is looked at in few dimensions, where that costs little
BLIND = 30
# how often a step may be shortened, each time at least to its half
MOST_TRIES = 40
# how much longer than the last step, as a part of its direction, the next one may begin
LONGER = 8.0
# a valley along which x has grown by this factor is taken to lead to infinity
FAR = 1e2


class SpanState(State):
    """`k` is -1 until the start was looked at. Of its point, the value never grows by rounding."""

    seen: Scalar  # the value at the point, as it was computed
    norm2: Scalar  # |g|^2 there
    gamma: Scalar
    memory: Memory
    scaling: Vector
    reach: Scalar  # of a direction, the part that is tried first
    trial: Trial
    looked: Flag  # the memory is of probes around the point
    stuck: Flag  # no step helps: the probes have the last word
    asked: Scalar  # |g|^2 where probes last showed that there is more to gain
    idle: Count  # iterations without progress
    blind: Count  # iterations since the curvature was looked at
    least: Scalar  # |g|^2 so far
    start: Start


class Plan(NamedTuple):
    """The step to try next, and what the model says of the point."""

    trial: Trial
    quiet: Flag  # it promises no more than the tolerance
    saddle: Flag


class Span(Method):
    """x - c for the last few terminals c, and scaled gradients: a step of their span."""

    def describe(self, objective: Objective) -> str:
        scaled = objective.scaled_by or "a secant"
        return f"span of {TERMINALS} terminals, scaled by {scaled} diagonal"

    def measure(self, objective: Objective, state: SpanState) -> Scalar:
        return inner(state.point.gradient, state.point.gradient)

    @property
    def scale_free(self) -> bool:
        return True

    @property
    def judges(self) -> bool:
        return True

    def next_look(self, state: SpanState) -> Vector:
        return _next_look(state)

    def start_cost(self, objective: Objective | None, d: int) -> float:
        return 0.0

    def start(self, objective: Objective | None, x0: Vector) -> SpanState:
        xp = space(x0)

        def of(value: float, *shape: int, dtype: Any = x0.dtype) -> Any:
            return xp.full(shape, value, dtype)[()]

        d, none, no = x0.size, of(0, dtype=np.int32), of(False, dtype=bool)
        trial = Trial(of(0, d), of(0), of(0), none, of(np.nan), of(np.nan), none - 1, no)
        return made(
            SpanState,
            k=none - 1,
            point=Point(x0, of(np.inf), of(0, d)),
            seen=of(np.inf),
            norm2=of(0),
            eta=of(np.nan),
            gamma=of(np.nan),
            memory=Memory.empty(x0),
            scaling=of(1, d),
            reach=of(1),
            trial=trial,
            looked=no,
            stuck=no,
            asked=of(np.inf),
            idle=none,
            blind=none,
            least=of(np.inf),
            start=Start(x0, of(0), of(0), of(0)),
        )

    def step(
        self, objective: Objective, state: SpanState, floor: Number = 0.0, tolerance: Number = 0.0
    ) -> tuple[SpanState, Info]:
        told = partial(_told, objective, state, floor, tolerance)

        def waits() -> tuple[SpanState, Info]:
            no = state.idle < 0
            info = Info(
                norm2=state.norm2, cost=0 * state.reach, reset=no, ending=ending(), moved=no
            )
            return state, info

        # a run of a sweep that is over waits
        return branch(state.reach + floor < np.inf, told, waits)


def _next_look(state: SpanState) -> Vector:
    return state.point.x - state.trial.t * state.trial.p


def _told(
    objective: Objective, state: SpanState, floor: Number, tolerance: Number
) -> tuple[SpanState, Info]:
    """The state after a look at where the trial leads."""
    trial, old, start = state.trial, state.point, state.start
    at = objective.at(_next_look(state))

    # what came of it
    first, probing = state.k < 0, trial.probe >= 0
    walking = ~first & ~probing
    xp, eps = space(old.x), np.finfo(old.x.dtype).eps
    tiny = np.finfo(old.x.dtype).tiny * objective.resolution
    hides = hidden(trial, old, tiny)
    value = judged(trial, old, at, hides, tiny)
    norm2 = inner(at.gradient, at.gradient)
    finite = (abs(value) < np.inf) & (norm2 < np.inf)
    good = walking & finite & decreases(trial, old, value, hides)
    gave_up = walking & ~good & (trial.tries >= MOST_TRIES)
    accepted = first | good
    point = chosen(
        accepted, made(Point, x=at.x, value=value, gradient=at.gradient, carried=None), old
    )
    norm2 = chosen(accepted, norm2, state.norm2)
    start = branch(first, lambda: _start(point, norm2), lambda: start)

    # what is remembered of it
    moved, change = at.x - old.x, at.gradient - old.gradient
    memory = branch(
        probing,
        lambda: probed(state.memory, trial.probe, moved, change),
        lambda: branch(good, lambda: state.memory.then(moved, change), lambda: state.memory),
    )
    seen_all = probing & (trial.probe == probes(old.x.size) - 1)
    looked = (state.looked & ~accepted) | seen_all
    D = branch(state.k == 0, lambda: first_scaling(moved, change), lambda: state.scaling)
    scaling = new_scaling(objective, D, at, moved, change, memory, accepted, good, seen_all)
    better = (value < old.value - 4 * eps * abs(old.value)) | (norm2 < state.least / 2)
    idle = chosen(good, chosen(better, 0 * state.idle, state.idle + 1), state.idle)

    # what comes next
    near, no = norm2 <= floor, idle < 0
    # where steps had to be shortened, the next one begins shorter, too
    reach = chosen(good, xp.minimum(LONGER * trial.t, 1), state.reach)
    reach = chosen(seen_all, 0 * reach + 1, reach)
    least = 1e-30 if objective.scaled_by is None else 1e-8

    def around() -> Around:
        return Around(memory, point, start, positive(scaling, least))

    plan = branch(
        accepted | seen_all,
        lambda: _plan(objective, around(), moved, reach, first, looked, near, tolerance),
        lambda: Plan(shorter(trial, old, value), no, no),
    )
    stuck = (state.stuck & ~accepted) | gave_up | (good & (idle >= TOO_IDLE))
    done = seen_all & plan.quiet & ~plan.saddle & (near | stuck)
    worth = norm2 <= state.asked / 100
    asks = accepted & near & plan.quiet & worth | (good & (idle == IDLE)) | (stuck & ~looked)
    blind = chosen(seen_all, 0 * idle, state.blind + good)
    if is_small(old.x.size):
        asks = asks | (good & (blind >= BLIND) & ~memory.flat)
    asks = asks & ~probing
    memory, next_trial = branch(
        asks | (probing & ~seen_all),
        lambda: next_probe(around(), asks, trial.probe),
        lambda: (branch(seen_all, memory.settled, lambda: memory), plan.trial),
    )

    end = (gave_up & looked) | (seen_all & (idle >= TOO_IDLE))
    # at a pole the gradient grows for ever
    steep = (start.norm > 0) & (norm2 > start.norm**2 / eps**1.2)
    # a fall of 1/eps^2 times all that the start knows of
    falls = walking & (start.known > 0) & (at.value < start.value - start.known / eps**2)
    falls = falls | (walking & (at.value == -np.inf))
    ends = ending(
        unbounded=falls | (end & steep & (point.value < start.value)),
        nonfinite=first & ~finite,
        converged=done,
        saddle=end & trial.leaves,
        stalled=end,
    )
    after = made(
        SpanState,
        k=state.k + accepted,
        point=point,
        seen=chosen(accepted, at.value, state.seen),
        norm2=norm2,
        eta=chosen(good, trial.t * trial.eta, state.eta),
        gamma=chosen(good, trial.gamma, state.gamma),
        memory=memory,
        scaling=scaling,
        reach=reach,
        trial=next_trial,
        looked=looked & ~asks,
        stuck=stuck,
        asked=chosen(seen_all, norm2, state.asked),
        idle=idle,
        blind=blind,
        least=xp.minimum(state.least, norm2),
        start=start,
    )
    one = 0 * state.reach + 1
    return after, made(Info, norm2=norm2, cost=one, reset=no, ending=ends, moved=good)


def _start(point: Point, norm2: Scalar) -> Start:
    sqrt = space(norm2).sqrt
    known = abs(point.value) + sqrt(norm2) * (1 + sqrt(inner(point.x, point.x)))
    return Start(point.x, point.value, sqrt(norm2), known)


def _plan(
    objective: Objective,
    around: Around,
    step: Vector,
    reach: Scalar,
    first: Flag,
    looked: Flag,
    near: Flag,
    tolerance: Number,
) -> Plan:
    """The best step that the memory knows of, and whether it promises anything."""
    memory, point, start, P = around
    g, x, xp = point.gradient, point.x, space(point.x)
    zero = 0 * reach
    no = zero > 0

    def from_steps() -> tuple[Any, ...]:
        p, eta, gamma = best_direction(memory, g, P, step)
        # only near the end is it asked what they promise
        promise = branch(near, lambda: (inner(g, p) / 2, size_of(p, P)), lambda: (zero, zero))
        return p, eta, gamma, *promise, no

    def from_probes() -> tuple[Any, ...]:
        size = around.size()
        far = abs(x) > FAR * (abs(start.x) + xp.sqrt((start.x**2).mean()))
        far = far & (start.x != 0).any()
        found = looked_direction(memory, g, P, size, noise(g), far)
        leaves = near & (found.least < 0)
        p = chosen(leaves, chosen(size > 0, size, zero + 1) * found.downwards, found.p)
        p = chosen(leaves | (inner(g, p) > 0), p, g / P)  # the latter without any curvature
        return p, zero + 1, zero, found.decrease, found.length, leaves

    p, eta, gamma, decrease, length, leaves = branch(looked, from_probes, from_steps)
    if objective.scaled_by is None:
        # nothing is known of the scale yet
        p = branch(first & (start.norm > 0), lambda: first_step(x, g), lambda: p)

    def promises_nothing() -> Flag:
        typical = xp.sqrt((x * x).mean())
        sizes = abs(x) + AWAY * (abs(x - start.x) + typical)
        small = (decrease <= tolerance / 100 * abs(point.value)) & (
            abs(p) <= tolerance**0.5 * sizes
        ).all()
        return small | (length <= tolerance * around.size())

    trial = Trial(
        p=p,
        slope=inner(g, p),
        t=xp.minimum(reach, furthest(x, start.x, p)),
        tries=0 * memory.newest,
        eta=eta,
        gamma=gamma,
        probe=0 * memory.newest - 1,
        leaves=leaves,
    )
    return Plan(trial, branch(near | looked, promises_nothing, lambda: no), leaves)
