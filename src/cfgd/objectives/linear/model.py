"""A sum of losses of Xw."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out, precision_of, to_numpy
from cfgd._core.either import Unbound, made, space
from cfgd._core.linalg import inner
from cfgd._core.sharding import any_entry, keep_float64, shard_rows_like
from cfgd._core.types import Data, Samples, Scalar, Vector, Vectors
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Normal, normal_of
from cfgd.objectives.evaluation import Evaluation, Line, linear_slopes, slope_along
from cfgd.objectives.linear.design import design
from cfgd.objectives.linear.intercept import WithIntercept
from cfgd.objectives.linear.line import PredictionLine
from cfgd.objectives.linear.losses import Loss, loss_of
from cfgd.objectives.linear.multinomial import (
    Multinomial,
    fix_gauge,
    matrix_of_classes,
    slopes_by_class,
)
from cfgd.objectives.linear.one_pass import is_long, one_pass
from cfgd.objectives.linear.samples import (
    count_zero_weight,
    is_negative,
    penalties,
    targets,
    weights,
)

# columns whose products with one another cost a gradient: a product of matrices reads X less often
COLUMNS = 30
# columns for which a matrix costs little, and from which on it costs many gradients
FEW, MANY = 512, 120


class LinearModel(Objective):
    r"""f(w) = sum_i s_i loss((Xw)_i + offset_i, y_i) + sum_j l2_j w_j^2 / 2.

    `loss` is "logistic" (labels 0/1 or -1/1), "squared", "poisson" (counts, rate exp(Xw)), "gamma"
    (positive, mean exp(Xw)), "huber", any JAX function of (prediction, target), or "multinomial"
    (labels 0, 1, 2, ...), whose coefficients are a matrix with a column for each class. X is dense
    or a scipy.sparse matrix.

    `l2` is one number or one for each coefficient. With `intercept=True` the last coefficient (of
    several classes the last row) is an intercept without a penalty; X is not copied for it.
    `offset` is added to the predictions: for counts the logarithm of the exposure.

    The predictions Xw are carried along: a step costs a product with X and one with X', and a
    search along a direction only O(m) for each candidate. Moving coordinate j changes prediction
    i by X_ij alone, so all coordinate slopes at s nodes cost O(s m d), not s d gradients.

    >>> import cfgd
    >>> f = cfgd.LinearModel([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [0, 1, 1], l2=0.1)
    >>> print(round(float(f.value([0.0, 0.0])), 6), f.gradient([0.0, 0.0]))
    2.079442 [-0.5 -1.5]
    >>> w = cfgd.minimize(f, [0.0, 0.0]).x
    >>> print(f.predict(w), f.probabilities(w, [[1.0, 0.6]]).round(2))
    [0. 1. 1.] [[0.37 0.63]]
    """

    X: Any  # Dense or Sparse, WithIntercept perhaps
    y: Any
    loss: Loss
    l2: Data
    sample_weight: Data
    offset: Data | None
    labels: tuple[float, ...] = eqx.field(static=True)

    @keep_float64
    def __init__(
        self,
        X: Any,
        y: Any,
        loss: str | Callable[[Any, Any], Any] = "logistic",
        l2: Any = 0.0,
        sample_weight: Any = None,
        *,
        intercept: bool = False,
        offset: Any = None,
    ) -> None:
        owner = "LinearModel"
        one = loss_of(owner, loss)
        self.X = design(owner, X)
        m, d = self.X.shape
        y = targets(owner, y, m, self.X.dtype, X)
        self.loss = Multinomial.of(owner, y) if one is None else one
        self.y = self.loss.targets(owner, y)
        self.labels = (-1.0, 1.0) if _signed(y) else (0.0, 1.0)
        if checks.flag(owner, "intercept", intercept):
            self.X = WithIntercept(self.X)
        self.l2 = penalties(owner, l2, y.dtype, (d, *self.shape[1:]), intercept)
        self.sample_weight = weights(owner, sample_weight, m, y.dtype, X)
        self.offset = None
        if offset is not None:
            self.offset = shard_rows_like(X, checks.array(owner, "offset", offset))
            checks.shape(owner, "offset", self.offset, (m, *self.shape[1:]))
        self.loss.check(owner, precision_of(self.X, y))

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
    def shape(self) -> tuple[int, ...]:
        columns, classes = self.X.shape[1], getattr(self.loss, "classes", None)
        return (columns,) if classes is None else (columns, classes)

    @property
    def dimension(self) -> int:
        return math.prod(self.shape)

    def coefficients(self, x: Data) -> Data:
        """The vector as a matrix, where there are several classes."""
        return x.reshape(self.X.shape[1], -1) if self.loss.has_classes else x

    def predictions(self, x: Vector) -> Any:
        """Xw + offset."""
        p = self.X.times(self.coefficients(x))
        return p if self.offset is None else p + self.offset

    def weighted(self, entries: Data) -> Data:
        """Every sample by its weight."""
        return (self.sample_weight if entries.ndim == 1 else self.sample_weight[:, None]) * entries

    def penalty(self, x: Vector) -> Any:
        """sum_j l2_j x_j^2."""
        return self.l2 * inner(x, x) if self.l2.ndim == 0 else inner(self.l2 * x, x)

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        x = jnp.asarray(checks.floating("LinearModel", "x", x)).reshape(-1)
        return self.value_of(x, self.predictions(x))

    @numpy_in_numpy_out
    def predict(self, w: Any, X: Any = None, offset: Any = None) -> Any:
        """The targets that the model expects: means, or of labels the most probable ones.

        For the rows of another X where one is given, with an `offset` of their own.
        """
        return self.loss.predicted(self._predictions("predict", w, X, offset), self.labels)

    @numpy_in_numpy_out
    def probabilities(self, w: Any, X: Any = None, offset: Any = None) -> Any:
        """A column for each label, in ascending order."""
        found = self.loss.probabilities(self._predictions("probabilities", w, X, offset))
        if found is None:
            wanted = "be logistic or multinomial to have probabilities"
            checks.fail("LinearModel", "loss", wanted, type(self.loss).__name__.lower())
        return found

    def _predictions(self, owner: str, w: Any, X: Any, offset: Any) -> Any:
        w = jnp.asarray(checks.floating(owner, "w", w))
        checks.shape(owner, "w", w, self.shape)
        if X is None and offset is None:
            return self.predictions(w.reshape(-1))
        rows = self.X if X is None else design(owner, X)
        if X is not None and isinstance(self.X, WithIntercept):
            rows = WithIntercept(rows)
        if rows.shape[1] != self.X.shape[1]:
            columns = self.X.shape[1] - isinstance(self.X, WithIntercept)
            checks.fail(owner, "X", f"have {columns} columns", tuple(np.shape(X)))
        p = rows.times(w)
        if offset is not None:
            offset = checks.array(owner, "offset", offset)
            p = p + checks.shape(owner, "offset", offset, tuple(p.shape))
        return p

    def value_of(self, x: Vector, p: Data) -> Scalar:
        """f at x, its predictions p being known."""
        return inner(self.sample_weight, self.loss.value(p, self.y)) + self.penalty(x) / 2

    def evaluate(self, x: Vector) -> Evaluation:
        if not is_long(self, self.X, x):
            return self.point(x, self.predictions(x))
        value, gradient, p = one_pass(self, self.X, x)
        value, gradient = value + self.penalty(x) / 2, gradient + self.l2 * x
        return made(Evaluation, x=x, value=value, gradient=gradient, aux=p)

    def point(self, x: Vector, p: Data) -> Evaluation:
        """The point at x, its predictions p being known."""
        slope, _ = self.loss.derivatives(p, self.y)
        gradient = self.X.back(self.weighted(slope)).reshape(-1) + self.l2 * x
        return made(Evaluation, x=x, value=self.value_of(x, p), gradient=gradient, aux=p)

    def line(self, point: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        slope, product = slope_along(point, d, slope), self.X.times(self.coefficients(d))
        return made(PredictionLine, objective=self, point=point, d=d, slope=slope, product=product)

    def coordinate_derivatives(self, point: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        if self.is_quadratic:
            return linear_slopes(point, self.X.squares(self.sample_weight) + self.l2, t)
        shift = t - point.x
        if self.loss.has_classes:
            of = self.X, self.loss, point.aux, self.y, self.sample_weight
            slope, curvature = slopes_by_class(*of, shift)
        else:
            slope, curvature = self.X.column_sums(
                self.loss.derivatives, point.aux, self.y, self.sample_weight, shift
            )
        return slope + self.l2 * t, curvature + self.l2

    def diagonal_at(self, point: Evaluation) -> Vector:
        """The curvatures f_j''(x_j): for a linear model Gauss-Newton's and the exact ones."""
        _, curvature = self.loss.derivatives(point.aux, self.y)
        return self.X.squares(self.weighted(curvature)).reshape(-1) + self.l2

    def gauss_newton_diagonal(self, point: Evaluation) -> Vector:
        return self.diagonal_at(point)

    def in_numpy(self) -> Unbound | None:
        if self.loss.needs_jax:
            return None
        f = to_numpy(self)
        return Unbound(f if f.X.is_dense else eqx.tree_at(lambda f: f.X, f, f.X.in_scipy()))

    @property
    def has_model(self) -> bool:
        return True

    def model_shape(self, point: Evaluation) -> tuple[int, ...] | None:
        return (self.X.shape[0], self.dimension) if self.X.is_dense else None

    def affords(self, shape: tuple[int, ...]) -> bool:
        """Rows are there already: of few columns the matrix costs less than its products would."""
        return min(shape) <= FEW or super().affords(shape)

    @property
    def model_is_costly(self) -> bool:
        return not self.X.is_dense or self.dimension > MANY

    def normal(self, point: Evaluation, old: Vector) -> Normal:
        """X' diag(s l'') X + l2, where the loss is convex; on the host by blocks of rows."""
        if not self.loss.has_classes:
            return normal_of(self.X.gram(self._weight_at(point), self.l2), old)
        H = matrix_of_classes(self.X, self.loss, point.aux, self.sample_weight)
        H = fix_gauge(H, self.l2, self.shape[1])
        return normal_of(H + space(H).diag(space(H).broadcast_to(self.l2, (len(H),))), old)

    def _weight_at(self, point: Evaluation) -> Samples:
        _, curvature = self.loss.derivatives(point.aux, self.y)
        return self.sample_weight * space(curvature).maximum(curvature, 0)

    @property
    def model_is_exact(self) -> bool:
        return self.loss.is_convex

    def model_cost(self, shape: tuple[int, ...]) -> float:
        classes = shape[1] // self.X.shape[1]
        return self.X.shape[1] / COLUMNS * (classes + 1) / 2

    def dispersion(self, value: float, freedom: int) -> float | None:
        if np.any(np.asarray(self.l2) > 0):
            return None  # what is shrunk is not spread around the truth
        return self.loss.dispersion(value, freedom - count_zero_weight(self.sample_weight))

    def model_times(self, point: Evaluation, v: Vector) -> Vector:
        along = self.X.times(self.coefficients(v))
        if self.loss.has_classes:
            change = self.weighted(self.loss.along(point.aux, self.y, along))
        else:
            change = self._weight_at(point) * along
        return self.X.back(change).reshape(-1) + self.l2 * v

    def hessian_times(self, point: Evaluation, v: Vector) -> Vector:
        along = self.X.times(self.coefficients(v))
        change = self.weighted(self.loss.along(point.aux, self.y, along))
        return self.X.back(change).reshape(-1) + self.l2 * v

    @property
    def product_cost(self) -> float:
        return 1.0

    def slopes_cost(self, s: int, d: int) -> float:
        return 0.0 if self.is_quadratic else float(s)


def _signed(y: Any) -> bool:
    """Whether labels are -1 and 1."""
    return not checks.is_traced(y) and any_entry(is_negative, y)
