"""Variable projection for networks: Levenberg-Marquardt steps on the hidden weights only.

The output weights a enter f quadratically. For given hidden weights w they are the minimiser of
|Phi a - y|^2 / 2 + gamma/2 |a|^2, where the columns of Phi are the features. That is the limit
point of the non-adaptive method with terminal 0 (Theorem 3). Its gamma falls with f, so that the
penalty is never more than a tenth of f. Without it, nearly dependent features would make a so large
that rounding errors hide a decrease of f. References: Golub and Pereyra (1973); Kaufman (1975) for
the Jacobian; Nocedal and Wright, section 10.2.

A network with more weights than samples starts with variable projection. With fewer weights the
reduced problem has more poor local minima, and the first steps are on all weights. When variable
projection makes no further progress, steps on all weights finish the run.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from cfgd._core.linalg import eps_of, inner, qr_basis, qr_reflections, solve_upper
from cfgd._core.records import changed, fields_of
from cfgd._core.types import Column, Number, Rows, Scalar, Vector
from cfgd.methods.auto.damped_system import damped_system
from cfgd.methods.auto.levenberg_marquardt import (
    FIRST_DAMPING,
    LevenbergMarquardt,
    LMState,
    accepted_step,
)
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.select import can_factor
from cfgd.methods.auto.state import Goal, Solver
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Curvature, JacobianRows
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.network.model import Features, ShallowNetwork
from cfgd.objectives.rescaled import Rescaled, without_factor
from cfgd.status import Status

# In networks with fewer weights than samples, variable projection starts when f has fallen to this
# share of its first value, or after so many iterations. If it starts earlier, it ends in poor
# minima more often.
LOW, AFTER = 1e-3, 100
# First gamma, relative to the mean squared norm of a feature: the first steps on the hidden weights
# then meet output weights of moderate size.
FIRST_PENALTY = 1e-4
# Largest ratio of gamma/2 |a|^2 to f: a tenth, so that f dominates the sum that is minimised. And
# the largest factor by which gamma falls in one step, so that a single low value of f does not
# remove it.
PENALTY_SHARE, MOST_PENALTY_FALL = 0.1, 1e3
# Factor by which gamma falls if no step is accepted (not tuned): from the first gamma to eps^2 it
# takes fourteen such reductions.
PENALTY_FALL = 100.0
# Variable projection ends after so many successive steps that lower f by less than this share: five
# such steps lower it by 1.5 percent at most, and steps on all weights are then tried.
PATIENCE, SLOW = 5, 3e-3
# Least phi'^2 of a unit in the scaling of a step, so that a saturated unit does not take a huge
# one. It is less than the network's own, which has to scale steps of the output weights, too.
LEAST_SLOPE2 = 1e-5
# Cost of the features and a linear solve, in gradients: that of a value.
VALUE_COST = 0.5


class OutputSolution(NamedTuple):
    """`aux` of an evaluation of the reduced problem."""

    features: Features
    reflections: Rows  # of the QR factorisation of [Phi, y; sqrt(gamma) I, 0], see `linalg`
    tau: Column
    output: Column  # the output weights a
    residuals: Column  # Phi a - y, then sqrt(gamma) a
    value: Scalar  # of f, without the penalty


class ReducedOracle(Oracle):
    """The reduced problem: the minimum over a of f(w, a) + gamma/2 |a|^2 as a function of w.

    Parameters
    ----------
    network
        On the host.
    gamma
        The penalty.
    below
        Trials at which f, without the penalty, is not below this number have the value infinity, so
        that no step is accepted that only makes |a| smaller.
    """

    def __init__(self, network: ShallowNetwork, gamma: Number, below: Number, x0: Vector) -> None:
        super().__init__(network, x0)
        self.network, self.gamma, self.below = network, gamma, below

    def evaluate(self, x: Vector) -> Evaluation:
        at = self._solve_at(x)
        if at.gradient is None:
            # a minimises the reduced function, so that the derivative of a with w has no effect
            J, r = self._rows(at)
            self._last = at = at._replace(gradient=r @ J)
        return at

    def evaluate_from(self, w: Vector, features: Features) -> Evaluation:
        """Return the evaluation at w, whose features are known."""
        self._last = self._solve(w, features)
        return self.evaluate(w)

    def value(self, x: Vector) -> Scalar:
        self.cost += VALUE_COST
        at = self._solve_at(x)
        return at.value if at.aux.value < self.below else at.value + np.inf

    def residuals(self, curvature: Curvature, x: Vector) -> Column:
        assert curvature.residuals_at is not None
        self.cost += VALUE_COST
        return curvature.residuals_at(x)

    def curvature(self, evaluation: Evaluation) -> Curvature:
        at, (m, n) = evaluation.aux, evaluation.aux.features.phi.shape
        rows = self._rows(evaluation)

        def extra_damping() -> Vector:
            squares = (self.network.z**2).sum(0)[:, None] * at.output**2
            return LEAST_SLOPE2 * squares.reshape(-1)

        return Curvature(
            times=lambda v: rows.jacobian.T @ (rows.jacobian @ v),
            diagonal=lambda: (rows.jacobian**2).sum(0),
            shape=(m + n, evaluation.x.size),
            rows=lambda: rows,
            residuals_at=lambda w: self._solve(w, self.network.features(w)).aux.residuals,
            cost=1.0,
            extra_damping=extra_damping,
        )

    def _solve_at(self, w: Vector) -> Evaluation:
        """Return the evaluation at w, perhaps without its gradient."""
        if self._last is None or (w != self._last.x).any():
            self._last = self._solve(w, self.network.features(w))
        return self._last

    def _solve(self, w: Vector, features: Features) -> Evaluation:
        """Solve for the output weights by a QR factorisation; the gradient is None."""
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
        """Return Kaufman's Jacobian: that of N in w, projected off the span of the features."""
        features, reflections, tau, output, residuals, _ = evaluation.aux
        m, n = features.phi.shape
        change = self.network.hidden_rows(features.slope, output)
        Q = qr_basis(reflections[:, :n], tau[:n])
        rows = -(Q @ (Q[:m].T @ change))
        rows[:m] += change
        return JacobianRows(rows, residuals)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReducedState(LMState):
    """State while steps are taken on the hidden weights; `evaluation` is that of all weights."""

    reduced: Evaluation  # of the reduced problem
    penalty: Number  # gamma of the output weights
    least_penalty: Number  # a smaller one has no effect beyond rounding errors
    slow_steps: int = 0  # in a row


