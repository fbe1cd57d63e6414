"""The evaluation of an objective at a point, and the line from that point."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp

from cfgd._core.linalg import inner, map_rows
from cfgd._core.types import Etas, LineValues, Numbers, Scalar, Vector, Vectors


class Evaluation(NamedTuple):
    """Value and gradient of an objective at x.

    `aux` holds intermediate results that the objective reuses at this point, or updates along a
    line: residuals, predictions, activations.
    """

    x: Vector
    value: Scalar
    gradient: Vector
    aux: Any = None


class LineCosts(NamedTuple):
    """Costs of a line in gradients; a value and its gradient together count as one."""

    curvature: float = 2.0
    value: float = 0.5  # of one eta


@dataclasses.dataclass(frozen=True, eq=False)
class Line:
    """The objective along x - eta d.

    This class evaluates the objective at every point. Objectives with structure have subclasses
    that are cheaper.
    """

    objective: Any  # an Objective, whose module imports this one
    evaluation: Evaluation
    d: Vector
    slope: Scalar  # <g, d>: f falls with this slope at eta = 0

    descends_on_f: ClassVar[bool] = True  # whether slope and curvature are those of f

    @property
    def costs(self) -> LineCosts:
        return LineCosts()

    @property
    def of_f(self) -> Line:
        """The line of f itself, if this one is of f with a penalty."""
        return self

    def curvature(self) -> Scalar:
        """Return d'Hd at eta = 0."""
        return inner(self.d, self.objective.hessian_times(self.evaluation, self.d))

    def values(self, etas: Etas) -> LineValues:
        """Return f(x - eta d) for every eta: a number, or one for each coordinate."""
        x = self.evaluation.x
        return map_rows(lambda eta: self.objective.value(x - eta * self.d), etas)

    def to(self, eta: Numbers) -> Evaluation:
        """Return the evaluation at x - eta d."""
        return self.objective.evaluate(self.evaluation.x - eta * self.d)


def linear_derivatives(
    evaluation: Evaluation, diagonal: Vector, t: Vectors
) -> tuple[Vectors, Vectors]:
    """Return coordinate slopes and curvatures at the rows of t where f_j'' is constant."""
    slopes = evaluation.gradient + diagonal * (t - evaluation.x)
    return slopes, jnp.broadcast_to(diagonal, t.shape)


def slope_along(evaluation: Evaluation, d: Vector, known: Scalar | None) -> Scalar:
    """Return <g, d>, which may be `known` already."""
    return inner(evaluation.gradient, d) if known is None else known
