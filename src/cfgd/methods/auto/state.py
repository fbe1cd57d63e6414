"""The contract of Auto's solvers: their states, and when a predicted change is negligible."""

from __future__ import annotations

import abc
import dataclasses
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from cfgd._core.linalg import eps_of, inner, weighted_norm
from cfgd._core.types import Number, Scalar, Vector
from cfgd.methods.auto.oracle import Oracle
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# Share of the distance from the start that is added to the size of x before steps are compared with
# it: at a solution near zero the size of x alone would be too small.
TRAVELLED = 1e-3
# Ratio of the decrease of f since the start to the decrease that the curvature at x explains, above
# which the start is replaced by a later point. For fourth powers it is reached when x is 1e4 times
# nearer to the minimum than the start.
BAD_START = 1e8
# Multiples of x - x0, up to 1/eps, at which a function is evaluated that may be unbounded, and the
# factor by which its decrease must grow from one to the next: the root of their ratio. Every
# unbounded polynomial satisfies this, and no function that has a minimum within these distances
# does.
RAY, RAY_GROWTH = 10.0 ** np.arange(2, 18, 2), 10.0
# If f rises along the ray, the test is repeated after f has decreased by this factor more.
NEXT_FALL = 1e4
# A predicted decrease below so many rounding units of f is hidden by rounding.
HIDDEN_UNITS = 1e3
# Predicted decreases of a sum of squares between tolerance^0.75 f and f/4: such a point is neither
# a minimum nor near one with zero residuals.
SOME_DECREASE, MOST_OF_F = 0.75, 0.25
# Rounding units of the model within which residuals count as rounding errors of a sum.
RESIDUAL_UNITS = 8


class Goal(NamedTuple):
    """The tolerances of a run.

    The gradient is small where |g|^2 <= `floor`. A run has converged where the gradient is small
    and no predicted change is above `tolerance`, or where |g|^2 <= `absolute2`.
    """

    tolerance: Number
    floor: Number = 0.0
    absolute2: Number = -1.0


