"""Variable projection for networks: Levenberg-Marquardt steps on the hidden weights alone.

The output weights a enter f quadratically and are kept at the minimiser of
|Phi a - y|^2 / 2 + gamma/2 |a|^2 for the hidden weights w. That is the limit point of the
non-adaptive method with terminal 0 (Theorem 3); its gamma falls with f, so that the penalty is
never more than a part of what is left to gain. Without gamma, features that nearly depend on each
other would make a so large that rounding hides what is left of f. References: Golub and Pereyra
(1973); Kaufman (1975) for the Jacobian; Nocedal and Wright, section 10.2.

A network with more weights than samples begins with it. One with fewer has valleys that lead
nowhere, in which it would end more often: there steps on all weights go first and find a good one.
Where variable projection gains no more, steps on all weights go on and end the run.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.linalg import eps_of, inner, qr_basis, qr_reflections, solve_upper
from cfgd._core.types import Column, Matrix, Scalar, Vector
from cfgd.methods.auto.levenberg_marquardt import (
    FIRST_DAMPING,
    LevenbergMarquardt,
    LMState,
    accepted_step,
    damped_system,
)
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.select import can_factor
from cfgd.methods.auto.state import Goal
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Curvature, JacobianRows
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.network.model import Features, ShallowNetwork
from cfgd.status import Status

# With fewer weights than samples, variable projection begins where f has fallen to this part of its
# start, or after so many iterations.
LOW, AFTER = 1e-3, 100
# gamma at first, relative to what the squares of a feature sum up to.
FIRST_PENALTY = 1e-4
# What gamma/2 |a|^2 may be, relative to f, and by how much gamma may fall at once because of that.
PENALTY_SHARE, MOST_FALL = 0.1, 1e3
# By how much gamma falls where no step is accepted.
FURTHER = 100.0
# So many steps in a row that gain less than this part of f end variable projection.
PATIENCE, SLOW = 5, 3e-3
# phi'^2 that a unit counts for at least where steps are damped. It is less than where the output
# weights are damped, too, because gamma keeps these small.
SATURATED = 1e-5


class OutputSolution(NamedTuple):
    """`aux` of an evaluation of the projected problem."""

    features: Features
    reflections: Matrix  # of [Phi, y; sqrt(gamma) I, 0], in LAPACK's form
    tau: Column
    output: Column  # the output weights a
    residuals: Column  # Phi a - y, then sqrt(gamma) a
    value: Scalar  # of f itself


class ProjectedProblem:
    """The minimum over a of f(w, a) + gamma/2 |a|^2, as an oracle for Levenberg-Marquardt steps.

    A value counts as infinite where f itself is not `below` a number: a smaller |a| is no gain.
    """

    cost = 0.0  # is that of the network's oracle

    def __init__(self, network: ShallowNetwork, gamma: Any, below: Any, oracle: Oracle) -> None:
        self.network, self.gamma, self.below, self.oracle = network, gamma, below, oracle
        self._last: Evaluation | None = None

    def evaluate(self, w: Vector) -> Evaluation:
        """Return value and gradient at w."""
        at = self._solved(w)
        if at.gradient is None:
            # the output weights are the best for w: the rows times the residuals are all of it
            J, r = self._rows(at)
            self._last = at = at._replace(gradient=r @ J)
        return at

    def value(self, w: Vector) -> Scalar:
        self.oracle.cost += 0.5
        at = self._solved(w)
        return at.value if at.aux.value < self.below else at.value + np.inf

    def residuals(self, curvature: Curvature, w: Vector) -> Column:
        self.oracle.cost += 0.5
        return self._solve(w, self.network.features(w)).aux.residuals

    def curvature(self, evaluation: Evaluation) -> Curvature:
        at, (m, n) = evaluation.aux, evaluation.aux.features.phi.shape
        rows = self._rows(evaluation)

        def extra_damping() -> Vector:
            squares = (self.network.z**2).sum(0)[:, None] * at.output**2
            return SATURATED * squares.reshape(-1)

        return Curvature(
            times=lambda v: rows.jacobian.T @ (rows.jacobian @ v),
            diagonal=lambda: (rows.jacobian**2).sum(0),
            shape=(m + n, evaluation.x.size),
            rows=lambda: rows,
            residuals_at=lambda w: self._solve(w, self.network.features(w)).aux.residuals,
            cost=1.0,
            extra_damping=extra_damping,
        )

    def _solved(self, w: Vector) -> Evaluation:
        if self._last is None or (w != self._last.x).any():
            self._last = self._solve(w, self.network.features(w))
        return self._last

    def start_from(self, w: Vector, features: Features) -> Evaluation:
        """Return the evaluation at w, whose features are known."""
        self._last = self._solve(w, features)
        return self.evaluate(w)

    def _solve(self, w: Vector, features: Features) -> Evaluation:
        """Solve for the output weights by a QR factorisation; the gradient is left out."""
        self.oracle.check_stop()
        network, phi = self.network, features.phi
        (m, n), root = phi.shape, np.sqrt(self.gamma)
        stack = np.zeros((m + n, n + 1), phi.dtype, order="F")
        stack[:m, :n], stack[:m, n] = phi, network.y
        stack[m:, :n].T.flat[:: n + 1] = root
        reflections, tau = qr_reflections(stack)
        output = solve_upper(reflections[:n, :n], reflections[:n, n])
        misfit = phi @ output - network.y
        residuals = np.concatenate([misfit, root * output])
        value = inner(misfit, misfit) / 2
        solution = OutputSolution(features, reflections, tau, output, residuals, value)
        return Evaluation(w, inner(residuals, residuals) / 2, None, solution)

    def _rows(self, evaluation: Evaluation) -> JacobianRows:
        """Return Kaufman's Jacobian: the change of N with w, off the span of the features."""
        features, reflections, tau, output, residuals, _ = evaluation.aux
        m, n = features.phi.shape
        change = self.network.hidden_rows(features.slope, output)
        Q = qr_basis(reflections[:, :n], tau[:n])
        rows = -(Q @ (Q[:m].T @ change))
        rows[:m] += change
        return JacobianRows(rows, residuals)


