"""Preconditioned conjugate gradients on quadratics.

In the paper's words, the terminal is the previous point, coordinates are scaled by D = diag(A), and
eta_k and gamma_k minimise f in the plane of D^-1 g and x - c: the best gamma is the one that makes
successive directions conjugate. A singular system converges to the solution nearest to x0 in
the norm of D. Reference: Nocedal and Wright, algorithm 5.3.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from cfgd._core.linalg import eps_of, inner
from cfgd._core.records import changed
from cfgd._core.types import Number, Vector
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Goal, Solver, SolverState, Start
from cfgd.objectives.base import Objective, hessian_diagonal
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# Iterations after which an evaluation that was updated by recurrence is computed again, because
# rounding errors add up; after 256 iterations its cost is negligible.
REFRESH = 256
# If the gradient is small but x is no solution, the run continues until the gradient has fallen to
# this share: the start was so far away that a comparison with its gradient is not enough.
TIGHTENING = 1e-2
# Iterations without a smaller value or gradient after which a run ends as stalled. Many: on
# ill-conditioned data gradients rise and fall in waves of hundreds of iterations, which become
# longer.
PATIENCE = 1000
# A gradient that was updated by recurrence has no correct digit if it differs from the computed one
# by this share of it. If this is found in so many successive recomputations, and the gradient has
# not halved meanwhile, it is at the level of rounding errors: the first recomputation restarts the
# recurrence from a computed gradient, and the others show that this does not help.
NO_DIGIT, MOST_FAILURES = 0.5, 3
# Iterations without a smaller value after which the gradient is recomputed for that test.
IDLE_REFRESH = 16
# A gradient that cannot decrease is compared with its terms if the tolerance is above eps to this
# power, which is below the default tolerances and far above the rounding errors of those terms.
COMPARABLE = 0.6
# A run without progress ends only if the gradient is at most this many times the smallest one: the
# last point is then about as good as the best one.
NEAR_SMALLEST = 4.0
# Curvatures and slopes below this many rounding units count as zero: sums of d terms lose a few
# bits.
ROUNDING_UNITS = 64

SINGULAR = "; the system is singular and x the solution nearest to x0 in the norm of diag(A)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class CGState(SolverState):
    """State between two iterations."""

    direction: Vector  # the last one
    product: Number = np.inf  # <g, D^-1 g> of the last iteration; infinite for a restart
    scaling: Vector  # D
    floor: Number = np.inf  # |g|^2 to reach, if a point with a small gradient was no solution
    least_norm2: Number = np.inf  # of computed gradients
    failures: int = 0  # successive recomputations that found only rounding errors
    idle: int = 0  # iterations since value or gradient fell
    best: Evaluation  # with the least value, without `aux`


class ConjugateGradients(Solver[CGState]):
    """Conjugate gradients, with the gradient recomputed from time to time."""

    def describe(self, objective: Objective) -> str:
        is_singular = objective.traits.is_singular
        words = "conjugate gradients (scaled by diag(A))"
        return words + (SINGULAR if is_singular is not None and is_singular() else "")

    def init(self, oracle: Oracle, x0: Vector) -> CGState:
        at = oracle.evaluate(x0)
        oracle.cost += oracle.traits.derivative_cost.of(1, x0.size)
        D = np.asarray(hessian_diagonal(oracle.objective, at))
        typical = abs(D).mean()
        return CGState(
            evaluation=at,
            computed_value=at.value,
            norm2=inner(at.gradient, at.gradient),
            start=Start.of(at),
            direction=np.zeros_like(x0),
            scaling=np.where(D > 0, D, typical if typical > 0 else 1),
            best=at._replace(aux=None),
        )

    def step(self, oracle: Oracle, state: CGState, goal: Goal) -> CGState:
        # a gradient below the rounding error of the first one may be correct: it is computed again
        visible2 = (eps_of(state.norm2) * state.start.norm) ** 2
        seems_solved = state.norm2 <= max(min(state.floor, goal.floor), goal.absolute2, visible2)
        is_due = state.iteration % REFRESH == 0 or (
            state.idle > 0 and state.idle % IDLE_REFRESH == 0
        )
        if seems_solved or is_due:
            state = self._recompute(oracle, state)
        if seems_solved or state.failures >= MOST_FAILURES:
            is_solution = self._is_solution(oracle, state, goal)
            small = state.norm2 <= min(state.floor, goal.floor) and is_solution
            if small or state.norm2 <= goal.absolute2:
                return changed(state, status=Status.converged)
            if state.failures >= MOST_FAILURES:
                # at a start that is the solution, the gradient is compared with its terms, unless
                # the tolerance is near their rounding errors
                is_wide = goal.tolerance >= eps_of(state.norm2) ** COMPARABLE
                is_met = state.norm2 <= goal.floor or (
                    is_wide and self._is_solution(oracle, state, goal, False)
                )
                status = Status.converged if is_met else Status.stalled
                return changed(state, status=status)
            floor = state.floor
            if not is_solution:
                floor = min(TIGHTENING**2 * state.norm2, floor)
            state = changed(state, floor=floor, product=np.inf)
        return self._iterate(oracle, state)

    def _recompute(self, oracle: Oracle, state: CGState) -> CGState:
        """Replace an evaluation that was updated by recurrence by a computed one."""
        if state.is_computed:
            return state
        at = oracle.evaluate(state.evaluation.x)
        norm2 = inner(at.gradient, at.gradient)
        error = at.gradient - state.evaluation.gradient
        is_same = norm2 == state.least_norm2  # the steps were too short to change x
        is_rounding = is_same or inner(error, error) >= NO_DIGIT**2 * norm2
        is_less = norm2 < state.least_norm2 / 4
        return changed(
            state,
            evaluation=at,
            computed_value=at.value,
            norm2=norm2,
            is_computed=True,
            product=np.inf if is_rounding else state.product,
            failures=0 if is_less or not is_rounding else state.failures + 1,
            least_norm2=min(norm2, state.least_norm2),
            idle=0 if norm2 < state.least_norm2 else state.idle,
        )

    def _is_solution(
        self, oracle: Oracle, state: CGState, goal: Goal, if_unknown: bool = True
    ) -> bool:
        """Return whether the gradient is small relative to the terms that it is the sum of.

        Return `if_unknown` if the objective does not give these terms.
        """
        curvature = oracle.objective.curvature(state.evaluation)
        if curvature is None or curvature.is_stationary is None:
            return if_unknown
        return bool(curvature.is_stationary(goal.tolerance))

    def _iterate(self, oracle: Oracle, state: CGState) -> CGState:
        """Minimise along a direction that is conjugate to the last one."""
        at, D = state.evaluation, state.scaling
        g = at.gradient
        z = g / D
        product = inner(g, z)
        beta = product / state.product
        p = z + beta * state.direction
        slope = inner(g, p)
        if not slope > 0:  # conjugacy is lost by rounding: restart from the scaled gradient
            p, slope = z, product
        line = oracle.line(at, p, slope)
        curvature = line.curvature()
        oracle.cost += 1.0 + line.costs.curvature
        rounding = ROUNDING_UNITS * eps_of(g)
        is_flat = curvature <= rounding * inner(p * D, p)
        if is_flat and state.norm2 > (rounding * state.start.norm) ** 2:
            # f is unbounded along p: no curvature, and a slope beyond rounding. A sum of squares is
            # never unbounded: rounding hides its curvature.
            is_sum = oracle.traits.size is not None
            return changed(state, status=Status.stalled if is_sum else Status.unbounded)
        if not curvature > 0:
            return changed(state, status=Status.stalled)
        eta = slope / curvature
        new = line.to(eta)
        norm2 = inner(new.gradient, new.gradient)
        if not (abs(new.value) < np.inf and norm2 < np.inf):
            return changed(state, status=Status.nonfinite)
        best = new._replace(aux=None) if new.value <= state.best.value else state.best
        idle = 0 if new.value < state.best.value else state.idle + 1
        is_idle = idle > max(PATIENCE, state.iteration // 2)
        is_over = is_idle and norm2 <= NEAR_SMALLEST**2 * state.least_norm2
        return changed(
            state,
            evaluation=new,
            computed_value=new.value,
            norm2=norm2,
            iteration=state.iteration + 1,
            eta=eta,
            # in the paper's terms: p = D^-1 g + gamma (x - c), and x - c is -eta p of the last step
            gamma=-beta / state.eta if state.iteration > 0 else 0.0,
            direction=p,
            product=product,
            is_computed=False,
            idle=idle,
            best=best,
            status=Status.stalled if is_over else Status.running,
        )
