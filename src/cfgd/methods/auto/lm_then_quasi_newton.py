"""Levenberg-Marquardt, then quasi-Newton steps: for residuals of many unknowns, as of networks.

An iteration of Levenberg-Marquardt costs a Jacobian and a factorisation: a dozen gradients or more.
This is worth it if the residuals are nearly linear, as in most fits and systems of equations: f or
its gradient then falls by orders of magnitude in a few iterations. On networks, quasi-Newton steps
with a dense matrix lower f more in the same time. Which kind of problem it is can be seen after a
few iterations.

Residuals that are given sample by sample are treated as those of a network from the start. With
about as many samples as weights, Gauss-Newton steps fit the samples but not the function between
them: on Poisson's equation with 921 weights and 1,200 samples the loss ends at 3e-7 in both cases,
and the error at 2e-2 if such steps come first and at 9e-6 without them. If a factorisation is too
expensive, only quasi-Newton steps are used as well: on a network of 100,000 weights L-BFGS reaches
a loss of 1e-2 after 400 gradients, and Levenberg-Marquardt steps by products with J'J, a dozen
gradients each, reach 29.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from cfgd._core.records import changed, fields_of
from cfgd._core.types import Scalar, Vector
from cfgd.methods.auto.lbfgs import LBFGSState
from cfgd.methods.auto.levenberg_marquardt import LMState
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.quasi_newton import QuasiNewton
from cfgd.methods.auto.select import can_factor
from cfgd.methods.auto.state import Goal, Solver, SolverState
from cfgd.methods.auto.trust_region import TrustRegion
from cfgd.objectives.base import Objective
from cfgd.status import Status

# Unknowns up to which only Levenberg-Marquardt is used: its matrices then cost about a gradient.
FEW_UNKNOWNS = 100
# Iterations of Levenberg-Marquardt between two tests of its progress: the first ones are spent on
# finding the damping.
TRIAL = 5
# Factor by which f, or the norm of the gradient, must fall in that time: one half in each
# iteration. Quasi-Newton steps on networks have a factor of about 0.995 for each gradient, or 0.94
# for a dozen.
WORTHWHILE = 2.0**-TRIAL


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialState(LMState):
    """State of Levenberg-Marquardt, with f and |g|^2 at the last test of its progress."""

    tested_value: Scalar
    tested_norm2: Scalar


class LMThenQuasiNewton(Solver[SolverState]):
    """Levenberg-Marquardt while it makes fast progress, then L-BFGS and a dense matrix."""

    lm, quasi_newton = TrustRegion(), QuasiNewton()

    def describe(self, objective: Objective) -> str:
        more = f"quasi-Newton steps if it is slow with more than {FEW_UNKNOWNS} unknowns"
        return f"{self.lm.describe(objective)}, {more}"

    def init(self, oracle: Oracle, x0: Vector) -> SolverState:
        first = self.lm.init(oracle, x0)
        if x0.size <= FEW_UNKNOWNS:
            return first
        curvature = oracle.curvature(first.evaluation)
        assert curvature is not None
        is_network = oracle.traits.prefers_gradients or not can_factor(curvature)
        if is_network and oracle.box is None:
            return self.quasi_newton.init(oracle, x0)
        return TrialState(
            **fields_of(first, LMState),
            tested_value=first.evaluation.value,
            tested_norm2=first.norm2,
        )

    def step(self, oracle: Oracle, state: SolverState, goal: Goal) -> SolverState:
        if not isinstance(state, LMState):
            return self.quasi_newton.step(oracle, state, goal)
        after = self.lm.step(oracle, state, goal)
        if not isinstance(after, TrialState):
            return after
        moved = after.iteration > state.iteration and after.status is Status.running
        if not moved or after.iteration % TRIAL or oracle.box is not None:
            return after
        if is_worthwhile(after):
            value, norm2 = after.evaluation.value, after.norm2
            return changed(after, tested_value=value, tested_norm2=norm2)
        return self._without_jacobians(oracle, after)

    def restart(self, oracle: Oracle, state: SolverState) -> SolverState:
        if isinstance(state, LMState):
            return self.init(oracle, state.evaluation.x.copy())
        return self.quasi_newton.restart(oracle, state)

    def _without_jacobians(self, oracle: Oracle, state: TrialState) -> LBFGSState:
        """Return the state with which quasi-Newton steps continue from x."""
        first = self.quasi_newton.init(oracle, state.evaluation.x)
        return changed(
            first,
            evaluation=first.evaluation._replace(value=state.evaluation.value),
            start=state.start,
            forgot_start=state.forgot_start,
            iteration=state.iteration,
            first_iteration=state.iteration,
            eta=state.eta,
            gamma=state.gamma,
            looks=state.looks,
        )


def is_worthwhile(state: TrialState) -> bool:
    """Return whether f or its gradient fell fast since the last test."""
    f = state.evaluation.value
    return bool(
        f <= WORTHWHILE * state.tested_value
        or state.norm2 <= WORTHWHILE**2 * state.tested_norm2
        or not np.isfinite(state.tested_norm2)
    )
