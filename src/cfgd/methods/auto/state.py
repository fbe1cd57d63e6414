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

# Share of the distance from the start that is added to the size of x, with which steps are
# compared: at a solution near zero the size of x alone would be nothing.
TRAVELLED = 1e-3


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
        """Take the scale from a later point where value and gradient were zero at the start."""
        return self if self.scale > 0 else self._replace(scale=Start.of(evaluation).scale)

    def is_unbounded_at(self, value: Scalar) -> bool:
        """Return whether f fell by 1/eps^2 times its scale, as only an unbounded function does."""
        if value == -np.inf:
            return True
        return bool(self.scale > 0 and value < self.value - self.scale / eps_of(self.x) ** 2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SolverState:
    """The part of a state that the loop, the history and the solution read.

    `evaluation.value` never grows: where rounding makes a computed value larger than the last one,
    the last one is kept, and `computed_value` is the one that was computed.
    """

    evaluation: Evaluation
    computed_value: Scalar
    norm2: Scalar  # |g|^2
    start: Start
    iteration: int = 0
    eta: Number = np.nan
    gamma: Number = np.nan
    status: Status = Status.running
    is_computed: bool = True  # the evaluation was computed, and not updated by recurrence


State = TypeVar("State", bound=SolverState)


class Solver(abc.ABC, Generic[State]):
    """An algorithm: `init` returns its state at the start, `step` the state one iteration later.

    A solver holds no numbers of a run. A step that ends the run sets `status`; the iteration count
    stays where no step was made.
    """

    @abc.abstractmethod
    def describe(self, objective: Objective) -> str:
        """Return the name of the algorithm and how it scales this objective, in a few words."""

    @abc.abstractmethod
    def init(self, oracle: Oracle, x0: Vector) -> State:
        """Evaluate the start and return the state there."""

    @abc.abstractmethod
    def step(self, oracle: Oracle, state: State, goal: Goal) -> State:
        """Make one iteration, or end the run."""


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
    x = evaluation.x
    # in units of each coordinate, by its curvature; a flat one counts as no larger than the others
    typical = np.minimum(
        weighted_norm(x, scaling) / np.sqrt(x.size * scaling), np.sqrt((x * x).mean())
    )
    sizes = abs(x) + TRAVELLED * (abs(x - start.x) + typical)
    small = decrease <= tolerance / 100 * abs(evaluation.value) and bool(
        (abs(step) <= tolerance**0.5 * sizes).all()
    )
    return small or bool(length <= tolerance * size_of_x(x, start, scaling))


def gradient_exploded(state: SolverState) -> bool:
    """Return whether the gradient grew by 1/eps^0.6 while f fell, as at a pole."""
    start = state.start
    return bool(
        start.norm > 0
        and state.norm2 > start.norm**2 / eps_of(state.norm2) ** 1.2
        and state.evaluation.value < start.value
    )
