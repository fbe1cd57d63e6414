"""The Tikhonov step: the limit point of the non-adaptive method on the model at x, terminal x.

p solves (H + gamma D) p = g with H the matrix of Gauss and Newton and D its diagonal, kept from
shrinking: the step of Levenberg and Marquardt. gamma falls as the model proves true, which is the
adaptive order. One call of `step` is one iteration: one matrix, and as many values as it takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cfgd._core.either import branch, chosen, made, on_host, smaller, space
from cfgd._core.linalg import inner
from cfgd._core.types import Number, Scalar, Vector
from cfgd.methods.auto.attempt import tried
from cfgd.methods.auto.damped import system
from cfgd.methods.auto.outcome import FIRST, Outcome, TikhonovState, stays
from cfgd.methods.auto.trial import Start
from cfgd.methods.auto.verdict import Promise, looked, promised
from cfgd.methods.base import Info, Method, ending
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation


class Tikhonov(Method):
    """The limit point at once, where the matrix of a model can be had."""

    def describe(self, objective: Objective) -> str:
        return "Tikhonov steps on Gauss and Newton's model, scaled by its diagonal"

    def measure(self, objective: Objective, state: TikhonovState) -> Scalar:
        return inner(state.point.gradient, state.point.gradient)

    @property
    def scale_free(self) -> bool:
        return True

    @property
    def judges(self) -> bool:
        return True

    def from_outside(self, objective: Objective) -> bool:
        return True

    def start_cost(self, objective: Objective | None, d: int) -> float:
        return 0.0

    def start(self, objective: Objective | None, x0: Vector) -> TikhonovState:
        xp = space(x0)

        def of(value: float, *shape: int, dtype: Any = x0.dtype.type) -> Any:
            if on_host(x0) and not shape:
                return dtype(value)
            return xp.full(shape, value, dtype)

        return made(
            TikhonovState,
            k=of(-1, dtype=np.int32),
            point=Evaluation(x0, of(np.inf), of(0, x0.size)),
            eta=of(np.nan),
            gamma=of(np.nan),
            seen=of(np.inf),
            norm2=of(0),
            next_gamma=of(FIRST),
            D=of(0, x0.size),
            stuck=of(False, dtype=np.bool_),
            start=Start(x0, of(0), of(0), of(0)),
        )

    def step(
        self,
        objective: Objective,
        state: TikhonovState,
        floor: Number = 0.0,
        tolerance: Number = 0.0,
    ) -> tuple[TikhonovState, Info]:
        def told() -> tuple[TikhonovState, Info]:
            D, outcome = branch(
                state.k < 0,
                lambda: (state.D, stays(state)),
                lambda: _walked(objective, state, floor, tolerance),
            )
            return _arrived(objective, state, D, outcome)

        def waits() -> tuple[TikhonovState, Info]:
            no = state.k < -1
            return state, made(
                Info, norm2=state.norm2, cost=0 * state.norm2, reset=no, ending=ending(), moved=no
            )

        # a run of a sweep that is over waits
        return branch(state.next_gamma + floor < np.inf, told, waits)


def _arrived(
    objective: Objective, state: TikhonovState, D: Vector, outcome: Outcome
) -> tuple[TikhonovState, Info]:
    """A look at where an iteration leads, or at the start."""
    first = state.k < 0
    at = objective.evaluate(state.point.x - outcome.move)
    norm2 = inner(at.gradient, at.gradient)
    # by rounding it may be higher
    value = chosen(first, at.value, smaller(state.point.value, at.value))
    point = made(Evaluation, x=at.x, value=value, gradient=at.gradient, aux=None)
    start = branch(first, lambda: Start.at(point, norm2), lambda: state.start)
    after = made(
        TikhonovState,
        k=state.k + (first | outcome.moved),
        point=point,
        eta=chosen(outcome.moved, 0 * norm2 + 1, state.eta),
        gamma=outcome.gamma,
        seen=at.value,
        norm2=norm2,
        next_gamma=outcome.next_gamma,
        D=D,
        stuck=outcome.stuck,
        start=start,
    )
    finite = (abs(at.value) < np.inf) & (norm2 < np.inf)
    falls = start.is_far_above(at.value) & ~first
    ends = branch(
        falls | ~finite,
        lambda: ending(unbounded=falls, nonfinite=~finite),
        lambda: outcome.ending,
    )
    cost = outcome.cost + 1
    info = made(
        Info, norm2=norm2, cost=cost, reset=finite & ~finite, ending=ends, moved=outcome.moved
    )
    return after, info


def _walked(
    objective: Objective, state: TikhonovState, floor: Number, tolerance: Number
) -> tuple[Vector, Outcome]:
    """One iteration, or the verdict."""
    point = objective.evaluate(state.point.x)  # with all that it carries
    start, norm2 = state.start, state.norm2
    part = space(norm2).sqrt(norm2) / chosen(start.norm > 0, start.norm, 0 * norm2 + 1)
    model = system(objective, point, state.D, part)
    near = norm2 <= floor
    no = near & ~near
    promise = branch(
        near | state.stuck,
        lambda: promised(objective, state, model, tolerance),
        lambda: Promise(0 * point.x, no, no),
    )
    outcome = branch(
        state.stuck | (near & promise.settled),
        lambda: looked(objective, state, point, model, promise, tolerance),
        lambda: tried(objective, state, point, model),
    )
    return model.D, outcome
