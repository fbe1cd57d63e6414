"""L-BFGS, then Levenberg-Marquardt: for linear models whose Hessian costs many gradients.

L-BFGS takes a dozen gradients on well scaled data and may take thousands on others; which case it
is cannot be known in advance. L-BFGS therefore runs first, for as many iterations as a few
Levenberg-Marquardt steps cost, so that both together cost at most about twice as much as the better
one alone.
"""

from __future__ import annotations

import dataclasses

from cfgd._core.types import Vector
from cfgd.methods.auto.lbfgs import LBFGS, LBFGSState
from cfgd.methods.auto.levenberg_marquardt import LevenbergMarquardt, LMState
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.select import can_factor
from cfgd.methods.auto.state import Goal, Solver, SolverState
from cfgd.objectives.base import Objective
from cfgd.status import Status

# Levenberg-Marquardt iterations that linear models typically take.
LM_ITERATIONS = 6
# Gradients that an iteration costs besides its matrix: one at the trial, one for values along it.
GRADIENTS_PER_ITERATION = 2
# Gradients that an iteration by products with the Hessian typically costs: ten products.
GRADIENTS_BY_PRODUCTS = 20.0


class LBFGSThenLM(Solver[SolverState]):
    """L-BFGS for as many iterations as six Levenberg-Marquardt iterations cost, then these."""

    lbfgs, lm = LBFGS(), LevenbergMarquardt()

    def describe(self, objective: Objective) -> str:
        return f"{self.lbfgs.describe(objective)}, then {self.lm.describe(objective)}"

    def init(self, oracle: Oracle, x0: Vector) -> LBFGSState:
        return self.lbfgs.init(oracle, x0)

    def step(self, oracle: Oracle, state: SolverState, goal: Goal) -> SolverState:
        if isinstance(state, LMState):
            return self.lm.step(oracle, state, goal)
        assert isinstance(state, LBFGSState)
        after = self.lbfgs.step(oracle, state, goal)
        moved = after.iteration > state.iteration and after.status is Status.running
        if not moved or after.iteration < lbfgs_iterations(oracle, after):
            return after
        restarted = self.lm.init(oracle, after.evaluation.x)
        return dataclasses.replace(
            restarted, iteration=after.iteration, eta=after.eta, gamma=after.gamma
        )


def lbfgs_iterations(oracle: Oracle, state: SolverState) -> float:
    """Return the iterations of L-BFGS that cost as much as Levenberg-Marquardt would."""
    curvature = oracle.curvature(state.evaluation)
    assert curvature is not None
    cost = curvature.cost if can_factor(curvature) else GRADIENTS_BY_PRODUCTS
    return LM_ITERATIONS * (GRADIENTS_PER_ITERATION + cost)
