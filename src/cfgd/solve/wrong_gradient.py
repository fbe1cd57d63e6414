"""Detect a gradient that contradicts the values of the objective, after a run that failed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.linalg import inner
from cfgd.methods.base import MethodTraits
from cfgd.objectives.finite_differences import slopes_along
from cfgd.solve.solution import Solution
from cfgd.status import Status

# Endings to which a wrong gradient may lead. The others are tested where the value never fell.
FAILED = (Status.stalled, Status.saddle, Status.unbounded, Status.nonfinite)
WITHOUT_DECREASE = (Status.max_iterations, Status.stages_done)
# A slope by differences counts if its estimated error is at most this part of it. Random noise
# satisfies that by chance in less than one of a hundred runs; several points are tested.
SURE = 0.1
# A gradient contradicts the values where its slope differs from that of the values by more than
# half of the larger one: less would not keep a step along it from lowering f.
CONTRADICTS = 0.5
# At the start, where a wrong gradient may still point downhill, a difference of one percent, beyond
# ten times the error of the slope of values, is enough.
DIFFERS = 0.01
# The second point: a step along the gradient that is so long relative to x.
NEARBY = 1e-3


class Slopes(NamedTuple):
    """The slope of f along its gradient, by differences of values and by the gradient itself."""

    of_values: float
    of_gradient: float
    error: float  # of the slope of values

    @property
    def difference(self) -> float:
        return abs(self.of_values - self.of_gradient)

    @property
    def contradict(self) -> bool:
        larger = max(abs(self.of_values), self.of_gradient)
        return self.difference > CONTRADICTS * larger

    @property
    def differ(self) -> bool:
        return self.difference > max(DIFFERS * self.of_gradient, 10 * self.error)

    @property
    def have_opposite_signs(self) -> bool:
        return abs(self.of_values + self.of_gradient) <= 0.1 * self.of_gradient


class CountedEvaluation:
    """A function of x that returns value and gradient, or an empty tuple where it fails."""

    def __init__(self, evaluate: Callable[[np.ndarray], tuple[Any, ...]]) -> None:
        self.evaluate, self.count = evaluate, 0

    def value(self, x: np.ndarray) -> Any:
        self.count += 1
        found = self.evaluate(x)
        return found[0] if found else np.nan

    def slopes(self, x: np.ndarray) -> Slopes | None:
        """Return both slopes at x, or None where differences are too inaccurate."""
        self.count += 1
        found = self.evaluate(x)
        norm = np.sqrt(inner(found[1], found[1])) if found else 0.0
        if not (0 < norm < np.inf):
            return None
        for slope in slopes_along(self.value, x, found[1] / norm):
            if slope.error <= SURE * abs(slope.value):
                return Slopes(slope.value, float(norm), slope.error)
        return None


def diagnosed(
    solution: Solution,
    traits: MethodTraits,
    x: np.ndarray,
    start: np.ndarray,
    evaluate: Callable[[np.ndarray], tuple[Any, ...]],
    factor: float,
) -> Solution:
    """Return the solution with the status `wrong_gradient` where the gradient is wrong.

    It must contradict the values at x and near x, and differ from their slope at the start: near a
    minimum differences of values may be rounding alone, and those at the start are not.

    Parameters
    ----------
    solution
        That of a run that ended.
    x
        Its x as a vector.
    start
        Where the run began.
    evaluate
        Returns value and gradient of `factor` times f, or an empty tuple where f fails.
    """
    values = solution.history["value"]
    never_fell = solution.status in WITHOUT_DECREASE and solution.value >= values[0]
    if solution.status not in FAILED and not never_fell:
        return solution
    counted = CountedEvaluation(evaluate)
    at_x = counted.slopes(x)
    near_x = at_start = None
    if at_x is not None and at_x.contradict:
        near_x = counted.slopes(x + NEARBY * np.where(x == 0, abs(x).max() or 1.0, x))
    if near_x is not None and near_x.contradict:
        at_start = counted.slopes(start)
    evaluations = solution.evaluations + counted.count
    if at_x is None or near_x is None or at_start is None or not at_start.differ:
        return dataclasses.replace(solution, evaluations=evaluations)
    has_wrong_sign = at_x.have_opposite_signs and near_x.have_opposite_signs
    verdict = "it seems to have the wrong sign" if has_wrong_sign else "it seems to be wrong"
    sentence = (
        f"Along the gradient at `x`, values have the slope {at_x.of_values / factor:.3g} and the "
        f"gradient says {at_x.of_gradient / factor:.3g}: {verdict}."
    )
    found = with_diagnosis(solution, traits, Status.wrong_gradient, sentence)
    return dataclasses.replace(found, evaluations=evaluations)


def with_diagnosis(
    solution: Solution, traits: MethodTraits, status: Status, sentence: str
) -> Solution:
    """Return the solution with the status that explains its end, in place of the advice for it."""
    details = solution.details.removesuffix(traits.advice.get(solution.status, "")).rstrip()
    return dataclasses.replace(solution, status=status, details=f"{sentence} {details}")
