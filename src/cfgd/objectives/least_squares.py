"""|Xw - y|^2 / 2."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out, to_numpy
from cfgd._core.either import Unbound, on_host
from cfgd._core.linalg import inner, positive, size
from cfgd._core.sharding import keep_float64
from cfgd._core.types import Data, Flag, Number, Numbers, Samples, Scalar, Vector
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Model, Normal, normal_of
from cfgd.objectives.evaluation import Evaluation, Line, slope_along
from cfgd.objectives.linear.design import Dense, Sparse, design
from cfgd.objectives.linear.samples import count_zero_weight, penalty, targets, weights
from cfgd.objectives.quadratic import AFFORDABLE, AnyQuadratic, QuadraticLine, has_null_space

# X'X is formed where a product with it is cheaper than two with X and it stays small
GRAM_DIMENSION = 2048


class ResidualLine(QuadraticLine):
    """The line in its residual form: `product` is X d, and the residual is what is updated."""

    product: Float[Array, " m"]

    def curvature(self) -> Scalar:
        f = self.objective
        return inner(f.sample_weight * self.product, self.product) + f.l2 * inner(self.d, self.d)

    def to(self, eta: Numbers) -> Evaluation:
        if jnp.ndim(eta) != 0:
            return super().to(eta)
        residual = self.point.aux - eta * self.product
        return self.objective.point(self.point.x - eta * self.d, residual)


class LeastSquares(AnyQuadratic):
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

    X: Dense | Sparse
    y: Data
    l2: Data
    sample_weight: Data
    gram: Data | None

    @keep_float64
    def __init__(self, X: Any, y: Any, l2: Any = 0.0, sample_weight: Any = None) -> None:
        owner = "LeastSquares"
        self.X = design(owner, X)
        m, d = self.X.shape
        self.y = targets(owner, y, m, self.X.dtype, X)
        self.l2 = penalty(owner, l2, self.y.dtype)
        self.sample_weight = weights(owner, sample_weight, m, self.y.dtype, X)
        self.gram = None
        if isinstance(self.X, Dense) and d <= m and d <= GRAM_DIMENSION:
            self.gram = self.X.gram(self.sample_weight, self.l2)

    @property
    def dimension(self) -> int:
        return self.X.shape[1]

    @property
    def has_gauss_newton(self) -> bool:
        return True

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        x = jnp.asarray(checks.floating("LeastSquares", "x", x))
        residual = self.X.times(x) - self.y
        return inner(self.sample_weight * residual, residual) / 2 + self.l2 * inner(x, x) / 2

    def evaluate(self, x: Vector) -> Evaluation:
        return self.point(x, self.X.times(x) - self.y)

    def point(self, x: Vector, residual: Samples) -> Evaluation:
        """The point at x, its residual Xx - y being known."""
        weighted = self.sample_weight * residual
        return Evaluation(
            x,
            inner(weighted, residual) / 2 + self.l2 * inner(x, x) / 2,
            self.X.back(weighted) + self.l2 * x,
            residual if self.gram is None else None,
        )

    def line(self, point: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        slope = slope_along(point, d, slope)
        if self.gram is None:
            return ResidualLine(self, point, d, slope, self.X.times(d))
        return QuadraticLine(self, point, d, slope, d @ self.gram)

    def diagonal(self) -> Vector:
        if self.gram is not None:
            return jnp.diagonal(self.gram)
        return self.X.squares(self.sample_weight) + self.l2

    def solved(self, point: Evaluation, tolerance: Number) -> Flag:
        """The residual is orthogonal to the columns, or nothing beside y and the columns."""
        D = positive(self.diagonal())
        residual = jnp.sqrt(2 * jnp.maximum(point.value, 0))
        terms = size(self.y, self.sample_weight) + size(point.x, D)
        orthogonal = size(point.gradient, 1 / D) <= tolerance * residual
        return orthogonal | (residual <= tolerance * terms)

    def gauss_newton_diagonal(self, point: Evaluation) -> Vector:
        return self.diagonal()

    def in_numpy(self) -> Unbound | None:
        return Unbound(to_numpy(self)) if isinstance(self.X, Dense) else None

    @property
    def has_model(self) -> bool:
        return isinstance(self.X, Dense)

    def model_shape(self, point: Evaluation) -> tuple[int, ...]:
        return self.X.shape

    def model(self, point: Evaluation) -> Model:
        root = jnp.sqrt(self.sample_weight)
        return Model(root[:, None] * self.X.X, self.l2)  # type: ignore[union-attr]

    def normal(self, point: Evaluation, old: Vector) -> Normal:
        X: Any = self.X
        if not on_host(point.x) and X.shards == 1:
            return Objective.normal(self, point, old)
        return normal_of(X.gram(self.sample_weight, self.l2), old)

    @property
    def model_is_exact(self) -> bool:
        return True

    def model_times(self, point: Evaluation, v: Vector) -> Vector:
        return self.X.back(self.sample_weight * self.X.times(v)) + self.l2 * v

    def dispersion(self, value: float, freedom: int) -> float | None:
        if float(self.l2) > 0:
            return None
        freedom = freedom - count_zero_weight(self.sample_weight)
        return 2 * value / freedom if freedom > 0 else np.inf

    def in_residual_form(self) -> LeastSquares:
        """Without the Gram matrix, whose products would cost the digits that the residual keeps."""
        if self.gram is None:
            return self
        return eqx.tree_at(lambda f: f.gram, self, None)

    def is_singular(self) -> bool:
        m, d = self.X.shape
        if float(self.l2) > 0 or m < d:
            return float(self.l2) == 0
        if not isinstance(self.X, Dense) or m * d * d > AFFORDABLE:
            return False
        return has_null_space(np.asarray(self.X.gram(self.sample_weight, self.l2)))