class Start(NamedTuple):
    """The start of a run, with which later points are compared."""

    x: Vector
    value: Scalar
    norm: Scalar  # of the gradient
    scale: Scalar  # of values: |f| + |g| (1 + |x|)

    @classmethod
    def of(cls, evaluation: Evaluation) -> Start:
        x, value, g = evaluation[:3]
        norm = np.sqrt(inner(g, g))
        return cls(x, value, norm, abs(value) + norm * (1 + np.sqrt(inner(x, x))))

    def with_scale_of(self, evaluation: Evaluation) -> Start:
        """Return the start with the scale of a later point, if its own scale is zero."""
        return self if self.scale > 0 else self._replace(scale=Start.of(evaluation).scale)

    def is_bad_for(self, evaluation: Evaluation, scaling: Vector) -> bool:
        """Return whether the distance from the start is no measure of the size of x.

        With curvatures like those at x, f would have decreased by half the squared distance in the
        norm of `scaling`. If it decreased by far more or less, f is very different near the start.
        """
        fall, away = self.value - evaluation.value, evaluation.x - self.x
        expected = inner(scaling * away, away) / 2
        return bool(not expected / BAD_START <= fall <= BAD_START * expected)

    def has_fallen_far(self, value: Scalar) -> bool:
        """Return whether f fell by 1/eps^2 times its scale, as unbounded functions do."""
        if value == -np.inf:
            return True
        return bool(self.scale > 0 and value < self.value - self.scale / eps_of(self.x) ** 2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SolverState:
    """The fields of a state that the loop, the history and the solution use.

    `evaluation.value` never increases: if a computed value is larger than the last one because of
    rounding, the last one is kept, and `computed_value` is the computed one.
    """

    evaluation: Evaluation
    computed_value: Scalar
    norm2: Scalar  # |g|^2
    start: Start
    iteration: int = 0
    eta: Number = np.nan
    gamma: Number = np.nan
    status: Status = Status.running
    forgot_start: bool = False  # `start` is a later point, because the first one was bad
    is_computed: bool = True  # the evaluation was computed, and not updated by recurrence


State = TypeVar("State", bound=SolverState)


class Solver(abc.ABC, Generic[State]):
    """An algorithm: `init` returns its state at the start, `step` the state one iteration later.

    A solver has no state itself. A step that ends the run sets `status`; it increases the iteration
    count only if x has moved.
    """

    @abc.abstractmethod
    def describe(self, objective: Objective) -> str:
        """Return a short description: the algorithm, and how it scales this objective."""

    @abc.abstractmethod
    def init(self, oracle: Oracle, x0: Vector) -> State:
        """Evaluate the start and return the state there."""

    @abc.abstractmethod
    def step(self, oracle: Oracle, state: State, goal: Goal) -> State:
        """Make one iteration, or end the run."""

    def restart(self, oracle: Oracle, state: State) -> State:
        """Return the state at the same x where f has become another function, with new samples."""
        return self.init(oracle, state.evaluation.x.copy())


def size_of_x(x: Vector, start: Start, scaling: Vector) -> Scalar:
    """Return |x| plus a share of |x - x0|, in the norm with weights `scaling`."""
    return weighted_norm(x, scaling) + TRAVELLED * weighted_norm(x - start.x, scaling)


def change_is_negligible(
    evaluation: Evaluation,
    start: Start,
    scaling: Vector,
    step: Vector,
    decrease: Scalar,
    length: Scalar,
    tolerance: Number,
) -> bool:
    """Return whether a predicted step changes neither f nor x by more than the tolerance.

    It must lower f by at most tolerance/100 |f| and move no coordinate by more than sqrt(tolerance)
    times its size, or be no longer than tolerance |x|.

    Parameters
    ----------
    step
        The predicted step, whose coordinates are compared with those of x.
    decrease
        The decrease of f that is predicted for it.
    length
        Its norm with weights `scaling`.
    """
    if length <= tolerance * size_of_x(evaluation.x, start, scaling):
        return True
    if not decrease <= tolerance / 100 * abs(evaluation.value):
        return False
    x = evaluation.x
    # in units of each coordinate, by its curvature; a flat one counts as no larger than the others
    typical = np.minimum(
        weighted_norm(x, scaling) / np.sqrt(x.size * scaling), np.sqrt((x * x).mean())
    )
    sizes = abs(x) + TRAVELLED * (abs(x - start.x) + typical)
    return bool((abs(step) <= tolerance**0.5 * sizes).all())


def still_falls(
    evaluation: Evaluation, scaling: Vector, decrease: Scalar, tolerance: Number
) -> bool:
    """Return whether a sum of squares continues to decrease to a value that is not zero.

    If the start is far away, a step may be short relative to the distance from it long before it is
    short relative to x. Near a minimum with residuals the predicted decrease is small relative to
    f; near one with zero residuals it is most of f; and residuals at the level of rounding errors
    do not decrease further.
    """
    f = evaluation.value
    model2 = (scaling * evaluation.x**2).max()  # of the model whose residuals they are
    if f <= (RESIDUAL_UNITS * eps_of(f)) ** 2 * model2:
        return False
    return bool(tolerance**SOME_DECREASE * f < decrease < MOST_OF_F * f)


def decrease_is_hidden(
    evaluation: Evaluation, start: Start, scaling: Vector, decrease: Number, tolerance: Number
) -> bool:
    """Return whether a predicted decrease of f is negligible, or hidden by rounding.

    It is compared with f, and with the decrease of f since the start unless the start is bad: on a
    quadratic, a gradient that has fallen by the factor `tolerance` predicts `tolerance`^2 times
    that decrease.
    """
    f = evaluation.value
    if decrease <= max(tolerance / 100, HIDDEN_UNITS * eps_of(f)) * abs(f):
        return True
    is_small = decrease <= tolerance**2 * (start.value - f)
    return bool(is_small and not start.is_bad_for(evaluation, scaling))


def detect_unbounded(oracle: Oracle, start: Start, evaluation: Evaluation) -> tuple[Start, bool]:
    """Return the start to compare later points with, and whether f decreases without bound.

    f is unbounded if it has decreased by a large factor and continues to decrease along the ray
    from the start through x. A large factor alone proves nothing if value and gradient of the start
    nearly underflow, as those of -exp(-|x|^2) do far from its minimum; the scale is then increased.
    """
    start = start.with_scale_of(evaluation)
    if not start.has_fallen_far(evaluation.value):
        return start, False
    fall = fall0 = start.value - evaluation.value
    for multiple in RAY:
        if fall == np.inf:
            break
        further = start.value - oracle.value(start.x + multiple * (evaluation.x - start.x))
        if not further >= RAY_GROWTH * fall:
            return start._replace(scale=NEXT_FALL * eps_of(start.x) ** 2 * fall0), False
        fall = further
    return start, True


def makes_progress(old: Evaluation, value: Scalar, norm2: Scalar, least_norm2: Scalar) -> bool:
    """Return whether f decreased beyond rounding errors, or |g|^2 to half its least value."""
    rounding = 4 * eps_of(old.x) * abs(old.value)
    return bool(value < old.value - rounding or norm2 < least_norm2 / 2)
