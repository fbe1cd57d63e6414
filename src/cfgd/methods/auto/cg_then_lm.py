"""Conjugate gradients, then Levenberg-Marquardt: for quadratics under bounds.

Conjugate gradients run until a step would leave the box. From there active-set Newton steps
continue: `LevenbergMarquardt` on the Hessian, whose steps minimise the quadratic in the box, by a
factorisation or by conjugate gradients on its faces.
"""

from __future__ import annotations

import dataclasses

from cfgd._core.types import Vector
from cfgd.methods.auto.conjugate_gradients import CGState, ConjugateGradients
from cfgd.methods.auto.damped_system import LEAST_DAMPING
from cfgd.methods.auto.levenberg_marquardt import LevenbergMarquardt, LMState
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Goal, Solver, SolverState
from cfgd.objectives.base import Objective
from cfgd.status import Status


class CGThenLM(Solver[SolverState]):
    """Conjugate gradients until a step leaves the box, then Levenberg-Marquardt."""

    cg, lm = ConjugateGradients(), LevenbergMarquardt()

    def describe(self, objective: Objective) -> str:
        return f"{self.cg.describe(objective)}, then Newton steps within the bounds"

    def init(self, oracle: Oracle, x0: Vector) -> CGState:
        return self.cg.init(oracle, x0)

    def step(self, oracle: Oracle, state: SolverState, goal: Goal) -> SolverState:
        assert oracle.box is not None
        if isinstance(state, LMState):
            return self.lm.step(oracle, state, goal)
        assert isinstance(state, CGState)
        after = self.cg.step(oracle, state, goal)
        is_inside = oracle.box.contains(after.evaluation.x)
        # a quadratic that is unbounded below may have a minimum in the box
        if is_inside and after.status is not Status.unbounded:
            return after
        restarted = self.lm.init(oracle, state.evaluation.x)
        restarted = dataclasses.replace(
            restarted,
            start=state.start,
            iteration=state.iteration,
            eta=state.eta,
            damping=LEAST_DAMPING,  # the model is f itself: only rounding needs damping
            is_first=False,
        )
        return self.lm.step(oracle, restarted, goal)
