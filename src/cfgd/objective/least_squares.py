"""|Xw - y|^2 / 2."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from cfgd import _check
from cfgd.objective.base import Point, inner
from cfgd.objective.quadratic import QuadraticWalk
from cfgd.precision import numpy_in_numpy_out

# X'X is formed where a product with it is cheaper than two with X and it stays small
GRAM_DIMENSION = 2048


class LeastSquares(QuadraticWalk):
    r"""f(w) = |Xw - y|^2 / 2: the rows of X are the samples (equation 3.2).

    A point is always looked at through its residual, X'(Xw - y), so accuracy is that of X and
    not of X'X. Only the product of a step, X'X d, takes the Gram matrix, and only if it is
    cheaper: never when there are fewer samples than coefficients.

    >>> import cfgd
    >>> f = cfgd.LeastSquares([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    >>> print(f.value([1.0, 2.0]), f.gradient([1.0, 1.0]))
    0.0 [-3. -5.]
    """

    X: Any
    y: Any
    gram: Any
    squares: Any

    def __init__(self, X: Any, y: Any) -> None:
        X = _check.matrix("LeastSquares", "X", X)
        y = _check.array("LeastSquares", "y", y, "be a vector of numbers")
        m, d = X.shape
        _check.shape("LeastSquares", "y", y, (m,))
        self.X, self.y = X, y
        cheaper = d <= m and d <= GRAM_DIMENSION
        self.gram = X.T @ X if cheaper else None
        self.squares = (jnp if _check.traced(X) else np).sum(X * X, axis=0)

    @property
    def dimension(self) -> int:
        return int(self.X.shape[1])

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        residual = jnp.asarray(x) @ self.X.T - self.y
        return inner(residual, residual) / 2

    def at(self, x: Any) -> Point:
        residual = x @ self.X.T - self.y
        carried = residual if self.gram is None else None
        return Point(x, inner(residual, residual) / 2, residual @ self.X, carried)

    def diagonal(self) -> Any:
        return self.squares

    def image(self, point: Point, d: Any) -> Any:
        return d @ self.X.T if self.gram is None else d @ self.gram

    def curvature_along(self, point: Point, d: Any, image: Any) -> Any:
        if self.gram is None:
            return inner(image, image)
        return super().curvature_along(point, d, image)

    def move(self, point: Point, d: Any, image: Any, eta: Any, slope: Any) -> Point:
        if self.gram is not None or jnp.ndim(eta) != 0:
            return super().move(point, d, image, eta, slope)
        residual = point.carried - eta * image
        return Point(point.x - eta * d, inner(residual, residual) / 2, residual @ self.X, residual)