class VariableProjection(Solver[LMState]):
    """Levenberg-Marquardt on all weights, and on the hidden ones with the best output weights."""

    lm = LevenbergMarquardt()

    def describe(self, objective: Objective) -> str:
        return f"{self.lm.describe(objective)} with variable projection of the output weights"

    def init(self, oracle: Oracle, x0: Vector) -> LMState:
        state = self.lm.init(oracle, x0)
        curvature = oracle.curvature(state.evaluation)
        assert curvature is not None
        if can_factor(curvature) and is_wide(curvature):
            return reduce(oracle, state)
        return state

    def step(self, oracle: Oracle, state: LMState, goal: Goal) -> LMState:
        while isinstance(state, ReducedState):
            after = reduced_step(oracle, state)
            moved = after.iteration > state.iteration
            state = after
            if moved:
                return state
        after = self.lm.step(oracle, state, goal)
        if after.status is Status.running and reduces_now(oracle, state, after):
            return reduce(oracle, after)
        return after


def is_wide(curvature: Curvature) -> bool:
    """Return whether there are more weights than samples."""
    assert curvature.shape is not None
    return curvature.shape[0] < curvature.shape[1]


def reduces_now(oracle: Oracle, before: LMState, after: LMState) -> bool:
    """Return whether f became low in this iteration, or this is the last one to wait for that."""
    curvature = oracle.curvature(after.evaluation)
    assert curvature is not None
    if not can_factor(curvature) or is_wide(curvature):
        return False
    low = LOW * after.start.value
    becomes_low = after.evaluation.value <= low < before.evaluation.value
    return bool(becomes_low or before.iteration < AFTER <= after.iteration)


