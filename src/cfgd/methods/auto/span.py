"""Steps in the span of the last few terminals and the scaled gradients there.

Every call of `step` looks at the objective once: at the start, at a step that is tried, or at a
probe around the point. So the function stands once in a compiled loop, and one that JAX cannot
trace, or that is not worth a loop of its own, is walked on from outside: see `either`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.either import branch, chosen, made, replaced, smaller, space
from cfgd._core.linalg import eps_of, inner
from cfgd._core.types import Count, Flag, Number, Scalar, Vector
from cfgd.methods.auto.plan import Plan, plan_of_probes, plan_of_steps
from cfgd.methods.auto.probe import (
    is_half,
    next_probe,
    noise,
    one_sided_noise,
    probed,
    probes,
)
from cfgd.methods.auto.scaling import new_scaling, probed_scaling
from cfgd.methods.auto.subspace import TERMINALS, Memory, Pair, is_small
from cfgd.methods.auto.trial import Around, Start, Trial, judged, no_offset, shorter
from cfgd.methods.base import Info, Method, State, ending
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation

# iterations without progress after which the curvature is looked at, and after which the run ends
IDLE, TOO_IDLE = 16, 40
# iterations after which the curvature is looked at in few dimensions, where that costs little
BLIND = 30
# how often a step may be shortened, each time at least to its half
MOST_TRIES = 40
# how much longer than the last step, as a part of its direction, the next one may begin
LONGER = 8.0


class SpanState(State):
    """`k` is -1 until the start was looked at. Of its point, the value never grows by rounding."""

    seen: Scalar  # the value at the point, as it was computed
    norm2: Scalar  # |g|^2 there
    gamma: Scalar
    memory: Memory
    scaling: Vector  # P, positive
    reach: Scalar  # of a direction, the part that is tried first
    trial: Trial
    looked: Flag  # the memory is of probes around the point
    stuck: Flag  # no step helps: the probes have the last word
    asked: Scalar  # |g|^2 where probes last showed that there is more to gain
    sides: Count  # of a flat valley that were looked at
    idle: Count  # iterations without progress
    blind: Count  # iterations since the curvature was looked at
    least: Scalar  # |g|^2 so far
    start: Start


class Span(Method):
    """x - c for the last few terminals c, and scaled gradients: a step of their span."""

    def describe(self, objective: Objective) -> str:
        scaled = objective.scaled_by or "a secant"
        return f"span of up to {TERMINALS} terminals, scaled by {scaled} diagonal"

    def measure(self, objective: Objective, state: SpanState) -> Scalar:
        return inner(state.point.gradient, state.point.gradient)

    @property
    def scale_free(self) -> bool:
        return True

    @property
    def judges(self) -> bool:
        return True

    def from_outside(self, objective: Objective) -> bool:
        return objective.is_plain

    def start_cost(self, objective: Objective | None, d: int) -> float:
        return 0.0

    def start(self, objective: Objective | None, x0: Vector) -> SpanState:
        xp = space(x0)

        def of(value: float, *shape: int, dtype: Any = x0.dtype) -> Any:
            return xp.full(shape, value, dtype)[()]

        d, none, no = x0.size, of(0, dtype=np.int32), of(False, dtype=bool)
        trial = Trial(
            of(0, d), of(0), of(0), none, of(np.nan), of(np.nan), none - 1, no, no_offset(x0)
        )
        return made(
            SpanState,
            k=none - 1,
            point=Evaluation(x0, of(np.inf), of(0, d)),
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
            sides=none,
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


def _told(
    objective: Objective, state: SpanState, floor: Number, tolerance: Number
) -> tuple[SpanState, Info]:
    """The state after a look at where the trial leads."""
    trial, old = state.trial, state.point
    x = old.x - trial.t * trial.p
    at = objective.evaluate(x + trial.aside if is_small(x.size) else x)
    norm2 = inner(at.gradient, at.gradient)
    finite = (abs(at.value) < np.inf) & (norm2 < np.inf)
    first, stepping = state.k < 0, trial.probe < 0
    good, value = branch(
        stepping,
        lambda: judged(trial, old, at, objective.resolution),
        lambda: (stepping, at.value),
    )
    accepted = first | (stepping & finite & good)
    look = Look(at, value, norm2, finite, floor, tolerance)
    return branch(
        accepted,
        lambda: _accepted(objective, state, look, first),
        lambda: branch(
            stepping,
            lambda: _rejected(objective, state, look),
            lambda: _probed(objective, state, look),
        ),
    )


class Look(NamedTuple):
    """What was seen, and what for."""

    at: Evaluation
    value: Scalar  # as it counts, where rounding hides a decrease
    norm2: Scalar
    finite: Flag
    floor: Number
    tolerance: Number


def _accepted(
    objective: Objective, state: SpanState, look: Look, first: Flag
) -> tuple[SpanState, Info]:
    """A step was made, or the start was seen."""
    trial, old, at, norm2 = state.trial, state.point, look.at, look.norm2
    point = made(Evaluation, x=at.x, value=look.value, gradient=at.gradient, aux=None)
    start = branch(first, lambda: Start.at(point, norm2), lambda: state.start.learns(point, norm2))
    pair = Pair.of(at.x - old.x, at.gradient - old.gradient)
    memory = branch(first, lambda: state.memory, lambda: state.memory.then(pair))
    pair = branch(first, lambda: pair, lambda: memory.kept(pair))
    scaling = new_scaling(objective, state.scaling, at, pair, state.k)
    eps = eps_of(at.x)
    better = (look.value < old.value - 4 * eps * abs(old.value)) | (norm2 < state.least / 2)
    idle = chosen(better | first, 0 * state.idle, state.idle + 1)
    one = 0 * norm2 + 1
    # where steps had to be shortened, the next one begins shorter, too
    reach = chosen(first, state.reach, smaller(LONGER * trial.t, one))
    near = norm2 <= look.floor
    around = Around(memory, point, start, scaling)
    plan = plan_of_steps(objective, around, pair.step, reach, first, near, look.tolerance)
    stuck, blind = idle >= TOO_IDLE, chosen(first, state.blind, state.blind + 1)
    asks = (near & plan.quiet & (norm2 <= state.asked / 100)) | (idle == IDLE) | stuck
    if is_small(at.x.size):
        asks = asks | ((blind >= BLIND) & ~memory.flat)
    memory, next_trial = branch(
        asks,
        lambda: next_probe(around, asks, trial.probe),
        lambda: (memory, plan.trial),
    )
    after = made(
        SpanState,
        k=state.k + 1,
        point=point,
        seen=at.value,
        norm2=norm2,
        eta=chosen(first, state.eta, trial.t * trial.eta),
        gamma=chosen(first, state.gamma, trial.gamma),
        memory=memory,
        scaling=scaling,
        reach=reach,
        trial=next_trial,
        looked=idle < 0,
        stuck=stuck,
        asked=state.asked,
        sides=0 * state.sides,
        idle=idle,
        blind=blind,
        least=smaller(norm2, state.least),
        start=start,
    )
    falls = start.is_far_above(at.value) & (state.k >= 0)
    ends = ending(unbounded=falls, nonfinite=~look.finite)
    return after, _info(after, ends, state.k >= 0)


def _rejected(objective: Objective, state: SpanState, look: Look) -> tuple[SpanState, Info]:
    """The step was too long: a shorter one, or, where none helps, a look at the curvature."""
    trial, point, start = state.trial, state.point, state.start
    gave_up = trial.tries >= MOST_TRIES
    stuck = state.stuck | gave_up
    asks, end = stuck & ~state.looked, gave_up & state.looked

    def probe() -> tuple[Memory, Trial]:
        return next_probe(Around(state.memory, point, start, state.scaling), asks, trial.probe)

    memory, next_trial = branch(
        asks, probe, lambda: (state.memory, shorter(trial, point, look.value))
    )
    # at a pole the gradient grows for ever
    steep = _steep(state.norm2, start) & (point.value < start.value)
    ends = ending(
        unbounded=start.is_far_above(look.at.value) | (end & steep),
        saddle=end & trial.leaves,
        stalled=end,
    )
    after = replaced(state, memory=memory, trial=next_trial, stuck=stuck)
    return after, _info(after, ends, state.k < 0)


def _probed(objective: Objective, state: SpanState, look: Look) -> tuple[SpanState, Info]:
    """One look around the point more; after the last one it is known whether more is to gain."""
    trial, point, at = state.trial, state.point, look.at
    memory = probed(state.memory, trial.probe, at.x - point.x, at.gradient - point.gradient)
    seen_all = trial.probe == probes(at.x.size) - 1
    seen_half = is_half(trial.probe, at.x.size) & (state.sides == 0)
    start, norm2, one = state.start, state.norm2, 0 * state.reach + 1

    def again() -> tuple[SpanState, Count]:
        around = Around(memory, point, start, state.scaling)
        rest, next_trial = next_probe(around, ~seen_all & seen_all, trial.probe, trial.aside)
        return replaced(state, memory=rest, trial=next_trial), ending()

    def seen() -> tuple[SpanState, Count]:
        scaling = probed_scaling(objective, state.scaling, memory)
        around = Around(memory, point, start, scaling)
        home = state.sides == 0
        near = (norm2 <= look.floor) | ~home
        g = point.gradient
        blur = chosen(seen_half, one_sided_noise(g), noise(g))
        plan = plan_of_probes(around, near, look.tolerance, trial.aside, state.stuck, blur)
        return branch(plan.convex | seen_all, lambda: known(plan, around, near, home), again)

    def known(plan: Plan, around: Around, near: Flag, home: Flag) -> tuple[SpanState, Count]:
        idle = chosen(plan.trial.leaves & ~home, 0 * state.idle, state.idle)  # a way out is new
        end = idle >= TOO_IDLE
        done = ~plan.trial.leaves & ((plan.quiet & (near | state.stuck)) | ~home)
        after = replaced(
            state,
            memory=memory.settled(),
            scaling=around.P,
            reach=one,
            trial=plan.trial,
            looked=end | ~end,
            asked=norm2,
            idle=idle,
            blind=0 * state.blind,
        )
        steep = _steep(norm2, start) & (point.value < start.value)
        ends = ending(unbounded=end & steep, converged=done, stalled=end)
        if not is_small(at.x.size):
            return after, ends
        aside = chosen(home, plan.flat, -trial.aside)
        more = done & (state.sides < 2) & (aside != 0).any()

        def look_aside() -> tuple[SpanState, Count]:
            rest, next_trial = next_probe(around, more, trial.probe, aside)
            sides = state.sides + 1
            return replaced(state, memory=rest, trial=next_trial, sides=sides), ending()

        return branch(more, look_aside, lambda: (after, ends))

    after, ends = branch(seen_all | seen_half, seen, again)
    return after, _info(after, ends, state.k < 0)


def _steep(norm2: Scalar, start: Start) -> Flag:
    eps = eps_of(norm2)
    return (start.norm > 0) & (norm2 > start.norm**2 / eps**1.2)


def _info(state: SpanState, ends: Count, moved: Flag) -> Info:
    one, no = 0 * state.reach + 1, state.idle < 0
    return made(Info, norm2=state.norm2, cost=one, reset=no, ending=ends, moved=moved)
