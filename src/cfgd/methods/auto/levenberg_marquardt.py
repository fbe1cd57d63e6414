"""The method of Levenberg and Marquardt on a Gauss-Newton matrix or a Hessian.

A step solves (H + gamma D) p = g, with H the matrix of the curvature and D its diagonal, kept from
shrinking. By Theorem 3 of the paper that is the limit point of the non-adaptive method on the
quadratic model at x with terminal c = x; gamma falls as the model proves true, which is the
adaptive order. References: Moré (1978), "The Levenberg-Marquardt algorithm"; Nocedal and Wright,
section 10.3; the curved step is the geodesic acceleration of Transtrum and Sethna (2012).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.linalg import (
    add_to_diagonal,
    cholesky_solver,
    eps_of,
    inner,
    weighted_norm,
)
from cfgd._core.types import Number, Scalar, Vector
from cfgd.methods.auto.curvature_check import assess, probe_hessian
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.select import can_factor
from cfgd.methods.auto.state import Goal, SolverState, Start, change_is_negligible
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# Share of the predicted decrease that a step must achieve (Nocedal and Wright, section 4.1).
ACCEPT = 1e-4
# The model counts as true beyond this share, so that the damping falls, and as wrong below the
# other one, so that it grows (Nocedal and Wright, algorithm 4.1).
GOOD_MODEL, BAD_MODEL = 0.75, 0.25
# By how much the damping falls, and grows at first where a step is rejected: growth doubles.
SHRINK, GROW = 5.0, 4.0
FIRST_DAMPING = 1e-3
# Damping of a first step on an exact Hessian, which should be Newton's: what is left of directions
# in which the matrix is singular and rounding decides.
SLIGHT_DAMPING = 1e-7
# Below it rounding decides; beyond its inverse a step is rounding.
LEAST_DAMPING = 1e-14
# How often a step may be shortened.
MOST_TRIES = 40
# Longest step relative to the size of x, in the norm of D: as it is, or where it is searched along.
LONGEST, LONGEST_SEARCHED = 3.0, 1e3
# Length along the step at which the acceleration of the residuals is measured, and its largest part
# of the step with which it is followed (Transtrum and Sethna: 0.1 and 0.75).
PROBE_LENGTH, MOST_ACCELERATION = 0.1, 0.75
# Power of the tolerance below which a predicted change is left before the Hessian is asked: another
# step costs less than its products, and doubles the digits.
FURTHER = 1.5
# Entries of D fall by at most this factor from one point to the next.
MOST_SHRINKAGE = 1e6
# What conjugate gradients leave of the gradient at most, and how many products they take at most.
FORCING, MOST_PRODUCTS = 0.1, 200
# A share of the predicted decrease this near to one needs no search along the step.
NEAR_PREDICTION = 0.1
# How often a step may be halved, and doubled: beyond that the model is of another place.
MOST_HALVINGS, MOST_DOUBLINGS = 30, 3


@dataclasses.dataclass(frozen=True)
class LMState(SolverState):
    """State between two iterations; `gamma` is the damping of the last step."""

    damping: Any = FIRST_DAMPING  # of the next step
    scaling: Vector = None  # D
    is_first: bool = True  # no step was made


# ------------------------------------------------------------------ the damped system


class DampedStep(NamedTuple):
    """The solution p of a damped system, and p for other residuals in place of r."""

    p: Vector
    for_residuals: Callable[[Any], Vector] | None


class DampedSystem(NamedTuple):
    """(H + gamma D) p = g for every gamma."""

    scaling: Vector  # D
    diagonal: Callable[[], Vector]  # of H
    solve: Callable[[Any], DampedStep]
    newton: Callable[[], Vector]  # p without damping, to rounding
    jacobian_times: Callable[[Vector], Any] | None


def keep_from_shrinking(old: Vector, new: Vector) -> Vector:
    """Return a diagonal that falls by at most 10^6; one where nothing is known yet.

    It must not jump back and forth with x, nor be that of a bad start for ever.
    """
    bounded = np.minimum(old, MOST_SHRINKAGE * new)
    if new.min() > 0:
        return np.maximum(new, bounded)
    D = np.maximum(new, np.where(new > 0, bounded, old))
    return np.where(D > 0, D, 1)


def damped_system(
    oracle: Oracle, curvature: Curvature, evaluation: Evaluation, old: Vector, reduction: Scalar
) -> DampedSystem:
    """Set up the damped system at a point.

    The smaller of J'J and JJ' is factorised, in coordinates in which D is one. Where both are too
    large, conjugate gradients take products, and are the more exact the smaller the `reduction` of
    the gradient since the start.
    """
    if not can_factor(curvature):
        return _system_by_products(oracle, curvature, evaluation, old, reduction)
    oracle.cost += curvature.cost
    g, extra = evaluation.gradient, curvature.extra_damping
    offset = 0.0 if extra is None else extra()
    J: Any = None
    is_wide = False
    if curvature.rows is not None:
        J, r = curvature.rows()
        is_wide = J.shape[0] < J.shape[1]
    if is_wide:
        D = keep_from_shrinking(old, np.einsum("ij,ij->j", J, J) + offset)
        root = np.sqrt(D)
        rows = J / root
        matrix = rows @ rows.T
    else:
        H = J.T @ J if J is not None else curvature.matrix()  # type: ignore[misc]
        D = keep_from_shrinking(old, H.diagonal() + offset)
        root = np.sqrt(D)
        rows = None if J is None or curvature.residuals_at is None else J / root
        matrix = H / root / root[:, None]

    def diagonal() -> Vector:
        squares = np.einsum("ij,ij->j", rows, rows) if is_wide else matrix.diagonal()
        return keep_from_shrinking(0 * D, D * squares)

    def solve_wide(damping: Any) -> DampedStep:
        solve = cholesky_solver(add_to_diagonal(matrix, damping))

        def for_residuals(k: Any) -> Vector:
            return (solve(k) @ rows) / root

        return DampedStep(for_residuals(r), for_residuals)

    def solve_tall(damping: Any) -> DampedStep:
        solve = cholesky_solver(add_to_diagonal(matrix, damping))
        p = solve(g / root) / root
        if rows is None:
            return DampedStep(p, None)
        return DampedStep(p, lambda k: solve(k @ rows) / root)

    def newton() -> Vector:
        if is_wide:
            return solve_wide(LEAST_DAMPING).p
        size = np.sqrt(diagonal())
        ratio = root / size
        solve = cholesky_solver(add_to_diagonal(matrix * ratio * ratio[:, None], LEAST_DAMPING))
        return solve(g / size) / size

    jacobian_times = None if rows is None else lambda p: rows @ (root * p)
    return DampedSystem(D, diagonal, solve_wide if is_wide else solve_tall, newton, jacobian_times)


def _system_by_products(
    oracle: Oracle, curvature: Curvature, evaluation: Evaluation, old: Vector, reduction: Scalar
) -> DampedSystem:
    extra = curvature.extra_damping
    P = keep_from_shrinking(0 * old, curvature.diagonal())
    D = keep_from_shrinking(old, P if extra is None else P + extra())
    forcing = min(FORCING, np.sqrt(reduction))

    def solve(damping: Any, scaling: Vector) -> Vector:
        return solve_by_products(oracle, curvature, evaluation.gradient, scaling, damping, forcing)

    return DampedSystem(
        D,
        lambda: P,
        lambda damping: DampedStep(solve(damping, D), None),
        lambda: solve(LEAST_DAMPING, P),
        None,
    )


def solve_by_products(
    oracle: Oracle, curvature: Curvature, g: Vector, D: Vector, damping: Any, forcing: Any
) -> Vector:
    """Solve (H + damping D) p = g by conjugate gradients, preconditioned by D."""
    p, residual, q = 0 * g, g, g / D
    size = inner(g, g / D)
    enough = forcing**2 * size
    products = 0
    while size > enough and products < MOST_PRODUCTS:
        oracle.check_stop()
        image = curvature.times(q) + damping * D * q
        along = inner(q, image)
        alpha = size / (along if along > 0 else 1)
        p = p + alpha * q
        residual = residual - alpha * image
        old, size = size, inner(residual, residual / D)
        q = residual / D + size / old * q
        products += 1
    oracle.cost += curvature.product_cost * products
    return p


# ------------------------------------------------------------------ the step


class Trial(NamedTuple):
    """A trial step x - step that was accepted, with its damping and that of the next step."""

    step: Vector
    damping: Any
    next_damping: Any


def accepted_step(
    oracle: Oracle,
    state: Any,
    evaluation: Evaluation,
    curvature: Curvature,
    system: DampedSystem,
) -> Trial | None:
    """Increase the damping until a step achieves a share of the predicted decrease.

    Return None where no step does.
    """
    x, f, g = evaluation[:3]
    D, is_exact = system.scaling, curvature.is_exact
    damping, growth = state.damping, GROW
    if is_exact and state.is_first:
        damping = SLIGHT_DAMPING  # Newton's step is the best guess of the first one, too
    size = weighted_norm(x, D) + weighted_norm(x - state.start.x, D)
    longest = LONGEST_SEARCHED if is_exact else LONGEST
    for _ in range(MOST_TRIES):
        found = system.solve(damping)
        p = found.p
        length2 = inner(D * p, p)
        predicted = (inner(g, p) + damping * length2) / 2
        is_long = size > 0 and length2 > (longest * size) ** 2
        if 0 < predicted < np.inf and not is_long:
            step = _accelerated(oracle, curvature, system, found, evaluation, length2)
            value, part = oracle.value(x - step), 1.0
            is_hidden = predicted <= 1e3 * eps_of(f) * abs(f)  # by rounding of f
            gain = (f - value) / predicted
            if is_exact and not is_hidden and not abs(gain - 1) <= NEAR_PREDICTION:
                part, value = search_along(oracle, evaluation, p, value, bool(gain > 1))
                step = part * step
            if value <= f - ACCEPT * min(part, 1.0) * predicted or (
                is_hidden and _gradient_falls(oracle, evaluation, D, step, value)
            ):
                if not damping < 1 / LEAST_DAMPING:
                    return None
                return Trial(step, damping, _next_damping(damping, (f - value) / predicted))
            if is_hidden:
                return None  # rounding hides what a shorter step would gain, too
        damping = max(damping, LEAST_DAMPING) * growth
        if not is_long:
            growth = 2 * growth
    return None


def _next_damping(damping: Any, gain: Scalar) -> Any:
    """Return the damping after a step that achieved `gain` of the predicted decrease."""
    if gain > GOOD_MODEL:
        return max(damping / SHRINK, LEAST_DAMPING)
    return max(2 * damping if gain < BAD_MODEL else damping, LEAST_DAMPING)


def _gradient_falls(
    oracle: Oracle, evaluation: Evaluation, D: Vector, step: Vector, value: Scalar
) -> bool:
    """Return whether the gradient shows a decrease that rounding hides in the value."""
    f, g = evaluation.value, evaluation.gradient
    if not value <= f + eps_of(f) ** 0.8 * abs(f):
        return False
    new = oracle.evaluate(evaluation.x - step).gradient
    return bool(inner(new, new / D) <= inner(g, g / D) / 4)


def _accelerated(
    oracle: Oracle,
    curvature: Curvature,
    system: DampedSystem,
    found: DampedStep,
    evaluation: Evaluation,
    length2: Scalar,
) -> Vector:
    """Return the step as a curve: with the acceleration of the residuals along it.

    To second order r(x - t p) is r - t Jp + t^2 k / 2, and the curve -p t + a t^2 with
    (H + gamma D) a = -J'k / 2 is where the model goes. One that bends too much is not followed.
    """
    p = found.p
    if curvature.residuals_at is None or found.for_residuals is None:
        return p
    assert curvature.rows is not None
    assert system.jacobian_times is not None
    r = curvature.rows().residuals
    ahead = oracle.residuals(curvature, evaluation.x - PROBE_LENGTH * p)
    k = 2 / PROBE_LENGTH * ((ahead - r) / PROBE_LENGTH + system.jacobian_times(p))
    a = -found.for_residuals(k) / 2
    bends_little = 4 * inner(system.scaling * a, a) <= MOST_ACCELERATION**2 * length2
    return p - a if bends_little else p


def search_along(
    oracle: Oracle, evaluation: Evaluation, p: Vector, value: Scalar, is_too_short: bool
) -> tuple[float, Scalar]:
    """Halve or double the step of an exact model until that helps no more; return part and value.

    Newton's step on counts may be a hundred times too long, and on labels that can almost be
    separated half as long as it should be. Along a line of predictions a value costs next to
    nothing, another matrix a lot.
    """
    line, f = oracle.line(evaluation, p), evaluation.value
    part, factor = 1.0, 2.0 if is_too_short else 0.5
    for _ in range(MOST_DOUBLINGS if is_too_short else MOST_HALVINGS):
        trial = line.values(np.array([factor * part], p.dtype))[0]
        # on the way back from where f is higher or no number, any step is accepted
        if not (trial < value or (not is_too_short and not value < f)):
            break
        part, value = factor * part, trial
    if part != 1:
        oracle.cost += 1.0
    return part, value


# ------------------------------------------------------------------ the end


class FinalStep(NamedTuple):
    """How a run ends, or the step by which it goes on; `step` may be a last one before the end."""

    status: Status
    step: Vector | None = None


def final_check(
    oracle: Oracle,
    state: LMState,
    curvature: Curvature,
    system: DampedSystem,
    newton: Vector,
    is_negligible: bool,
    goal: Goal,
) -> FinalStep:
    """Decide whether a point from which the model predicts no decrease is a minimum."""
    evaluation = state.evaluation
    if curvature.is_exact:
        status = Status.converged if is_negligible else Status.stalled
        improves = is_negligible and _newton_improves(oracle, state, newton)
        return FinalStep(status, newton if improves else None)
    scaling = system.diagonal()
    probes = probe_hessian(oracle, evaluation, scaling)
    found = assess(probes, evaluation, state.start, scaling, goal.tolerance, is_stationary=True)
    is_minimum = found.is_negligible and not found.leaves_saddle
    if not is_minimum:
        t = found.t
        for _ in range(MOST_TRIES):
            value = oracle.value(evaluation.x - t * found.step)
            f = evaluation.value
            if value <= f - ACCEPT * t * found.slope and value < f:
                return FinalStep(Status.running, t * found.step)
            t = t / 3
    if found.leaves_saddle:
        return FinalStep(Status.saddle)
    # where the model is quiet, what the Hessian predicts beyond it is its rounding
    if is_minimum or (is_negligible and not found.is_unbounded):
        return FinalStep(Status.converged)
    return FinalStep(Status.stalled)


def _newton_improves(oracle: Oracle, state: LMState, newton: Vector) -> bool:
    """Return whether a last Newton step on an exact Hessian reduces the gradient."""
    f = state.evaluation.value
    at = oracle.evaluate(state.evaluation.x - newton)
    is_same = at.value <= f + 8 * eps_of(f) * abs(f)  # what is left to gain is rounding
    return bool(is_same and inner(at.gradient, at.gradient) < state.norm2 / 4)


# ------------------------------------------------------------------ the solver


class LevenbergMarquardt:
    """Levenberg-Marquardt steps; every accepted step lowers f."""

    def describe(self, objective: Objective) -> str:
        matrix = objective.traits.curvature or "Gauss-Newton"
        return f"Levenberg-Marquardt ({matrix} matrix, diagonal scaling)"

    def init(self, oracle: Oracle, x0: Vector) -> LMState:
        at = oracle.evaluate(x0)
        norm2 = inner(at.gradient, at.gradient)
        return LMState(at, at.value, norm2, Start.of(at), scaling=0 * x0)

    def step(self, oracle: Oracle, state: LMState, goal: Goal) -> LMState:
        """Make one iteration, or find that there is none to make."""
        evaluation = state.evaluation
        curvature = oracle.curvature(evaluation)
        assert curvature is not None
        norm = state.start.norm
        reduction = np.sqrt(state.norm2) / (norm if norm > 0 else 1)
        system = damped_system(oracle, curvature, evaluation, state.scaling, reduction)
        state = dataclasses.replace(state, scaling=system.scaling)
        if state.norm2 <= goal.floor:
            newton, is_negligible, is_settled = predict(curvature, system, state, goal.tolerance)
            if is_settled:
                return self._end(oracle, state, curvature, system, newton, is_negligible, goal)
        trial = accepted_step(oracle, state, evaluation, curvature, system)
        if trial is not None:
            return arrive(oracle, state, trial.step, trial.damping, trial.next_damping)
        newton, is_negligible, _ = predict(curvature, system, state, goal.tolerance)
        return self._end(oracle, state, curvature, system, newton, is_negligible, goal)

    def _end(
        self,
        oracle: Oracle,
        state: LMState,
        curvature: Curvature,
        system: DampedSystem,
        newton: Vector,
        is_negligible: bool,
        goal: Goal,
    ) -> LMState:
        end = final_check(oracle, state, curvature, system, newton, is_negligible, goal)
        if end.step is None:
            return dataclasses.replace(state, status=end.status)
        return arrive(oracle, state, end.step, 0.0, state.damping, end.status)


def predict(
    curvature: Curvature, system: DampedSystem, state: LMState, tolerance: Number
) -> tuple[Vector, bool, bool]:
    """Return the undamped step, whether it is negligible, and whether it is so beyond doubt."""
    p, scaling = system.newton(), system.diagonal()
    decrease, length = inner(state.evaluation.gradient, p) / 2, weighted_norm(p, scaling)

    def below(tolerance: Number) -> bool:
        return change_is_negligible(
            state.evaluation, state.start, scaling, p, decrease, length, tolerance
        )

    is_negligible = below(tolerance)
    return p, is_negligible, is_negligible if curvature.is_exact else below(tolerance**FURTHER)


def arrive(
    oracle: Oracle,
    state: LMState,
    step: Vector,
    damping: Any,
    next_damping: Any,
    status: Status = Status.running,
) -> LMState:
    """Return the state at x - step."""
    at = oracle.evaluate(state.evaluation.x - step)
    norm2 = inner(at.gradient, at.gradient)
    if state.start.is_far_above(at.value):
        status = Status.unbounded
    elif not (abs(at.value) < np.inf and norm2 < np.inf):
        return dataclasses.replace(state, status=Status.nonfinite)
    # a value that rounding made larger counts as the last one
    is_lower = at.value <= state.evaluation.value
    point = at if is_lower else at._replace(value=state.evaluation.value)
    return dataclasses.replace(
        state,
        evaluation=point,
        computed_value=at.value,
        norm2=norm2,
        iteration=state.iteration + 1,
        eta=1.0,
        gamma=damping,
        status=status,
        damping=next_damping,
        is_first=False,
    )