@dataclasses.dataclass(frozen=True)
class ProjectedState(LMState):
    """State while steps are taken on the hidden weights; `evaluation` is that of all weights."""

    hidden: Evaluation = None  # type: ignore[assignment] # of the projected problem
    penalty: Any = 0.0  # gamma of the output weights
    least_penalty: Any = 0.0  # below it rounding decides
    slow_steps: int = 0  # in a row


class VariableProjection:
    """Levenberg-Marquardt on all weights, and on the hidden ones with the best output weights."""

    lm = LevenbergMarquardt()

    def describe(self, objective: Objective) -> str:
        return f"{self.lm.describe(objective)} with variable projection of the output weights"

    def init(self, oracle: Oracle, x0: Vector) -> LMState:
        state = self.lm.init(oracle, x0)
        curvature = oracle.curvature(state.evaluation)
        assert curvature is not None
        assert curvature.shape is not None
        if can_factor(curvature) and curvature.shape[0] < curvature.shape[1]:
            return project(oracle, state)
        return state

    def step(self, oracle: Oracle, state: LMState, goal: Goal) -> LMState:
        while isinstance(state, ProjectedState):
            after = hidden_step(oracle, state)
            moved = after.iteration > state.iteration
            state = after
            if moved:
                return state
        after = self.lm.step(oracle, state, goal)
        if after.status is Status.running and begins_to_project(oracle, state, after):
            return project(oracle, after)
        return after


def begins_to_project(oracle: Oracle, before: LMState, after: LMState) -> bool:
    """Return whether f has just become low, or enough iterations have been made."""
    curvature = oracle.curvature(after.evaluation)
    assert curvature is not None
    assert curvature.shape is not None
    if not can_factor(curvature) or curvature.shape[0] < curvature.shape[1]:
        return False
    low = LOW * after.start.value
    becomes_low = after.evaluation.value <= low < before.evaluation.value
    return bool(becomes_low or before.iteration < AFTER <= after.iteration)


