"""A sum of losses of Xw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from cfgd.objective.base import Objective, Point, inner
from cfgd.objective.design import design, penalty, targets, weights
from cfgd.objective.loss import Loss, loss_of
from cfgd.precision import numpy_in_numpy_out


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

    X: Any
    y: Any
    loss: Loss
    l2: Any
    sample_weight: Any

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
        y = targets(owner, y, self.X)
        self.y = self.loss.targets(owner, y)
        self.l2 = penalty(owner, l2, y)
        self.sample_weight = weights(owner, sample_weight, m, y)

    @property
    def is_quadratic(self) -> bool:
        return self.loss.is_quadratic

    @property
    def drifts(self) -> bool:
        return True

    @property
    def curvature_cost(self) -> float:
        return 0.0

    @property
    def product_cost(self) -> float:
        return 1.0

    @property
    def value_cost(self) -> float:
        return 0.0  # O(m), once the image is there

    @property
    def dimension(self) -> int:
        return self.X.shape[1]

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        x = jnp.asarray(x)
        return self._value(x, self.X.times(x))

    def _value(self, x: Any, p: Any) -> Any:
        return inner(self.sample_weight, self.loss.value(p, self.y)) + self.l2 * inner(x, x) / 2

    def at(self, x: Any) -> Point:
        return self._point(x, self.X.times(x))

    def _point(self, x: Any, p: Any) -> Point:
        slope, _ = self.loss.derivatives(p, self.y)
        gradient = self.X.back(self.sample_weight * slope) + self.l2 * x
        return Point(x, self._value(x, p), gradient, p)

    def slopes(self, point: Point, t: Any) -> tuple[Any, Any]:
        shift = t - point.x
        if self.is_quadratic:
            D = self.X.squares(self.sample_weight) + self.l2
            return point.gradient + D * shift, jnp.broadcast_to(D, t.shape)
        slope, curvature = self.X.column_sums(
            self.loss.derivatives, point.carried, self.y, self.sample_weight, shift
        )
        return slope + self.l2 * t, curvature + self.l2

    def diagonal_at(self, point: Point) -> Any:
        """The curvatures f_j''(x_j): for a linear model Gauss-Newton's and the exact ones."""
        _, curvature = self.loss.derivatives(point.carried, self.y)
        return self.X.squares(self.sample_weight * curvature) + self.l2

    def gauss_newton_diagonal(self, point: Point) -> Any:
        return self.diagonal_at(point)

    def image(self, point: Point, d: Any) -> Any:
        return self.X.times(d)

    def hessian_times(self, point: Point, v: Any) -> Any:
        _, curvature = self.loss.derivatives(point.carried, self.y)
        return self.X.back(self.sample_weight * curvature * self.X.times(v)) + self.l2 * v

    def curvature_along(self, point: Point, d: Any, image: Any) -> Any:
        _, curvature = self.loss.derivatives(point.carried, self.y)
        return inner(self.sample_weight * curvature * image, image) + self.l2 * inner(d, d)

    def values_along(self, point: Point, d: Any, image: Any, etas: Any) -> Any:
        if etas.ndim != 1:
            return super().values_along(point, d, image, etas)
        return jax.vmap(lambda eta: self._value(point.x - eta * d, point.carried - eta * image))(
            etas
        )

    def move(self, point: Point, d: Any, image: Any, eta: Any, slope: Any) -> Point:
        if jnp.ndim(eta) != 0:
            return self.at(point.x - eta * d)
        return self._point(point.x - eta * d, point.carried - eta * image)

    def slopes_cost(self, s: int, d: int) -> float:
        return 0.0 if self.is_quadratic else float(s)
