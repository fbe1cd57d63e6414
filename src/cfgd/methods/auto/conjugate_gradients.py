"""Preconditioned conjugate gradients on quadratics.

In the paper's words the terminal is the previous point, coordinates are scaled by D = diag(A), and
eta_k and gamma_k are the best of the plane of D^-1 g and x - c: the gamma that makes successive
directions conjugate is the best one. A singular system converges to the solution nearest to x0 in
the norm of D. Reference: Nocedal and Wright, algorithm 5.3.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cfgd._core.linalg import eps_of, inner
from cfgd._core.types import Vector
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Goal, SolverState, Start
from cfgd.objectives.base import Objective, hessian_diagonal
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# Iterations between two evaluations of a point that is otherwise updated by recurrence: rounding
# adds up in between.
REFRESH = 256
# A run whose gradient meets the tolerance at a point that is no solution goes on to this part.
FURTHER = 1e-2
# Iterations without a smaller value or gradient after which rounding has the last word. Many: on
# badly conditioned data gradients rise and fall in waves, the longer the later.
PATIENCE = 1000
# Times its least that the gradient of a run may be which rounding keeps from improving.
GROWN = 4.0
# Curvatures and slopes below this many rounding units are zero.
ROUNDING_UNITS = 64

NEAREST = "; the system is singular and x the solution nearest to x0 in the norm of diag(A)"


@dataclasses.dataclass(frozen=True)
class CGState(SolverState):
    """State between two iterations."""

    direction: Vector = None  # the last one
    product: Any = np.inf  # <g, D^-1 g> where it was made; infinite to start over
    scaling: Vector = None  # D of the start
    floor: Any = np.inf  # |g|^2 to go on to, after a point that was no solution
    least_norm2: Any = np.inf  # of computed gradients
    idle: int = 0  # iterations since value or gradient fell
    best: Evaluation = None  # type: ignore[assignment] # with the least value, without `aux`


class ConjugateGradients:
    """Conjugate gradients, with the gradient recomputed from time to time."""

    def describe(self, objective: Objective) -> str:
        is_singular = objective.traits.is_singular
        words = "conjugate gradients (scaled by diag(A))"
        return words + (NEAREST if is_singular is not None and is_singular() else "")

    def init(self, oracle: Oracle, x0: Vector) -> CGState:
        at = oracle.evaluate(x0)
        oracle.cost += oracle.traits.derivative_cost.of(1, x0.size)
        D = np.asarray(hessian_diagonal(oracle.objective, at))
        typical = abs(D).mean()
        return CGState(
            at,
            at.value,
            inner(at.gradient, at.gradient),
            Start.of(at),
            direction=0 * x0,
            scaling=np.where(D > 0, D, typical if typical > 0 else 1),
            best=at._replace(aux=None),
        )

    def step(self, oracle: Oracle, state: CGState, goal: Goal) -> CGState:
        """Make one iteration, or find that there is none to make."""
        seems_solved = state.norm2 <= max(min(state.floor, goal.floor), goal.absolute2)
        if seems_solved or (state.iteration % REFRESH == 0 and not state.is_computed):
            state = self._recompute(oracle, state)
        if seems_solved:
            is_solution = self._is_solution(oracle, state, goal)
            small = state.norm2 <= min(state.floor, goal.floor) and is_solution
            if small or state.norm2 <= goal.absolute2:
                return dataclasses.replace(state, status=Status.converged)
            floor = state.floor
            if not is_solution:  # small beside its start and yet no solution: it was far off
                floor = min(FURTHER**2 * state.norm2, floor)
            state = dataclasses.replace(state, floor=floor, product=np.inf)
        return self._iterate(oracle, state)

    def _recompute(self, oracle: Oracle, state: CGState) -> CGState:
        """Replace what was updated by recurrence by an evaluation."""
        if state.is_computed:
            return state
        at = oracle.evaluate(state.evaluation.x)
        norm2 = inner(at.gradient, at.gradient)
        falls = norm2 < state.least_norm2
        return dataclasses.replace(
            state,
            evaluation=at,
            computed_value=at.value,
            norm2=norm2,
            is_computed=True,
            least_norm2=min(norm2, state.least_norm2),
            idle=0 if falls else state.idle,
        )

    def _is_solution(self, oracle: Oracle, state: CGState, goal: Goal) -> bool:
        curvature = oracle.objective.curvature(state.evaluation)
        if curvature is None or curvature.is_stationary is None:
            return True
        return bool(curvature.is_stationary(goal.tolerance))

    def _iterate(self, oracle: Oracle, state: CGState) -> CGState:
        """Go to the minimum along a direction that is conjugate to the last one."""
        at, D = state.evaluation, state.scaling
        g = at.gradient
        z = g / D
        product = inner(g, z)
        beta = product / state.product
        p = z + beta * state.direction
        slope = inner(g, p)
        if not slope > 0:  # rounding has spoilt conjugacy: start over from the scaled gradient
            p, slope = z, product
        line = oracle.line(at, p, slope)
        curvature = line.curvature()
        oracle.cost += 1.0 + line.costs.curvature
        rounding = ROUNDING_UNITS * eps_of(g)
        is_flat = curvature <= rounding * inner(p * D, p)
        if is_flat and state.norm2 > (rounding * state.start.norm) ** 2:
            # no curvature, and a slope that is more than rounding: f falls along p for ever
            return dataclasses.replace(state, status=Status.unbounded)
        if not curvature > 0:
            return dataclasses.replace(state, status=Status.stalled)
        eta = slope / curvature
        new = line.to(eta)
        norm2 = inner(new.gradient, new.gradient)
        if not (abs(new.value) < np.inf and norm2 < np.inf):
            return dataclasses.replace(state, status=Status.nonfinite)
        best = new._replace(aux=None) if new.value <= state.best.value else state.best
        idle = 0 if new.value < state.best.value else state.idle + 1
        waited = idle > max(PATIENCE, state.iteration // 2)
        is_over = waited and norm2 <= GROWN**2 * state.least_norm2
        return dataclasses.replace(
            state,
            evaluation=new,
            computed_value=new.value,
            norm2=norm2,
            iteration=state.iteration + 1,
            eta=eta,
            # x - c is -eta p of the step before
            gamma=-beta / state.eta if state.iteration > 0 else 0.0,
            direction=p,
            product=product,
            is_computed=False,
            idle=idle,
            best=best,
            status=Status.stalled if is_over else Status.running,
        )