def project(oracle: Oracle, state: LMState) -> LMState:
    """Return the state with which steps on the hidden weights go on."""
    network = oracle.objective
    assert isinstance(network, ShallowNetwork)
    n, x = network.hidden, state.evaluation.x
    features = network.features(x[:n])
    typical = (features.phi**2).sum() / features.phi.shape[1]
    if not 0 < typical < np.inf:
        return state
    least = eps_of(x) ** 2 * typical
    penalty = max(
        least, min(FIRST_PENALTY * typical, penalty_worth_a_share(state.evaluation.value, x[n:]))
    )
    hidden = ProjectedProblem(network, penalty, np.inf, oracle).start_from(x[:n], features)
    fields = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
    fields["scaling"] = state.scaling[:n]
    return ProjectedState(**fields, hidden=hidden, penalty=penalty, least_penalty=least)


def all_weights(state: ProjectedState) -> LMState:
    """Return the state with which steps on all weights go on."""
    names = [field.name for field in dataclasses.fields(LMState)]
    fields = {name: getattr(state, name) for name in names}
    return LMState(**fields | {"damping": FIRST_DAMPING, "scaling": 0 * state.evaluation.x})


def penalty_worth_a_share(value: Scalar, output: Column) -> Any:
    """Return the gamma with gamma/2 |a|^2 a tenth of f."""
    squares = inner(output, output)
    return PENALTY_SHARE * 2 * value / squares if squares > 0 else np.inf


def hidden_step(oracle: Oracle, state: ProjectedState) -> LMState:
    """Take a step on the hidden weights; return a state of all weights where that gains no more."""
    network: Any = oracle.objective
    penalty, least, at = state.penalty, state.least_penalty, state.hidden
    problem: Any = ProjectedProblem(network, penalty, state.evaluation.value, oracle)
    curvature = problem.curvature(at)
    system = damped_system(oracle, curvature, at, state.scaling, state.norm2)
    start = state.start._replace(x=state.start.x[: at.x.size])
    trial = accepted_step(problem, dataclasses.replace(state, start=start), at, curvature, system)
    after = at if trial is None else problem.evaluate(at.x - trial.step)
    slow = at.value - after.value <= SLOW * after.value
    slow_steps = state.slow_steps + 1 if slow and trial is not None else 0

    known = after.aux
    if trial is None:
        wanted, damping, next_damping = penalty / FURTHER, state.gamma, FIRST_DAMPING
    else:
        wanted = max(penalty_worth_a_share(known.value, known.output), penalty / MOST_FALL)
        damping, next_damping = trial.damping, trial.next_damping
    if wanted < penalty / 2:  # a new penalty takes another factorisation
        penalty = max(least, wanted)
        again = ProjectedProblem(network, penalty, np.inf, oracle)
        after = again.start_from(after.x, known.features)

    is_lower = bool(after.aux.value < state.evaluation.value)
    evaluation, norm2, eta = state.evaluation, state.norm2, state.eta
    if is_lower:
        x = np.concatenate([after.x, after.aux.output])
        evaluation = network.from_features(x, after.aux.features)
        norm2, eta = inner(evaluation.gradient, evaluation.gradient), 1.0
    new = dataclasses.replace(
        state,
        evaluation=evaluation,
        computed_value=evaluation.value,
        norm2=norm2,
        iteration=state.iteration + is_lower,
        eta=eta,
        gamma=damping,
        damping=next_damping,
        scaling=system.scaling,
        hidden=after,
        penalty=penalty,
        slow_steps=slow_steps,
        is_first=False,
    )
    goes_on = slow_steps < PATIENCE and (is_lower or penalty > least)
    return new if goes_on else all_weights(new)
