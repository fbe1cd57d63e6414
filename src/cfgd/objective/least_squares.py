"""|Xw - y|^2 / 2."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from cfgd.objective.base import Point, inner
from cfgd.objective.design import Dense, design, penalty, targets, weights
from cfgd.objective.quadratic import QuadraticWalk
from cfgd.precision import numpy_in_numpy_out

# X'X is formed where a product with it is cheaper than two with X and it stays small
GRAM_DIMENSION = 2048


class LeastSquares(QuadraticWalk):
    r"""f(w) = |Xw - y|^2 / 2: the rows of X are the samples (equation 3.2).

    X is dense or a scipy.sparse matrix, which stays sparse. With weights s and penalty l2,
    f(w) = sum_i s_i (Xw - y)_i^2 / 2 + l2 |w|^2 / 2.

    A point is always looked at through its residual, X'(Xw - y), so accuracy is that of X and
    not of X'X. Only the product of a step, X'X d + l2 d, takes the Gram matrix, and only if it
    is cheaper: X is dense and has at least as many samples as coefficients.

    >>> import cfgd
    >>> f = cfgd.LeastSquares([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    >>> print(f.value([1.0, 2.0]), f.gradient([1.0, 1.0]))
    0.0 [-3. -5.]
    """

    X: Any
    y: Any
    l2: Any
    sample_weight: Any
    gram: Any

    def __init__(self, X: Any, y: Any, l2: Any = 0.0, sample_weight: Any = None) -> None:
        owner = "LeastSquares"
        self.X = design(owner, X)
        self.y = targets(owner, y, self.X)
        m, d = self.X.shape
        self.l2 = penalty(owner, l2, self.y)
        self.sample_weight = weights(owner, sample_weight, m, self.y)
        cheaper = isinstance(self.X, Dense) and d <= m and d <= GRAM_DIMENSION
        self.gram = self.X.gram(self.sample_weight, self.l2) if cheaper else None

    @property
    def dimension(self) -> int:
        return self.X.shape[1]

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        x = jnp.asarray(x)
        residual = self.X.times(x) - self.y
        return inner(self.sample_weight * residual, residual) / 2 + self.l2 * inner(x, x) / 2

    def at(self, x: Any) -> Point:
        return self._point(x, self.X.times(x) - self.y)

    def _point(self, x: Any, residual: Any) -> Point:
        weighted = self.sample_weight * residual
        return Point(
            x,
            inner(weighted, residual) / 2 + self.l2 * inner(x, x) / 2,
            self.X.back(weighted) + self.l2 * x,
            residual if self.gram is None else None,
        )

    def diagonal(self) -> Any:
        if self.gram is not None:
            return jnp.diagonal(self.gram)
        return self.X.squares(self.sample_weight) + self.l2

    def gauss_newton_diagonal(self, point: Point) -> Any:
        return self.diagonal()

    def image(self, point: Point, d: Any) -> Any:
        return self.X.times(d) if self.gram is None else d @ self.gram

    def curvature_along(self, point: Point, d: Any, image: Any) -> Any:
        if self.gram is None:
            return inner(self.sample_weight * image, image) + self.l2 * inner(d, d)
        return super().curvature_along(point, d, image)

    def values_along(self, point: Point, d: Any, image: Any, etas: Any) -> Any:
        if self.gram is None and etas.ndim == 1:
            slope = inner(point.gradient, d)
            curvature = self.curvature_along(point, d, image)
            return point.value - etas * slope + etas**2 / 2 * curvature
        return super().values_along(point, d, image, etas)

    def move(self, point: Point, d: Any, image: Any, eta: Any, slope: Any) -> Point:
        if self.gram is not None or jnp.ndim(eta) != 0:
            return super().move(point, d, image, eta, slope)
        return self._point(point.x - eta * d, point.carried - eta * image)
