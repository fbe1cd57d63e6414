"""Linear least squares: |Xw - y|^2 / 2."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out, to_numpy
from cfgd._core.linalg import inner, weighted_norm
from cfgd._core.sharding import any_sharded, keep_float64
from cfgd._core.types import (
    AnyArray,
    Data,
    Flag,
    Matrix,
    Number,
    Numbers,
    Samples,
    Scalar,
    UserInput,
    Vector,
)
from cfgd.objectives.base import Traits
from cfgd.objectives.curvature import Curvature, residual_is_stationary, residual_variance
from cfgd.objectives.evaluation import Evaluation, Line, slope_along
from cfgd.objectives.information import Information
from cfgd.objectives.linear.design import Dense, design
from cfgd.objectives.linear.samples import (
    count_zero_weight,
    given_weights,
    penalty,
    targets,
    weights,
)
from cfgd.objectives.quadratic import AFFORDABLE, AnyQuadratic, QuadraticLine, has_null_space

# X'X is formed where a product with it is cheaper than two with X and it stays small: 32 MiB.
GRAM_DIMENSION = 2048


@dataclasses.dataclass(frozen=True, eq=False)
class ResidualLine(QuadraticLine):
    """A line along which the residual is updated: `product` is X d."""

    product: Float[AnyArray, " m"]

    def curvature(self) -> Scalar:
        f = self.objective
        return inner(f.sample_weight * self.product, self.product) + f.l2 * inner(self.d, self.d)

    def to(self, eta: Numbers) -> Evaluation:
        if np.ndim(eta) != 0:
            return super().to(eta)
        residual = self.evaluation.aux - eta * self.product
        return self.objective.from_residual(self.evaluation.x - eta * self.d, residual)


class LeastSquares(AnyQuadratic):
    r"""f(w) = |Xw - y|^2 / 2: the rows of X are the samples (equation 3.2).

    A scipy.sparse matrix stays sparse. With weights s and penalty l2,
    f(w) = sum_i s_i (Xw - y)_i^2 / 2 + l2 |w|^2 / 2. The data are copied, except JAX arrays, NumPy
    arrays that are read-only, and memory-mapped files.

    Gradients are computed from the residual, X'(Xw - y), so that their accuracy depends on the
    condition number of X and not on that of X'X. The paper's methods update them along a step by a
    product with the Gram matrix if that is cheaper: for a dense X with at least as many samples as
    coefficients.

    Parameters
    ----------
    X : matrix
        The design matrix of shape (m, d), a row for each sample: an array or a scipy.sparse matrix.
    y : array
        The targets, one for each sample.
    l2 : float, default 0.0
        The penalty of the coefficients, at least 0.
    sample_weight : array, optional
        A weight of at least 0 for each sample; 1 by default.

    Raises
    ------
    ValueError
        If `X` is no matrix; `y` or `sample_weight` does not have a number for each row; `l2` is not
        one number of at least 0; a weight is negative, or all are 0; or an entry is not finite.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.LeastSquares([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    >>> print(f.value([1.0, 2.0]), f.gradient([1.0, 1.0]))
    0.0 [-3. -5.]
    """

    X: Any  # Dense or Sparse; in SciPy's form on the host
    y: Data
    l2: Data
    sample_weight: Data
    gram: Data | None

    _internal: ClassVar[tuple[str, ...]] = ("from_residual", "gram")

    @keep_float64
    def __init__(
        self, X: UserInput, y: UserInput, l2: UserInput = 0.0, sample_weight: UserInput = None
    ) -> None:
        owner = "LeastSquares"
        self.X = design(owner, X)
        m, d = self.X.shape
        self.y = targets(owner, y, m, self.X.dtype, X)
        self.l2 = penalty(owner, l2, self.y.dtype)
        self.sample_weight = weights(owner, sample_weight, m, self.y.dtype, X)
        self.gram = None
        if isinstance(self.X, Dense) and d <= m and d <= GRAM_DIMENSION:
            self.gram = self.X.gram(self.sample_weight, self.l2)

    def _argument(self, name: str) -> Any:
        return given_weights(self.sample_weight) if name == "sample_weight" else getattr(self, name)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.X.shape[1],)

    @property
    def traits(self) -> Traits:
        return dataclasses.replace(
            super().traits,
            diagonal="Gauss-Newton",
            size=self.X.shape,
            is_sparse=not self.X.is_dense,
        )

    @numpy_in_numpy_out
    def value(self, x: PyTree) -> Any:
        x = jnp.asarray(checks.floating("LeastSquares", "x", x))
        residual = self.X.times(x) - self.y
        return inner(self.sample_weight * residual, residual) / 2 + self.l2 * inner(x, x) / 2

    def evaluate(self, x: Vector) -> Evaluation:
        return self.from_residual(x, self.X.times(x) - self.y)

    def from_residual(self, x: Vector, residual: Samples) -> Evaluation:
        """Return the evaluation at x, whose residual Xx - y is known."""
        weighted = self.sample_weight * residual
        return Evaluation(
            x,
            inner(weighted, residual) / 2 + self.l2 * inner(x, x) / 2,
            self.X.back(weighted) + self.l2 * x,
            residual if self.gram is None else None,
        )

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        slope = slope_along(evaluation, d, slope)
        if self.gram is None:
            return ResidualLine(self, evaluation, d, slope, self.X.times(d))
        return QuadraticLine(self, evaluation, d, slope, d @ self.gram)

    def diagonal(self) -> Vector:
        if self.gram is not None:
            return self.gram.diagonal()
        return self.X.squares(self.sample_weight) + self.l2

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        return self.X.back(self.sample_weight * self.X.times(v)) + self.l2 * v

    def curvature(self, evaluation: Evaluation) -> Curvature:
        m, d = self.X.shape

        def is_stationary(tolerance: Number) -> Flag:
            targets = weighted_norm(self.y, self.sample_weight)
            return residual_is_stationary(evaluation, self.diagonal(), targets, tolerance)

        def information(H: Callable[[], Matrix]) -> Information | None:
            if float(self.l2) > 0:
                return None  # penalised estimates are biased: no covariance
            dof = m - d - count_zero_weight(self.sample_weight)
            return Information.of(H(), residual_variance(float(evaluation.value), dof), dof)

        return Curvature(
            times=lambda v: self.hessian_times(evaluation, v),
            diagonal=self.diagonal,
            shape=(m, d) if self.X.is_dense else None,
            matrix=(lambda: self.X.gram(self.sample_weight, self.l2)) if self.X.is_dense else None,
            is_exact=True,
            cost=float(min(m, d)),
            information=information,
            is_stationary=is_stationary,
        )

    def on_host(self) -> LeastSquares | None:
        """Return the same without the Gram matrix, whose products lose digits that X keeps."""
        if any_sharded(self):
            return None
        f = to_numpy(eqx.tree_at(lambda f: f.gram, self, None, is_leaf=lambda leaf: leaf is None))
        return f if f.X.is_dense else eqx.tree_at(lambda f: f.X, f, f.X.in_scipy())

    def _is_singular(self) -> bool:
        m, d = self.X.shape
        if float(self.l2) > 0 or m < d:
            return float(self.l2) == 0
        if not self.X.is_dense or m * d * d > AFFORDABLE:
            return False
        return has_null_space(np.asarray(self.X.gram(self.sample_weight, self.l2)))
