"""A point and a line from it: the one door between an objective and a method."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from cfgd._core.either import Plain, mapped
from cfgd._core.linalg import inner
from cfgd._core.types import Etas, LineValues, Numbers, Scalar, Vector, Vectors


class Evaluation(Plain, eqx.Module):
    """An objective seen at x: what was computed there and is worth keeping.

    `carried` is what an objective updates along a step instead of computing it anew:
    residuals, predictions.
    """

    x: Vector
    value: Scalar
    gradient: Vector
    aux: Any = None


class Costs(NamedTuple):
    """What a line's answers cost, in gradients (a value and its gradient together count as one)."""

    curvature: float = 2.0
    value: float = 0.5  # of one eta


class Line(Plain, eqx.Module):
    """The line x - eta d: its slope at x is -<g, d>, and `to` goes along it.

    This one looks at every point anew, which is right for any objective; one with structure has a
    line of its own that does the same for less.
    """

    objective: Any  # an Objective, whose file imports this one
    point: Evaluation
    d: Vector
    slope: Scalar  # <g, d>

    descends_on_f: ClassVar[bool] = True  # whether slope and curvature are those of f

    @property
    def costs(self) -> Costs:
        return Costs()

    @property
    def of_f(self) -> Line:
        """The line of f itself, where this one is of another function with the same values."""
        return self

    def curvature(self) -> Scalar:
        """d'Hd at the point."""
        return inner(self.d, self.objective.hessian_times(self.point, self.d))

    def values(self, etas: Etas) -> LineValues:
        """f(x - eta d) for every eta, a number or one for each coordinate, as one batch."""
        return mapped(lambda eta: self.objective.value(self.point.x - eta * self.d), etas)

    def to(self, eta: Numbers) -> Evaluation:
        """The point x - eta d."""
        return self.objective.evaluate(self.point.x - eta * self.d)


def linear_slopes(point: Evaluation, D: Vector, t: Vectors) -> tuple[Vectors, Vectors]:
    """Coordinate slopes and curvatures at the rows of t, where f_j'' is D_j throughout."""
    return point.gradient + D * (t - point.x), jnp.broadcast_to(D, t.shape)


def slope_along(point: Evaluation, d: Vector, known: Scalar | None) -> Scalar:
    """<g, d>, unless it is known already."""
    return inner(point.gradient, d) if known is None else known
