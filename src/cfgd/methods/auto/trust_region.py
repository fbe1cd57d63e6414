"""The method of Levenberg and Marquardt for small problems, with a trust region.

The damping of a step is chosen so that its length is the radius of the region in which the model is
trusted; it is zero if the undamped step is shorter. The model is J'J, or J'J + S if a secant
approximation S of the second-order part predicted the last decrease better. If a trial lowers f
less than predicted, its residuals give the curvature of the residuals along the step without
further evaluations, and a corrected step is tried before a shorter one. If a step leaves the box or
none is accepted, the solver of `levenberg_marquardt` takes over. References: Moré (1978), "The
Levenberg-Marquardt algorithm"; Dennis, Gay and Welsch (1981); Transtrum and Sethna (2012) for the
correction.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from cfgd._core.linalg import eps_of, inner, weighted_norm
from cfgd._core.records import changed, fields_of
from cfgd._core.types import Matrix, Number, Scalar, Vector
from cfgd.methods.auto.convergence_proof import FAST, proves_minimum
from cfgd.methods.auto.damped_system import DampedStep, DampedSystem, keep_from_shrinking
from cfgd.methods.auto.levenberg_marquardt import (
    ACCEPT,
    BAD_MODEL,
    GOOD_MODEL,
    HIDDEN_CHANGE,
    LevenbergMarquardt,
    LMState,
    arrive,
    gradient_falls,
)
from cfgd.methods.auto.longest_step import longest_fraction, shortened
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.quadratic_model import (
    QuadraticModel,
    Secant,
    augmented_model,
    gauss_newton_model,
)
from cfgd.methods.auto.state import HIDDEN_UNITS, TRAVELLED, Goal
from cfgd.objectives.curvature import Curvature, JacobianRows, second_difference
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# Columns of a Jacobian up to which its singular values are computed for every step, and the
# operations m d^2 of that: a few tens of milliseconds.
MOST_COLUMNS, MOST_OPERATIONS = 100, 1e8
# First radius relative to the size of x in the norm of D. On NIST's regressions and 40 other fits
# with 372 starts, a radius of 1 leads to the best minimum from 344 starts, 0.3 from 341, and 100,
# the one of MINPACK, from 330.
FIRST_RADIUS = 1.0
# Factors of the radius after a good and a poor step, and the least one after a rejected step (Moré,
# section 4).
WIDEN, NARROW, LEAST_NARROW = 2.0, 0.5, 0.1
# The largest change of a coordinate, in multiples of its size: steps with 10 crossed the poles of
# Meyer's model from 52 of 60 starts, steps with 4 from none.
LONGEST_STEP = 4.0
# How often the radius may shrink for one step; a tenth each is 1e-40.
MOST_TRIES = 40
# Largest ratio of the correction to the step with which it is used (Transtrum and Sethna).
MOST_ACCELERATION = 0.75


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrustRegionState(LMState):
    """State between two iterations; `gamma` is the damping of the last step."""

    radius: Number = 0.0  # in the norm of D; 0 before the first step
    second_order: Matrix  # the secant approximation S
    uses_second_order: bool = False
    explored: Matrix  # sum of u u' over steps, u = root(D) step of length one
    newton_length: Number = np.inf  # of the last undamped step, in the norm of J'J
    rate: Number = np.inf  # ratio of the last two such lengths


class Trial(NamedTuple):
    """An accepted step to x, its damping, and the next radius."""

    x: Vector
    damping: Number
    radius: Scalar


def is_small(curvature: Curvature) -> bool:
    """Return whether this solver is for a curvature: a tall Jacobian with few columns."""
    if curvature.rows is None or curvature.is_exact or curvature.shape is None:
        return False
    m, d = curvature.shape
    return d <= min(m, MOST_COLUMNS) and float(m) * d * d <= MOST_OPERATIONS


class TrustRegion(LevenbergMarquardt):
    """Levenberg-Marquardt steps in a trust region, if its singular values are affordable."""

    def init(self, oracle: Oracle, x0: Vector) -> LMState:
        state = super().init(oracle, x0)
        curvature = oracle.curvature(state.evaluation)
        is_inside = oracle.box is None or not oracle.box.mask(x0).any()
        if curvature is None or not is_small(curvature) or not is_inside:
            return state
        zeros = np.zeros((x0.size, x0.size), x0.dtype)
        return TrustRegionState(**fields_of(state, LMState), second_order=zeros, explored=zeros)

    def step(self, oracle: Oracle, state: LMState, goal: Goal) -> LMState:
        if isinstance(state, TrustRegionState):
            return self._step(oracle, state, goal)
        return super().step(oracle, state, goal)

    def _step(self, oracle: Oracle, state: TrustRegionState, goal: Goal) -> LMState:
        evaluation = state.evaluation
        curvature = oracle.curvature(evaluation)
        assert curvature is not None
        assert curvature.rows is not None
        rows = curvature.rows()
        diagonal = np.einsum("ij,ij->j", rows.jacobian, rows.jacobian)
        if not np.isfinite(diagonal).all() and not np.isfinite(rows.jacobian).all():
            return super().step(oracle, _as_lm_state(state), goal)
        oracle.cost += curvature.cost
        D = keep_from_shrinking(state.scaling, diagonal)
        model = plain = gauss_newton_model(rows.jacobian, rows.residuals, np.sqrt(D))
        if state.uses_second_order:
            model = augmented_model(plain, state.second_order, evaluation.gradient) or plain
        decrease = inner(model.slopes, model.undamped) / 2  # by the undamped step
        state = _with_rate(state, D, decrease)
        if state.norm2 <= goal.floor or decrease <= _hidden(evaluation):
            system = _as_system(model, D, diagonal)
            state, (newton, is_negligible, is_final) = self._predict(curvature, system, state, goal)
            # at this rate the change by the step after the undamped one is negligible
            is_last = state.rate <= FAST and not _changes_x(
                state, state.rate * newton, goal.tolerance
            )
            if is_final or (is_negligible and is_last):
                end = self._finish(oracle, state, plain, rows, system, newton, is_final, goal)
                if end is not None:
                    return end
        radius = self._radius(state)
        trial = trial_step(oracle, evaluation, curvature, rows, model, radius, state.start.x)
        if trial is not None:
            return self._accept(oracle, state, rows, trial)
        if state.norm2 <= goal.floor:
            system = _as_system(model, D, diagonal)
            state, (newton, is_negligible, _) = self._predict(curvature, system, state, goal)
            if is_negligible:
                end = self._finish(oracle, state, plain, rows, system, newton, True, goal)
                assert end is not None
                return end
        oracle.cost -= curvature.cost  # the other solver counts it again
        return super().step(oracle, _as_lm_state(state), goal)

    def _radius(self, state: TrustRegionState) -> Scalar:
        if state.radius > 0:
            return state.radius
        size = weighted_norm(state.evaluation.x, state.scaling)
        # at x = 0 the residuals have the only length in the units of the norm of D
        return FIRST_RADIUS * (size if size > 0 else np.sqrt(2 * state.evaluation.value))

    def _accept(
        self, oracle: Oracle, state: TrustRegionState, rows: JacobianRows, trial: Trial
    ) -> LMState:
        """Return the state after a step, with the secant approximation updated by it."""
        D, x = state.scaling, state.evaluation.x
        new = arrive(oracle, state, trial.x, trial.damping, state.damping)
        if new.status is not Status.running:
            return new
        s = new.evaluation.x - x
        u = np.sqrt(D) * s / weighted_norm(s, D)
        secant = Secant(state.second_order, state.uses_second_order)
        curvature = oracle.curvature(new.evaluation)
        assert curvature is not None
        if curvature.residuals_at is not None and curvature.rows is not None:
            secant = secant.updated(rows, curvature.rows(), s, D)
        return changed(
            new,
            radius=trial.radius,
            second_order=secant.matrix,
            uses_second_order=secant.is_used and not state.is_first,
            explored=state.explored + u[:, None] * u,
        )

    def _finish(
        self,
        oracle: Oracle,
        state: TrustRegionState,
        model: QuadraticModel,
        rows: JacobianRows,
        system: DampedSystem,
        newton: Vector,
        is_final: bool,
        goal: Goal,
    ) -> LMState | None:
        """End a run whose undamped step is negligible; take that step if it improves x.

        Return None if the run has not proved that x is a minimum and another step is cheaper than a
        check of the Hessian.
        """
        curvature = oracle.curvature(state.evaluation)
        assert curvature is not None
        if not proves_minimum(
            oracle,
            state.evaluation,
            curvature,
            model,
            rows,
            state.second_order,
            state.explored,
            state.rate,
        ):
            if not is_final:
                return None
            end = self._end(oracle, state, curvature, system, newton, True, goal)
            return changed(end, rate=np.inf, uses_second_order=False)
        at_end = state.evaluation.x - newton
        if _changes_x(state, newton, goal.tolerance) and _improves(oracle, state, at_end):
            return arrive(oracle, state, at_end, 0.0, state.damping, Status.converged)
        return changed(state, status=Status.converged)


def trial_step(
    oracle: Oracle,
    evaluation: Evaluation,
    curvature: Curvature,
    rows: JacobianRows,
    model: QuadraticModel,
    radius: Scalar,
    x0: Vector,
) -> Trial | None:
    """Shrink the radius until a step achieves a share of the predicted decrease.

    Return None if no step does, or if one leaves the box. No coordinate moves by more than four
    times its size, or its distance from `x0`: either the step is clipped in the coordinates that
    would, or the whole step is shortened, whichever predicts the larger decrease. Otherwise
    parameters whose only effect is rounding, such as biases before a normalisation, would shorten
    the steps of all others.
    """
    x, f, g = evaluation[:3]
    hidden = _hidden(evaluation)
    for _ in range(MOST_TRIES):
        gamma = model.damping_for(radius)
        z = model.damped(gamma)
        p, predicted, length = model.step(z), model.decrease(z), np.sqrt(inner(z, z))
        fraction = longest_fraction(x, x0, p, LONGEST_STEP)
        if fraction < 1:  # it leads far away from the region in which the model is known
            # the length for a damping is accurate to ten percent only
            shorter = min(fraction, NARROW) * length
            clipped = shortened(x, x0, p, LONGEST_STEP)
            z = model.coordinates(clipped)
            if not model.decrease(z) > model.decrease(model.damped(model.damping_for(shorter))):
                radius = shorter
                continue
            p, predicted, length = clipped, model.decrease(z), np.sqrt(inner(z, z))
        at = x - p
        is_outside = oracle.box is not None and not oracle.box.contains(at)
        if is_outside or not 0 < predicted < np.inf:
            return None
        value = oracle.value(at)
        is_hidden = predicted <= hidden
        first_value = value
        if not value <= f - BAD_MODEL * predicted and not is_hidden:
            corrected = _corrected(oracle, at, evaluation, curvature, rows, model, z, gamma)
            if corrected is not None:
                other = oracle.value(corrected)
                if other < value or not value < np.inf:
                    at, value = corrected, other
        # in float32 the right-hand side may round to f: a step must lower f
        is_lower = value < f and value <= f - ACCEPT * predicted
        # the gradient is needed at the next point in any case
        is_lower = is_lower and np.isfinite(oracle.evaluate(at).gradient).all()
        if is_lower or (is_hidden and gradient_falls(oracle, evaluation, model.root**2, at, value)):
            ratio = (f - value) / predicted
            if ratio > GOOD_MODEL:
                radius = WIDEN * length
            elif ratio < BAD_MODEL:
                radius = NARROW * min(radius, length)
            else:
                radius = max(radius, length) if gamma == 0 else radius
            return Trial(at, gamma, radius)
        if is_hidden:
            return None  # the decrease of a shorter step would be hidden, too
        # the minimiser of the parabola through f, its slope, and the value at the trial
        slope, rise = inner(g, p), first_value - f
        fraction = slope / (2 * (rise + slope)) if rise < np.inf else 0
        radius = min(max(fraction, LEAST_NARROW), NARROW) * min(radius, length)
    return None


def _corrected(
    oracle: Oracle,
    trial: Vector,
    evaluation: Evaluation,
    curvature: Curvature,
    rows: JacobianRows,
    model: QuadraticModel,
    z: Vector,
    gamma: Scalar,
) -> Vector | None:
    """Return the end of a step that follows the curvature of the residuals along p, or None.

    `trial` is x - p, whose residuals are known: they give the second derivative k along p. Where
    the path bends too much, or is not finite, there is no correction.
    """
    if curvature.residuals_at is None:
        return None
    p = model.step(z)
    ahead = oracle.residuals(curvature, trial)
    k = second_difference(ahead, rows.residuals, rows.jacobian @ p, 1.0)
    bend = model.solve(k @ rows.jacobian, gamma)
    if not inner(bend, bend) <= MOST_ACCELERATION**2 * inner(z, z):
        return None
    x = evaluation.x - (p + model.step(bend) / 2)
    is_outside = oracle.box is not None and not oracle.box.contains(x)
    return None if is_outside else x


def _improves(oracle: Oracle, state: LMState, at_end: Vector) -> bool:
    """Return whether a last step reduces the gradient without a change of f beyond rounding."""
    _, f, g = state.evaluation[:3]
    if oracle.box is not None and not oracle.box.contains(at_end):
        return False
    at = oracle.evaluate(at_end)
    is_same = at.value <= f + eps_of(f) ** HIDDEN_CHANGE * abs(f)
    D = state.scaling
    return bool(is_same and inner(at.gradient, at.gradient / D) < inner(g, g / D))


def _hidden(evaluation: Evaluation) -> Scalar:
    """Return the decrease of f up to which rounding hides it."""
    f = evaluation.value
    return HIDDEN_UNITS * eps_of(f) * abs(f)


def _changes_x(state: TrustRegionState, step: Vector, tolerance: Number) -> bool:
    """Return whether a step moves a coordinate by more than the tolerance times its size."""
    x = state.evaluation.x
    return bool((abs(step) > tolerance * (abs(x) + TRAVELLED * abs(x - state.start.x))).any())


def _with_rate(state: TrustRegionState, D: Vector, decrease: Scalar) -> TrustRegionState:
    """Record D, and the ratio of the last two undamped steps, unless it is a rounding error."""
    length, last = np.sqrt(max(decrease, 0)), state.newton_length
    if not 0 < last < np.inf:  # this is the first one
        return changed(state, scaling=D, newton_length=length, rate=np.inf)
    hidden = _hidden(state.evaluation)
    if 0 < decrease <= hidden:  # it has shrunk by at least this ratio
        return changed(state, scaling=D, rate=min(state.rate, np.sqrt(hidden) / last))
    return changed(state, scaling=D, newton_length=length, rate=length / last)


def _as_system(model: QuadraticModel, D: Vector, diagonal: Vector) -> DampedSystem:
    """Return the model in the form that the final checks of `levenberg_marquardt` take."""

    def solve(damping: Number) -> DampedStep:
        z = model.damped(damping)
        return DampedStep(model.step(z), model.decrease(z), None, None)

    def safe_diagonal() -> Vector:
        return keep_from_shrinking(np.zeros_like(D), diagonal)

    return DampedSystem(D, safe_diagonal, solve, lambda: model.step(model.undamped), None)


def _as_lm_state(state: LMState) -> LMState:
    """Return the state with which the solver without a trust region continues."""
    return LMState(**fields_of(state, LMState))
