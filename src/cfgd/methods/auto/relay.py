"""First the span, then Tikhonov steps: where a matrix costs many gradients, few may be enough.

Nobody knows beforehand how many gradients a linear model takes: a dozen on well scaled data,
thousands on raw data. The span goes first, for as many iterations as a few matrices cost: so both
together cost at most about twice what the better one alone would.
"""

from __future__ import annotations

from typing import Any

from cfgd._core.either import on_host, replaced
from cfgd._core.types import Number, Vector
from cfgd.methods.auto.outcome import TikhonovState
from cfgd.methods.auto.span import Span
from cfgd.methods.auto.subspace import TERMINALS
from cfgd.methods.auto.tikhonov import Tikhonov
from cfgd.methods.base import Info
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# Tikhonov steps that a run takes where the data are good to it
STEPS = 6
# gradients that one costs by products
BY_PRODUCTS = 20.0

SPAN = Span()


class Relay(Tikhonov):
    """A run on the host goes from the one to the other; the runs of a sweep take the latter."""

    def describe(self, objective: Objective) -> str:
        return f"span of up to {TERMINALS} terminals, then {super().describe(objective)}"

    def start(self, objective: Objective | None, x0: Vector) -> Any:
        return SPAN.start(objective, x0) if on_host(x0) else super().start(objective, x0)

    def step(
        self, objective: Objective, state: Any, floor: Number = 0.0, tolerance: Number = 0.0
    ) -> tuple[Any, Info]:
        if isinstance(state, TikhonovState):
            return super().step(objective, state, floor, tolerance)
        state, info = SPAN.step(objective, state, floor, tolerance)
        goes = on_host(state.k) and info.moved and info.ending == Status.running.code
        if goes and state.k >= budget(objective, state.point):
            blank = super().start(objective, state.point.x)  # where these start from
            after, _ = super().step(objective, blank, floor, tolerance)
            state = replaced(after, eta=state.eta, gamma=state.gamma)
        return state, info


def budget(objective: Objective, point: Evaluation) -> float:
    """Iterations of the span that cost as much as the Tikhonov steps of a run."""
    shape, cost = objective.model_shape(point), BY_PRODUCTS
    if shape is not None and objective.affords(shape):
        cost = objective.model_cost(shape)
    return STEPS * (2 + cost)
