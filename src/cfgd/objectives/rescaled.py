"""c f for a number c: where the squares of f's own numbers would vanish or overflow."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from cfgd._core.types import Etas, Flag, LineValues, Number, Numbers, Scalar, Vector, Vectors
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Model
from cfgd.objectives.evaluation import Costs, Evaluation, Line, slope_along

# sizes of a gradient, of which third powers can be computed with, and what is left of it at the end
SAFE = {np.dtype(np.float64): (1e-60, 1e60), np.dtype(np.float32): (1e-8, 1e10)}


def safe_factor(largest: float, dtype: Any) -> float:
    """The power of two that brings the largest entry of a gradient to one; 1 if it is safe."""
    least, most = SAFE[np.dtype(dtype)]
    if largest == 0 or least <= largest <= most:
        return 1.0
    return float(2.0 ** -np.round(np.log2(largest)))


class ScaledLine(Line):
    """A line of f, its slope and values times the factor."""

    inner: Line

    @property
    def costs(self) -> Costs:
        return self.inner.costs

    def curvature(self) -> Scalar:
        return self.objective.factor * self.inner.curvature()

    def values(self, etas: Etas) -> LineValues:
        return self.objective.factor * self.inner.values(etas)

    def to(self, eta: Numbers) -> Evaluation:
        return self.objective.seen(self.inner.to(eta))


class Scaled(Objective):
    """factor * f: everything that is linear in f, so that nothing else is computed anew."""

    objective: Objective
    factor: Scalar

    def seen(self, point: Evaluation) -> Evaluation:
        """A point of f as one of factor * f."""
        return Evaluation(point.x, self.factor * point.value, self.factor * point.gradient, point)

    @property
    def is_quadratic(self) -> bool:
        return self.objective.is_quadratic

    @property
    def linear_slopes(self) -> bool:
        return self.objective.linear_slopes

    @property
    def drifts(self) -> bool:
        return self.objective.drifts

    @property
    def dimension(self) -> int | None:
        return self.objective.dimension

    @property
    def shape(self) -> tuple[int, ...] | None:
        return self.objective.shape

    def value(self, x: Any) -> Any:
        return self.factor * self.objective.value(x)

    def evaluate(self, x: Vector) -> Evaluation:
        return self.seen(self.objective.evaluate(x))

    def line(self, point: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        slope = slope_along(point, d, slope)
        inner = self.objective.line(point.aux, d, slope / self.factor)
        return ScaledLine(self, point, d, slope, inner)

    def coordinate_derivatives(self, point: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        slopes, curvatures = self.objective.coordinate_derivatives(point.aux, t)
        return self.factor * slopes, self.factor * curvatures

    def diagonal_at(self, point: Evaluation) -> Vector:
        return self.factor * self.objective.diagonal_at(point.aux)

    def hessian_times(self, point: Evaluation, v: Vector) -> Vector:
        return self.factor * self.objective.hessian_times(point.aux, v)

    @property
    def scaled_by(self) -> str | None:
        return self.objective.scaled_by

    def scaling_at(self, point: Evaluation) -> Vector:
        return self.factor * self.objective.scaling_at(point.aux)

    @property
    def has_gauss_newton(self) -> bool:
        return self.objective.has_gauss_newton

    def gauss_newton_diagonal(self, point: Evaluation) -> Vector:
        return self.factor * self.objective.gauss_newton_diagonal(point.aux)

    @property
    def has_model(self) -> bool:
        return self.objective.has_model

    def model_shape(self, point: Evaluation) -> tuple[int, ...] | None:
        return self.objective.model_shape(point.aux)

    def affords(self, shape: tuple[int, ...]) -> bool:
        return self.objective.affords(shape)

    def model(self, point: Evaluation) -> Model:
        J, ridge, r = self.objective.model(point.aux)
        root = jnp.sqrt(self.factor)
        return Model(root * J, self.factor * ridge, None if r is None else root * r)

    def damping(self, point: Evaluation, diagonal: Vector) -> Vector:
        own = self.objective.damping(point.aux, diagonal / self.factor)
        return self.factor * own

    def model_times(self, point: Evaluation, v: Vector) -> Vector:
        return self.factor * self.objective.model_times(point.aux, v)

    @property
    def model_is_exact(self) -> bool:
        return self.objective.model_is_exact

    @property
    def is_function(self) -> bool:
        return self.objective.is_function

    def dispersion(self, value: float, freedom: int) -> float | None:
        """Of f, whose matrix is that of factor * f divided by the factor."""
        inside = self.objective.dispersion(value / float(self.factor), freedom)
        return None if inside is None else float(self.factor) * inside

    def model_cost(self, shape: tuple[int, ...]) -> float:
        return self.objective.model_cost(shape)

    @property
    def hidden(self) -> int | None:
        return self.objective.hidden

    def solved(self, point: Evaluation, tolerance: Number) -> Flag:
        return self.objective.solved(point.aux, tolerance)

    @property
    def is_plain(self) -> bool:
        return self.objective.is_plain

    @property
    def resolution(self) -> Any:
        return jnp.maximum(self.factor, 1) * self.objective.resolution

    def error(self) -> Exception | None:
        return self.objective.error()

    def slopes_cost(self, s: int, d: int) -> float:
        return self.objective.slopes_cost(s, d)

    def diagonal_cost(self, d: int) -> float:
        return self.objective.diagonal_cost(d)

    @property
    def product_cost(self) -> float:
        return self.objective.product_cost
