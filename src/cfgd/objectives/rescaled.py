"""An objective times a number, so that squares of gradients neither underflow nor overflow."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import PyTree

from cfgd._core.pytrees import Structure
from cfgd._core.types import DType, Etas, LineValues, Number, Numbers, Scalar, Vector, Vectors
from cfgd.objectives.base import Objective, Traits
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation, Line, LineCosts, slope_along

# Sizes of gradients whose fourth powers neither overflow nor underflow, with a margin for the small
# gradients at the end of a run: with data of size s gradients have the size s, and g'Hg has s^4.
SAFE = {np.dtype(np.float64): (1e-60, 1e60), np.dtype(np.float32): (1e-5, 1e8)}


def safe_factor(largest: float, dtype: DType, may_grow: bool = False) -> float:
    """Return the power of four that brings the largest entry of a gradient to a safe size.

    It is 1 if the gradient is safe. Products with a power of two are exact, and so are those of
    residuals with its root. The gradient is brought to one; where it `may_grow` by many orders on
    the way to a minimum, a tiny one is brought to the root of the least safe size only.
    """
    least, most = SAFE[np.dtype(dtype)]
    if largest == 0 or least <= largest <= most:
        return 1.0
    wanted = least**0.5 if may_grow and largest < least else 1.0
    return float(4.0 ** -np.round(np.log2(largest / wanted) / 2))


@dataclasses.dataclass(frozen=True, eq=False)
class RescaledLine(Line):
    """A line of f, with slope, curvature and values multiplied by the factor."""

    wrapped: Line

    @property
    def costs(self) -> LineCosts:
        return self.wrapped.costs

    def curvature(self) -> Scalar:
        return self.objective.factor * self.wrapped.curvature()

    def values(self, etas: Etas) -> LineValues:
        return self.objective.factor * self.wrapped.values(etas)

    def to(self, eta: Numbers) -> Evaluation:
        return self.objective.rescale(self.wrapped.to(eta))


def without_factor(objective: Objective) -> tuple[Objective, Number]:
    """Return the objective in a `Rescaled` and its factor; other objectives with the factor 1."""
    if isinstance(objective, Rescaled):
        return objective.objective, objective.factor
    return objective, 1.0


class Rescaled(Objective):
    """factor * f: all results of f are multiplied by the factor."""

    objective: Any  # an Objective; a HostObjective in Auto's solvers
    factor: Scalar

    def rescale(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation of f as one of factor * f, which keeps that of f in `aux`."""
        value, gradient = self.factor * evaluation.value, self.factor * evaluation.gradient
        return Evaluation(evaluation.x, value, gradient, evaluation)

    def value(self, x: PyTree) -> Any:
        return self.factor * self.objective.value(x)

    @property
    def shape(self) -> tuple[int, ...] | None:
        return self.objective.shape

    @property
    def traits(self) -> Traits:
        return self.objective.traits

    def evaluate(self, x: Vector) -> Evaluation:
        return self.rescale(self.objective.evaluate(x))

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        slope = slope_along(evaluation, d, slope)
        wrapped = self.objective.line(evaluation.aux, d, slope / self.factor)
        return RescaledLine(self, evaluation, d, slope, wrapped)

    def coordinate_derivatives(self, evaluation: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        slopes, curvatures = self.objective.coordinate_derivatives(evaluation.aux, t)
        return self.factor * slopes, self.factor * curvatures

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        return self.factor * self.objective.hessian_times(evaluation.aux, v)

    def curvature(self, evaluation: Evaluation) -> Curvature | None:
        found = self.objective.curvature(evaluation.aux)
        return None if found is None else found.scaled(self.factor)

    def on_host(self) -> Objective | None:
        inside = self.objective.on_host()
        return None if inside is None else Rescaled(inside, np.asarray(self.factor)[()])

    def raveled(self, structure: Structure) -> Objective:
        return Rescaled(self.objective.raveled(structure), self.factor)

    def check(self, owner: str, x: Vector) -> None:
        self.objective.check(owner, x)