def reduce(oracle: Oracle, state: LMState) -> LMState:
    """Return the state with which steps on the hidden weights begin."""
    network, factor = without_factor(oracle.objective)
    assert isinstance(network, ShallowNetwork)
    n, x = network.hidden, state.evaluation.x
    features = network.features(x[:n])
    typical = (features.phi**2).sum() / features.phi.shape[1]
    if not 0 < typical < np.inf:
        return state
    least = eps_of(x) ** 2 * typical
    value = state.evaluation.value / factor
    penalty = min(FIRST_PENALTY * typical, penalty_of_share(value, x[n:]))
    penalty = max(least, penalty)
    reduced = ReducedOracle(network, penalty, np.inf, x[:n]).evaluate_from(x[:n], features)
    fields = fields_of(state, LMState)
    fields["scaling"] = state.scaling[:n]
    return ReducedState(**fields, reduced=reduced, penalty=penalty, least_penalty=least)


def all_weights(state: ReducedState) -> LMState:
    """Return the state with which steps on all weights continue."""
    fields = fields_of(state, LMState)
    return LMState(
        **fields | {"damping": FIRST_DAMPING, "scaling": np.zeros_like(state.evaluation.x)}
    )


def penalty_of_share(value: Scalar, output: Column) -> Number:
    """Return the gamma with which gamma/2 |a|^2 is a tenth of f."""
    squares = inner(output, output)
    return PENALTY_SHARE * 2 * value / squares if squares > 0 else np.inf


def reduced_step(oracle: Oracle, state: ReducedState) -> LMState:
    """Take a step on the hidden weights; return a state of all weights if they are next."""
    network, factor = without_factor(oracle.objective)
    assert isinstance(network, ShallowNetwork)
    penalty, least, at = state.penalty, state.least_penalty, state.reduced
    w0 = state.start.x[: at.x.size]
    value = state.evaluation.value / factor  # the reduced problem is that of the network itself
    problem = ReducedOracle(network, penalty, value, w0)
    curvature = problem.curvature(at)
    system = damped_system(problem, curvature, at, state.scaling, state.norm2)
    trial = accepted_step(problem, at, curvature, system, state.damping, w0)
    after = at if trial is None else problem.evaluate(at.x - trial.step)
    oracle.cost += problem.cost
    slow = at.value - after.value <= SLOW * after.value
    slow_steps = state.slow_steps + 1 if slow and trial is not None else 0

    known = after.aux
    if trial is None:
        wanted, damping, next_damping = penalty / PENALTY_FALL, state.gamma, FIRST_DAMPING
    else:
        wanted = max(penalty_of_share(known.value, known.output), penalty / MOST_PENALTY_FALL)
        damping, next_damping = trial.damping, trial.next_damping
    if wanted < penalty / 2:  # a smaller change is not worth another factorisation
        penalty = max(least, wanted)
        weaker = ReducedOracle(network, penalty, np.inf, w0)
        after = weaker.evaluate_from(after.x, known.features)

    is_lower = bool(after.aux.value < value)
    evaluation, norm2, eta = state.evaluation, state.norm2, state.eta
    if is_lower:
        x = np.concatenate([after.x, after.aux.output])
        evaluation = network.from_features(x, after.aux.features)
        if isinstance(oracle.objective, Rescaled):
            evaluation = oracle.objective.rescale(evaluation)
        norm2, eta = inner(evaluation.gradient, evaluation.gradient), 1.0
    new = changed(
        state,
        evaluation=evaluation,
        computed_value=evaluation.value,
        norm2=norm2,
        iteration=state.iteration + is_lower,
        eta=eta,
        gamma=damping,
        damping=next_damping,
        scaling=system.scaling,
        reduced=after,
        penalty=penalty,
        slow_steps=slow_steps,
        is_first=False,
    )
    continues = slow_steps < PATIENCE and (is_lower or penalty > least)
    return new if continues else all_weights(new)
