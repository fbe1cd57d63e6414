"""L-BFGS first, then Levenberg-Marquardt: where a matrix costs many gradients.

Nobody knows beforehand how many gradients a linear model takes: a dozen on well scaled data,
thousands on raw data. L-BFGS goes first, for as many iterations as a few matrices cost, so that
both together cost at most about twice what the better one alone would.
"""

from __future__ import annotations

import dataclasses

from cfgd._core.types import Vector
from cfgd.methods.auto.lbfgs import LBFGS, LBFGSState
from cfgd.methods.auto.levenberg_marquardt import LevenbergMarquardt
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.select import can_factor
from cfgd.methods.auto.state import Goal, SolverState
from cfgd.objectives.base import Objective
from cfgd.status import Status

# Levenberg-Marquardt iterations that well scaled data typically take.
LM_ITERATIONS = 6
# Gradients that an iteration by products typically costs.
GRADIENTS_BY_PRODUCTS = 20.0


class LBFGSThenLM:
    """L-BFGS for as many iterations as six Levenberg-Marquardt iterations cost, then these."""

    lbfgs, lm = LBFGS(), LevenbergMarquardt()

    def describe(self, objective: Objective) -> str:
        return f"{self.lbfgs.describe(objective)}, then {self.lm.describe(objective)}"

    def init(self, oracle: Oracle, x0: Vector) -> LBFGSState:
        return self.lbfgs.init(oracle, x0)

    def step(self, oracle: Oracle, state: SolverState, goal: Goal) -> SolverState:
        if not isinstance(state, LBFGSState):
            return self.lm.step(oracle, state, goal)  # type: ignore[arg-type]
        after: SolverState = self.lbfgs.step(oracle, state, goal)
        moved = after.iteration > state.iteration and after.status is Status.running
        if moved and after.iteration >= lbfgs_iterations(oracle, after):
            again = self.lm.init(oracle, after.evaluation.x)
            after = dataclasses.replace(
                again, iteration=after.iteration, eta=after.eta, gamma=after.gamma
            )
        return after


def lbfgs_iterations(oracle: Oracle, state: SolverState) -> float:
    """Return the iterations of L-BFGS that cost as much as Levenberg-Marquardt would."""
    curvature = oracle.curvature(state.evaluation)
    assert curvature is not None
    cost = curvature.cost if can_factor(curvature) else GRADIENTS_BY_PRODUCTS
    return LM_ITERATIONS * (2 + cost)
