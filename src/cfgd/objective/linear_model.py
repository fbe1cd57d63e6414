"""A sum of losses of Xw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cfgd import _check
from cfgd.algebra import inner
from cfgd.either import Unbound, made, on_host, space
from cfgd.objective.base import Objective, normal_of
from cfgd.objective.design import Dense, Sparse, design
from cfgd.objective.line import Costs, Line, Point, linear_slopes, slope_along
from cfgd.objective.loss import Loss, loss_of
from cfgd.objective.model import Model, Normal
from cfgd.objective.samples import penalty, targets, weights
from cfgd.precision import numpy_in_numpy_out, precision_of, to_numpy
from cfgd.types import Data, Numbers, Samples, Scalar, Vector, Vectors

# columns whose products with one another cost a gradient: a product of matrices reads X less often
COLUMNS = 30
# columns for which a matrix costs little, and from which on it costs many gradients
FEW, MANY = 512, 120


class PredictionLine(Line):
    """Along the line predictions are Xw - eta X d: a candidate costs O(m), once X d is there."""

    product: Float[Array, " m"]  # X d

    @property
    def costs(self) -> Costs:
        return Costs(0.0, 0.0)

    def curvature(self) -> Scalar:
        f = self.objective
        _, curvature = f.loss.derivatives(self.point.carried, f.y)
        along = inner(f.sample_weight * curvature * self.product, self.product)
        return along + f.l2 * inner(self.d, self.d)

    def values(self, etas: Float[Array, " n *d"]) -> Float[Array, " n"]:
        if etas.ndim != 1:
            return super().values(etas)

        def value(eta: Scalar) -> Scalar:
            return self.objective.value_of(*self._moved(eta))

        return jax.vmap(value)(etas)

    def to(self, eta: Numbers) -> Point:
        return super().to(eta) if jnp.ndim(eta) != 0 else self.objective.point(*self._moved(eta))

    def _moved(self, eta: Scalar) -> tuple[Vector, Float[Array, " m"]]:
        return self.point.x - eta * self.d, self.point.carried - eta * self.product


class LinearModel(Objective):
    r"""f(w) = sum_i s_i loss((Xw)_i, y_i) + l2 |w|^2 / 2.

    `loss` is "logistic" (labels 0/1 or -1/1), "squared", "poisson" (counts, rate exp(Xw)),
    "huber" or any JAX function of (prediction, target). X is dense or a scipy.sparse matrix.

    The predictions Xw are carried along: a step costs a product with X and one with X', and a
    search along a direction only O(m) for each candidate. Moving coordinate j changes prediction
    i by X_ij alone, so all coordinate slopes at s nodes cost O(s m d), not s d gradients.

    >>> import cfgd
    >>> f = cfgd.LinearModel([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [0, 1, 1], l2=0.1)
    >>> print(round(float(f.value([0.0, 0.0])), 6), f.gradient([0.0, 0.0]))
    2.079442 [-0.5 -1.5]
    """

    X: Dense | Sparse
    y: Data
    loss: Loss
    l2: Data
    sample_weight: Data

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: str | Callable[[Any, Any], Any] = "logistic",
        l2: Any = 0.0,
        sample_weight: Any = None,
    ) -> None:
        owner = "LinearModel"
        self.loss = loss_of(owner, loss)
        self.X = design(owner, X)
        m, _ = self.X.shape
        y = targets(owner, y, m, self.X.dtype)
        self.y = self.loss.targets(owner, y)
        self.l2 = penalty(owner, l2, y.dtype)
        self.sample_weight = weights(owner, sample_weight, m, y.dtype)
        self.loss.check(owner, precision_of(self.X, self.y))

    def check(self, owner: str, x: Vector) -> None:
        """Nothing to refuse: the value is a number by construction."""

    @property
    def is_quadratic(self) -> bool:
        return self.loss.is_quadratic

    @property
    def drifts(self) -> bool:
        return True

    @property
    def has_gauss_newton(self) -> bool:
        return True

    @property
    def dimension(self) -> int:
        return self.X.shape[1]

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        x = jnp.asarray(_check.floating("LinearModel", "x", x))
        return self.value_of(x, self.X.times(x))

    def value_of(self, x: Vector, p: Samples) -> Scalar:
        """f at x, its predictions p = Xx being known."""
        return inner(self.sample_weight, self.loss.value(p, self.y)) + self.l2 * inner(x, x) / 2

    def at(self, x: Vector) -> Point:
        return self.point(x, self.X.times(x))

    def point(self, x: Vector, p: Samples) -> Point:
        """The point at x, its predictions p = Xx being known."""
        slope, _ = self.loss.derivatives(p, self.y)
        gradient = self.X.back(self.sample_weight * slope) + self.l2 * x
        return made(Point, x=x, value=self.value_of(x, p), gradient=gradient, carried=p)

    def line(self, point: Point, d: Vector, slope: Scalar | None = None) -> Line:
        return PredictionLine(self, point, d, slope_along(point, d, slope), self.X.times(d))

    def slopes(self, point: Point, t: Vectors) -> tuple[Vectors, Vectors]:
        if self.is_quadratic:
            return linear_slopes(point, self.X.squares(self.sample_weight) + self.l2, t)
        slope, curvature = self.X.column_sums(
            self.loss.derivatives, point.carried, self.y, self.sample_weight, t - point.x
        )
        return slope + self.l2 * t, curvature + self.l2

    def diagonal_at(self, point: Point) -> Vector:
        """The curvatures f_j''(x_j): for a linear model Gauss-Newton's and the exact ones."""
        _, curvature = self.loss.derivatives(point.carried, self.y)
        return self.X.squares(self.sample_weight * curvature) + self.l2

    def gauss_newton_diagonal(self, point: Point) -> Vector:
        return self.diagonal_at(point)

    def in_numpy(self) -> Unbound | None:
        if self.loss.needs_jax:
            return None
        f = to_numpy(self)
        sparse = isinstance(f.X, Sparse)
        return Unbound(eqx.tree_at(lambda f: f.X, f, f.X.in_scipy()) if sparse else f)

    @property
    def has_model(self) -> bool:
        return True

    def model_shape(self, point: Point) -> tuple[int, ...] | None:
        return self.X.shape if isinstance(self.X, Dense) else None

    def affords(self, shape: tuple[int, ...]) -> bool:
        """Rows are there already: of few columns the matrix costs less than its products would."""
        return min(shape) <= FEW or super().affords(shape)

    @property
    def model_is_costly(self) -> bool:
        return not isinstance(self.X, Dense) or self.dimension > MANY

    def normal(self, point: Point, old: Vector) -> Normal:
        """By blocks of rows on the host: X may be as large as the memory allows."""
        if not on_host(point.x):
            return Objective.normal(self, point, old)
        return normal_of(self.X.gram(self._weight_at(point), self.l2), old)  # type: ignore[union-attr]

    def _weight_at(self, point: Point) -> Samples:
        _, curvature = self.loss.derivatives(point.carried, self.y)
        return self.sample_weight * space(curvature).maximum(curvature, 0)

    def model(self, point: Point) -> Model:
        """X' diag(s l'') X + l2, where the loss is convex."""
        weight = self._weight_at(point)
        root = space(weight).sqrt(weight)
        return Model(root[:, None] * self.X.X, self.l2)  # type: ignore[union-attr]

    @property
    def model_is_exact(self) -> bool:
        return self.loss.is_convex

    def model_cost(self, shape: tuple[int, ...]) -> float:
        return shape[1] / COLUMNS

    def dispersion(self, value: float, freedom: int) -> float | None:
        if float(self.l2) > 0:
            return None  # what is shrunk is not spread around the truth
        return self.loss.dispersion(value, freedom)

    def model_times(self, point: Point, v: Vector) -> Vector:
        return self.X.back(self._weight_at(point) * self.X.times(v)) + self.l2 * v

    def hessian_times(self, point: Point, v: Vector) -> Vector:
        _, curvature = self.loss.derivatives(point.carried, self.y)
        return self.X.back(self.sample_weight * curvature * self.X.times(v)) + self.l2 * v

    @property
    def product_cost(self) -> float:
        return 1.0

    def slopes_cost(self, s: int, d: int) -> float:
        return 0.0 if self.is_quadratic else float(s)
