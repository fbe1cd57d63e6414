"""The Levenberg-Marquardt method on a Gauss-Newton matrix or a Hessian.

A step solves (H + gamma D) p = g. H is the matrix of the curvature and D its diagonal, whose
entries are kept from shrinking fast. By Theorem 3 of the paper, x - p is the limit point of the
non-adaptive method on the quadratic model at x with terminal c = x; gamma is lowered while the
model predicts f well, which corresponds to the adaptive order. References: Moré (1978), "The
Levenberg-Marquardt algorithm"; Nocedal and Wright, section 10.3; the curved step is the geodesic
acceleration of Transtrum and Sethna (2012).
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, TypeVar

import numpy as np

from cfgd._core.linalg import eps_of, inner, weighted_norm
from cfgd._core.records import changed
from cfgd._core.types import Number, Scalar, Vector
from cfgd.methods.auto.bounded_system import system_at
from cfgd.methods.auto.curvature_check import assess, probe_hessian
from cfgd.methods.auto.damped_system import (
    LEAST_DAMPING,
    DampedSystem,
    accelerated_step,
    scaled_by_sizes,
)
from cfgd.methods.auto.face import face_of
from cfgd.methods.auto.flat_directions import (
    MOST_LOOKS,
    coordinate_sizes,
    flat_directions,
    is_saddle,
    lower_point,
)
from cfgd.methods.auto.newton_search import can_search, search_along
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.plateau import has_lost_model, is_flat, runs_to_infinity
from cfgd.methods.auto.state import (
    HIDDEN_UNITS,
    Goal,
    Solver,
    SolverState,
    Start,
    change_is_negligible,
    decrease_is_hidden,
    detect_unbounded,
    still_falls,
)
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# Share of the predicted decrease that a step must achieve (Nocedal and Wright, section 4.1).
ACCEPT = 1e-4
# Share of the predicted decrease beyond which the damping falls, and below which it grows (Nocedal
# and Wright, algorithm 4.1).
GOOD_MODEL, BAD_MODEL = 0.75, 0.25
# Factors by which the damping falls after a good step and grows after a rejected one; the second
# factor doubles with every rejection, as in Nielsen, "Damping parameter in Marquardt's method"
# (1999).
SHRINK, GROW = 5.0, 4.0
# Damping of the first step (Press et al., Numerical Recipes, section 15.5).
FIRST_DAMPING = 1e-3
# Damping of a first step on an exact Hessian, which should be a Newton step: sqrt(eps) and a
# little, so that directions in which the matrix is singular have a bounded step.
SLIGHT_DAMPING = 1e-7
# How often the damping may grow for one step: the growth doubles, so that 1/LEAST_DAMPING is
# reached after ten times, and steps that are only too long need more.
MOST_TRIES = 40
# Longest step relative to the size of x, in the norm of D, without and with a search along it: on a
# Gauss-Newton matrix a longer step leaves the region in which residuals are linear, while a search
# finds the right length on the Hessian of a convex function.
LONGEST, LONGEST_SEARCHED = 3.0, 1e3
# Products with the Hessian are computed when the predicted change is below the tolerance to this
# power: one more step costs less than these products, and doubles the correct digits.
TIGHTER = 1.5
# Where the ratio of decrease to prediction is this near to one, no search along the step is needed.
NEAR_PREDICTION = 0.1
# Where rounding hides a predicted decrease, f itself is known to about eps^0.8 |f|.
HIDDEN_CHANGE = 0.8


@dataclasses.dataclass(frozen=True, kw_only=True)
class LMState(SolverState):
    """State between two iterations; `gamma` is the damping of the last step."""

    damping: Number = FIRST_DAMPING  # of the next step
    scaling: Vector  # D
    is_first: bool = True  # no step was made yet
    looks: int = 0  # along flat directions that found a lower value
    is_on_plateau: bool = False  # steps are scaled by the sizes of coordinates, too


State = TypeVar("State", bound=LMState)

# ------------------------------------------------------------------ the step


class Trial(NamedTuple):
    """An accepted step to x - step, with its damping and that of the next step."""

    step: Vector
    damping: Number
    next_damping: Number


def accepted_step(
    oracle: Oracle,
    evaluation: Evaluation,
    curvature: Curvature,
    system: DampedSystem,
    damping: Number,
    x0: Vector,
) -> Trial | None:
    """Increase the damping until a step achieves a share of the predicted decrease.

    Return None if no step does. The length of a step is at most a few times that of x, or the
    distance from `x0`.
    """
    x, f = evaluation[:2]
    D, searches, growth = system.scaling, can_search(oracle, curvature), GROW
    size = weighted_norm(x, D) + weighted_norm(x - x0, D)
    longest = LONGEST_SEARCHED if searches else LONGEST
    for _ in range(MOST_TRIES):
        found = system.solve(damping)
        p = found.p
        length2 = inner(D * p, p)
        predicted = found.decrease
        is_long = size > 0 and length2 > (longest * size) ** 2
        if 0 < predicted < np.inf and not is_long:
            step = accelerated_step(oracle, curvature, system, found, evaluation, length2)
            value, fraction = oracle.value(x - step), 1.0
            is_hidden = predicted <= HIDDEN_UNITS * eps_of(f) * abs(f)
            ratio = (f - value) / predicted
            if searches and not is_hidden and not abs(ratio - 1) <= NEAR_PREDICTION:
                fraction, value = search_along(oracle, evaluation, p, value, bool(ratio > 1))
                step = fraction * step
            # in float32 the right-hand side may round to f: a step must lower f
            is_lower = value < f and value <= f - ACCEPT * min(fraction, 1.0) * predicted
            # the gradient is needed at the next point in any case
            is_lower = is_lower and np.isfinite(oracle.evaluate(x - step).gradient).all()
            if is_lower or (is_hidden and gradient_falls(oracle, evaluation, D, x - step, value)):
                if not damping < 1 / LEAST_DAMPING:
                    return None
                return Trial(step, damping, _next_damping(damping, (f - value) / predicted))
            if is_hidden:
                return None  # the decrease of a shorter step would be hidden, too
        damping = max(damping, LEAST_DAMPING) * growth
        if not is_long:
            growth = 2 * growth
    return None


def _next_damping(damping: Number, ratio: Scalar) -> Number:
    """Return the damping after a step with this ratio of actual to predicted decrease."""
    if ratio > GOOD_MODEL:
        return max(damping / SHRINK, LEAST_DAMPING)
    return max(2 * damping if ratio < BAD_MODEL else damping, LEAST_DAMPING)


def gradient_falls(
    oracle: Oracle, evaluation: Evaluation, D: Vector, x: Vector, value: Scalar
) -> bool:
    """Return whether the gradient is halved at x while rounding hides the decrease of f."""
    f, g = evaluation.value, oracle.free_gradient(evaluation)
    if not value <= f + eps_of(f) ** HIDDEN_CHANGE * abs(f):
        return False
    new = oracle.free_gradient(oracle.evaluate(x))
    return bool(inner(new, new / D) <= inner(g, g / D) / 4)


# ------------------------------------------------------------------ the end


class FinalCheck(NamedTuple):
    """The status after a check, and the next step of the run, or its last one."""

    status: Status
    step: Vector | None = None
    looks: int = 0  # along flat directions that found a lower value


def final_check(
    oracle: Oracle,
    state: LMState,
    curvature: Curvature,
    scaling: Vector,
    newton: Vector,
    is_negligible: bool,
    goal: Goal,
) -> FinalCheck:
    """Decide whether a point from which the model predicts no decrease is a minimum."""
    evaluation = state.evaluation
    if curvature.is_exact:
        # for a convex f, a small gradient with a decrease below rounding is enough
        f, decrease = evaluation.value, inner(evaluation.gradient, newton) / 2
        is_hidden = state.norm2 <= goal.floor and decrease <= HIDDEN_UNITS * eps_of(f) * abs(f)
        status = Status.converged if is_negligible or is_hidden else Status.stalled
        improves = is_negligible and _newton_improves(oracle, state, newton)
        return FinalCheck(status, newton if improves else None)
    start, f = state.start, evaluation.value
    probes = probe_hessian(oracle, evaluation, start, scaling)
    found = assess(probes, evaluation, start, scaling, goal.tolerance, is_stationary=True)
    falls = still_falls(evaluation, scaling, found.decrease, goal.tolerance)
    is_minimum = found.is_negligible and not found.leaves_saddle and not falls
    if not is_minimum:
        for sign in (1.0, -1.0) if found.leaves_saddle else (1.0,):
            t = sign * found.t
            for _ in range(MOST_TRIES):
                x = evaluation.x - t * found.step
                value = oracle.value(x)
                is_lower = value <= f - ACCEPT * t * found.slope and value < f
                # the gradient is needed at the next point in any case
                if is_lower and np.isfinite(oracle.evaluate(x).gradient).all():
                    return FinalCheck(Status.running, t * found.step)
                t = t / 3
    # a sum of squares at the level of rounding errors cannot decrease along flat directions, and
    # its negative curvatures are rounding errors
    may_fall = f > eps_of(f) * start.value
    if may_fall and state.looks < MOST_LOOKS:
        flat = flat_directions(probes, evaluation.x, start)
        offset = lower_point(oracle, evaluation, start, *flat, goal.tolerance)
        if offset is not None:
            return FinalCheck(Status.running, -offset, looks=state.looks + 1)
    if may_fall and found.leaves_saddle and is_saddle(oracle, evaluation, start, found.step):
        return FinalCheck(Status.saddle)
    # if the undamped step is negligible, a change that the Hessian predicts is a rounding error
    is_hidden = decrease_is_hidden(evaluation, start, scaling, found.decrease, goal.tolerance)
    if not (is_minimum or ((is_negligible or is_hidden) and not found.is_unbounded)):
        return FinalCheck(Status.stalled)
    if is_flat(curvature, evaluation.x, start):
        return FinalCheck(Status.saddle)
    is_lost = runs_to_infinity(curvature, evaluation.x, oracle.x0)
    is_lost = is_lost or has_lost_model(oracle, curvature, evaluation.x, start)
    return FinalCheck(Status.stalled if is_lost else Status.converged)


def _newton_improves(oracle: Oracle, state: LMState, newton: Vector) -> bool:
    """Return whether a last Newton step on an exact Hessian reduces the gradient."""
    f = state.evaluation.value
    at = oracle.evaluate(state.evaluation.x - newton)
    is_same = at.value <= f + 8 * eps_of(f) * abs(f)  # equal to the rounding of a sum
    return bool(is_same and inner(at.gradient, at.gradient) < state.norm2 / 4)


# ------------------------------------------------------------------ the solver


class LevenbergMarquardt(Solver[LMState]):
    """Levenberg-Marquardt steps; every accepted step lowers f."""

    def describe(self, objective: Objective) -> str:
        matrix = objective.traits.curvature or "Gauss-Newton"
        return f"Levenberg-Marquardt ({matrix} matrix, diagonal scaling)"

    def init(self, oracle: Oracle, x0: Vector) -> LMState:
        at = oracle.evaluate(x0)
        return LMState(
            evaluation=at,
            computed_value=at.value,
            norm2=oracle.norm2(at),
            start=Start.of(at),
            scaling=np.zeros_like(x0),
        )

    def step(self, oracle: Oracle, state: LMState, goal: Goal) -> LMState:
        evaluation = state.evaluation
        curvature = oracle.curvature(evaluation)
        assert curvature is not None
        norm = state.start.norm
        reduction = np.sqrt(state.norm2) / (norm if norm > 0 else 1)
        system = system_at(oracle, curvature, evaluation, state.scaling, reduction)
        state = changed(state, scaling=system.scaling)
        if state.norm2 <= goal.floor:
            state, (newton, is_negligible, is_final) = self._predict(curvature, system, state, goal)
            if is_final:
                return self._end(oracle, state, curvature, system, newton, is_negligible, goal)
        damping = state.damping
        if state.is_first and can_search(oracle, curvature):
            damping = SLIGHT_DAMPING
        x0, trial = state.start.x, None
        if not state.is_on_plateau:
            trial = accepted_step(oracle, evaluation, curvature, system, damping, x0)
        if trial is None and state.norm2 > goal.floor:
            sizes = coordinate_sizes(evaluation.x, state.start)
            other = scaled_by_sizes(curvature, state.scaling, sizes)
            sized = system_at(oracle, other, evaluation, state.scaling, reduction)
            damping = damping if state.is_on_plateau else FIRST_DAMPING
            trial = accepted_step(oracle, evaluation, other, sized, damping, x0)
            state = changed(state, is_on_plateau=trial is not None)
        if trial is not None:
            x = evaluation.x - trial.step
            return arrive(oracle, state, x, trial.damping, trial.next_damping)
        state, (newton, is_negligible, _) = self._predict(curvature, system, state, goal)
        return self._end(oracle, state, curvature, system, newton, is_negligible, goal)

    def _predict(
        self, curvature: Curvature, system: DampedSystem, state: State, goal: Goal
    ) -> tuple[State, tuple[Vector, bool, bool]]:
        """Predict the change by the undamped step; replace a bad start if it seems negligible."""
        found = predict(curvature, system, state, goal.tolerance)
        is_negligible, scaling = found[1], system.diagonal()
        is_bad = is_negligible and state.start.is_bad_for(state.evaluation, scaling)
        if state.forgot_start or not is_bad:
            return state, found
        state = changed(state, start=Start.of(state.evaluation), forgot_start=True)
        return state, predict(curvature, system, state, goal.tolerance)

    def _end(
        self,
        oracle: Oracle,
        state: State,
        curvature: Curvature,
        system: DampedSystem,
        newton: Vector,
        is_negligible: bool,
        goal: Goal,
    ) -> State:
        scaling, face = system.diagonal(), face_of(oracle, state.evaluation)
        if face is None:
            end = final_check(oracle, state, curvature, scaling, newton, is_negligible, goal)
        elif not face.free.any():
            end = FinalCheck(Status.converged)
        else:
            on_face, free = face.restrict_state(state), face.free
            end = final_check(
                face, on_face, curvature, scaling[free], newton[free], is_negligible, goal
            )
            end = end._replace(step=None if end.step is None else face.embed(end.step))
        if end.step is None:
            return changed(state, status=end.status)
        state = changed(state, looks=max(end.looks, state.looks))
        x = state.evaluation.x - end.step
        return arrive(oracle, state, x, 0.0, state.damping, end.status)


def predict(
    curvature: Curvature, system: DampedSystem, state: LMState, tolerance: Number
) -> tuple[Vector, bool, bool]:
    """Return the undamped step, whether it is negligible, and whether the run is to end with it.

    With a Gauss-Newton matrix the run continues until the change is far below the tolerance: the
    convergence is fast, and the check by the Hessian costs more than another step.
    """
    p, scaling = system.newton(), system.diagonal()
    decrease, length = inner(state.evaluation.gradient, p) / 2, weighted_norm(p, scaling)

    def below(tolerance: Number) -> bool:
        return change_is_negligible(
            state.evaluation, state.start, scaling, p, decrease, length, tolerance
        )

    if curvature.is_exact:
        is_negligible = below(tolerance)
        return p, is_negligible, is_negligible
    falls = still_falls(state.evaluation, scaling, decrease, tolerance)
    is_negligible = below(tolerance) and not falls
    return p, is_negligible, is_negligible and below(tolerance**TIGHTER)


def arrive(
    oracle: Oracle,
    state: State,
    x: Vector,
    damping: Number,
    next_damping: Number,
    status: Status = Status.running,
) -> State:
    """Return the state after the step to x."""
    at = oracle.evaluate(x)
    norm2 = oracle.norm2(at)
    start, is_unbounded = detect_unbounded(oracle, state.start, at)
    if is_unbounded:
        status = Status.unbounded
    elif not (abs(at.value) < np.inf and norm2 < np.inf):
        return changed(state, status=Status.nonfinite)
    # a value that is larger by rounding is replaced by the last one
    is_lower = at.value <= state.evaluation.value
    point = at if is_lower else at._replace(value=state.evaluation.value)
    return changed(
        state,
        evaluation=point,
        computed_value=at.value,
        norm2=norm2,
        start=start,
        iteration=state.iteration + 1,
        eta=1.0,
        gamma=damping,
        status=status,
        damping=next_damping,
        is_first=False,
    )
