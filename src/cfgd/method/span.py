"""The best step of a span: the way from the last few terminals and the scaled gradient.

Every call of `step` looks at the objective once: at the start, at a step that is tried, or at a
probe around the point. So the function stands once in the compiled loop, and a function that JAX
cannot trace can be walked on from outside.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cfgd.algebra import inner, positive, size as size_of
from cfgd.either import branch, chosen, made, space
from cfgd.method.base import Info, Method, State, ending
from cfgd.method.probe import next_probe, noise, probed, probes
from cfgd.method.subspace import (
    TERMINALS,
    Memory,
    best_direction,
    is_small,
    looked_direction,
)
from cfgd.method.trial import Around, Start, Trial, decreases, judged, shorter
from cfgd.objective.base import Objective
from cfgd.objective.line import Point
from cfgd.types import Count, Flag, Number, Scalar, Vector

# iterations without progress after which the curvature is looked at, and after which the run ends
IDLE, TOO_IDLE = 16, 40
# iterations after which the curvature is looked at in few dimensions, where that costs little
BLIND = 30
# how often a step may be shortened, each time at least to its half
MOST_TRIES = 40
# of the curvature that the first step meets, the part that all coordinates start with
FIRST = 0.1
# x counts as no smaller than this part of the way from the start: the solution may be zero
AWAY = 1e-3
# how much longer than the last step, as a part of its direction, the next one may begin
LONGER = 8.0
# of the typical coordinate, the size that one counts for at least in the first step
SMALLEST = 1e-3
# times its size that a coordinate may move in one step
FURTHEST = 100.0
# a valley along which x has grown by this factor is taken to lead to infinity
FAR = 1e2


class SpanState(State):
    """`k` is -1 until the start was looked at. Of its point, the value never grows by rounding."""

    seen: Scalar  # the value at the point, as it was computed
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
            start=Start(x0, of(0), of(0)),
        )

    def step(
        self, objective: Objective, state: SpanState, floor: Number = 0.0, tolerance: Number = 0.0
    ) -> tuple[SpanState, Info]:
        told = partial(_told, objective, state, floor, tolerance)

        def waits() -> tuple[SpanState, Info]:
            g, no = state.point.gradient, state.idle < 0
            info = Info(
                norm2=inner(g, g), cost=0 * state.reach, reset=no, ending=ending(), moved=no
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
    value = judged(trial, old, at, tiny)
    finite = (abs(value) < np.inf) & (abs(at.gradient) < np.inf).all()
    good = walking & finite & decreases(trial, old, value, tiny)
    gave_up = walking & ~good & (trial.tries >= MOST_TRIES)
    accepted = first | good
    point = chosen(
        accepted, made(Point, x=at.x, value=value, gradient=at.gradient, carried=None), old
    )
    g = point.gradient
    norm2 = inner(g, g)
    start = chosen(first, Start(at.x, value, xp.sqrt(norm2)), start)

    # what is remembered of it
    moved, change = at.x - old.x, at.gradient - old.gradient
    memory = branch(
        probing,
        lambda: probed(state.memory, trial.probe, moved, change),
        lambda: branch(good, lambda: state.memory.then(moved, change), lambda: state.memory),
    )
    seen_all = probing & (trial.probe == probes(g.size) - 1)
    looked = (state.looked & ~accepted) | seen_all
    D = branch(state.k == 0, lambda: _first_scaling(moved, change), lambda: state.scaling)
    scaling = _scaling(objective, D, at, memory, accepted, good, seen_all)
    better = (value < old.value - 4 * eps * abs(old.value)) | (norm2 < state.least / 2)
    idle = chosen(good, chosen(better, 0 * state.idle, state.idle + 1), state.idle)

    # what comes next
    P = positive(scaling, 1e-30 if objective.scaled_by is None else 1e-8)
    size = size_of(point.x, P) + AWAY * size_of(point.x - start.x, P)
    near, no = norm2 <= floor, idle < 0
    # where steps had to be shortened, the next one begins shorter, too
    reach = chosen(good, xp.minimum(LONGER * trial.t, 1), state.reach)
    around = Around(memory, point, start, P, size, chosen(seen_all, 0 * reach + 1, reach))
    plan = branch(
        accepted | seen_all,
        partial(_plan, objective, around, first, looked, near, tolerance),
        lambda: Plan(shorter(trial, old, value), no, no),
    )
    stuck = (state.stuck & ~accepted) | gave_up | (good & (idle >= TOO_IDLE))
    done = seen_all & plan.quiet & ~plan.saddle & (near | stuck)
    worth = norm2 <= state.asked / 100
    asks = accepted & near & plan.quiet & worth | (good & (idle == IDLE)) | (stuck & ~looked)
    blind = chosen(seen_all, 0 * idle, state.blind + good)
    if is_small(g.size):
        asks = asks | (good & (blind >= BLIND) & memory.usable[memory.newest])
    asks = asks & ~probing
    memory, next_trial = branch(
        asks | (probing & ~seen_all),
        lambda: next_probe(around, asks, trial.probe),
        lambda: (memory, plan.trial),
    )

    # a fall of 1/eps^2 times all that the start knows of
    known = abs(start.value) + start.norm * (1 + xp.sqrt(inner(start.x, start.x)))
    end = (gave_up & looked) | (seen_all & (idle >= TOO_IDLE))
    # at a pole the gradient grows for ever
    steep = (start.norm > 0) & (xp.sqrt(norm2) > start.norm / eps**0.6)
    falls = walking & (known > 0) & (at.value < start.value - known / eps**2)
    falls = falls | (walking & (at.value == -np.inf))
    ends = ending(
        unbounded=falls | ((end | (norm2 == np.inf)) & steep & (point.value < start.value)),
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
        eta=chosen(good, trial.t * trial.eta, state.eta),
        gamma=chosen(good, trial.gamma, state.gamma),
        memory=memory,
        scaling=scaling,
        reach=around.reach,
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


def _plan(
    objective: Objective, around: Around, first: Flag, looked: Flag, near: Flag, tolerance: Number
) -> Plan:
    """The best step that the memory knows of, and whether it promises anything."""
    memory, point, start, P, size, reach = around
    g, x, xp = point.gradient, point.x, space(point.x)
    zero = 0 * reach
    no = zero > 0

    def from_steps() -> tuple[Any, ...]:
        p, eta, gamma = best_direction(memory, g, P)
        return p, eta, gamma, inner(g, p) / 2, size_of(p, P), no

    def from_probes() -> tuple[Any, ...]:
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
        p = branch(first & (start.norm > 0), lambda: _first_step(x, g), lambda: p)
    trial = Trial(
        p=p,
        slope=inner(g, p),
        t=xp.minimum(reach, _furthest(x, start.x, p)),
        tries=0 * memory.newest,
        eta=eta,
        gamma=gamma,
        probe=0 * memory.newest - 1,
        leaves=leaves,
    )
    typical = xp.sqrt((x * x).mean())
    sizes = abs(x) + AWAY * (abs(x - start.x) + typical)
    small = (decrease <= tolerance / 100 * abs(point.value)) & (
        abs(p) <= tolerance**0.5 * sizes
    ).all()
    return Plan(trial, small | (length <= tolerance * size), leaves)


def _first_step(x: Vector, g: Vector) -> Vector:
    """Along the gradient, no coordinate by more than a tenth of its size; of length one from 0."""
    xp = space(x)
    typical = xp.sqrt((x * x).mean())
    sizes = xp.maximum(abs(x), SMALLEST * typical)
    none = typical == 0
    most = abs(g / chosen(none, xp.ones_like(x), sizes / 10)).max()
    length = chosen(none, xp.sqrt(inner(g, g)), most)
    return g / chosen(length > 0, length, 0 * length + 1)


def _furthest(x: Vector, x0: Vector, p: Vector) -> Scalar:
    """The part of p that moves no coordinate by more than many times what is known of its size."""
    xp = space(x)
    sizes = abs(x) + abs(x - x0) + xp.sqrt((x * x).mean())
    most = (abs(p) / xp.where(sizes > 0, sizes, np.inf)).max()
    return chosen(most > FURTHEST, FURTHEST / chosen(most > 0, most, 0 * most + 1), 0 * most + 1)


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
        return chosen(accepted, objective.scaling_at(at), D)
    j = memory.newest
    D = branch(good, lambda: _secant_diagonal(D, memory.steps[j], memory.changes[j]), lambda: D)
    if not is_small(D.size):
        return D
    along = memory.steps.diagonal(), memory.changes.diagonal()
    return branch(seen_all, lambda: abs(along[1] / along[0]), lambda: D)


def _first_scaling(step: Vector, change: Vector) -> Vector:
    """Of all coordinates a part of the curvature that the first step has met.

    A small one: the secant update adds to it where it sees more, and takes little away.
    """
    along, squares = inner(step, change), inner(change, change)
    one = 0 * squares + 1
    curvature = chosen(along > 0, FIRST * squares / chosen(along > 0, along, one), one)
    return space(step).full_like(step, chosen(curvature < np.inf, curvature, one))


def _secant_diagonal(D: Vector, step: Vector, change: Vector) -> Vector:
    """The diagonal of the BFGS update of diag(D), where it is positive."""
    along, one = inner(step, change), 0 * D[0] + 1
    lengths = space(D).sqrt(inner(step, step)) * space(D).sqrt(inner(change, change))
    enough = along > 1e-12 * lengths
    size = inner(step, D * step)
    usable = enough & (size > 0)
    new = D - (D * step) * (D * step / chosen(usable, size, one))
    new = new + change * (change / chosen(usable, along, one))
    return chosen(usable & ((new > 0) & (new < np.inf)).all(), new, D)
