"""What all of Auto's solvers keep of a run, and when a predicted change is negligible."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.linalg import eps_of, inner, weighted_norm
from cfgd._core.types import Number, Scalar, Vector
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# x counts as no smaller than this part of the way from the start: the solution may be zero.
AWAY = 1e-3


class Goal(NamedTuple):
    """What a run is to reach.

    The gradient is small where |g|^2 <= `floor`; a run has then converged if moreover no predicted
    change is above `tolerance`. It has converged without that where |g|^2 <= `absolute2`.
    """

    tolerance: Number
    floor: Number = 0.0
    absolute2: Number = -1.0


class Start(NamedTuple):
    """The start of a run, with which later values are compared."""

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

    def is_far_above(self, value: Scalar) -> bool:
        """Return whether f fell by 1/eps^2 times its scale at the start: it falls without end."""
        if value == -np.inf:
            return True
        return bool(self.scale > 0 and value < self.value - self.scale / eps_of(self.x) ** 2)


@dataclasses.dataclass(frozen=True)
class SolverState:
    """The part of a state that the loop, the history and the solution read.

    `evaluation.value` never grows: where rounding makes a computed value larger than the last one,
    the last one is kept, and `computed_value` is what was computed.
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


def size_of_x(x: Vector, start: Start, scaling: Vector) -> Scalar:
    """Return the norm of x with weights `scaling`, with a part of the way from the start added."""
    return weighted_norm(x, scaling) + AWAY * weighted_norm(x - start.x, scaling)


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

    Parameters
    ----------
    step
        The predicted step, whose coordinates are compared with those of x.
    decrease
        What it is predicted to lower f by.
    length
        Its norm with weights `scaling`.
    """
    x = evaluation.x
    typical = np.sqrt((x * x).mean())
    sizes = abs(x) + AWAY * (abs(x - start.x) + typical)
    small = decrease <= tolerance / 100 * abs(evaluation.value) and bool(
        (abs(step) <= tolerance**0.5 * sizes).all()
    )
    return small or bool(length <= tolerance * size_of_x(x, start, scaling))


def gradient_exploded(state: Any) -> bool:
    """Return whether the gradient grew by 1/eps^0.6 while f fell, as at a pole."""
    start = state.start
    return bool(
        start.norm > 0
        and state.norm2 > start.norm**2 / eps_of(state.norm2) ** 1.2
        and state.evaluation.value < start.value
    )
