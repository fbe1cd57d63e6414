"""Generalised linear models: sums of losses of Xw."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out, own, precision_of, to_numpy
from cfgd._core.linalg import array_namespace, inner, is_numpy, weighted_norm
from cfgd._core.sharding import any_entry, any_sharded, keep_float64, shard_rows_like
from cfgd._core.types import Data, Flag, Matrix, Number, Scalar, UserInput, Vector, Vectors
from cfgd.objectives.base import DerivativeCost, Objective, Traits, label_of
from cfgd.objectives.curvature import Curvature, residual_is_stationary
from cfgd.objectives.evaluation import Evaluation, Line, linear_derivatives, slope_along
from cfgd.objectives.information import Information
from cfgd.objectives.linear.covariance import InformationSums
from cfgd.objectives.linear.design import design
from cfgd.objectives.linear.intercept import WithIntercept
from cfgd.objectives.linear.line import PredictionLine
from cfgd.objectives.linear.losses import Loss, loss_of, name_of_loss
from cfgd.objectives.linear.multinomial import (
    Multinomial,
    fix_gauge,
    matrix_of_classes,
    slopes_by_class,
)
from cfgd.objectives.linear.one_pass import is_long, one_pass
from cfgd.objectives.linear.samples import (
    count_zero_weight,
    given_weights,
    is_negative,
    penalties,
    targets,
    weights,
)

# Columns whose Gram matrix costs as much as a gradient: measured, as a product of matrices reads
# X less often than products with vectors do.
COLUMNS_PER_GRADIENT = 30


class LinearModel(Objective):
    r"""f(w) = sum_i s_i loss((Xw)_i + offset_i, y_i) + sum_j l2_j w_j^2 / 2.

    The data are copied, except JAX arrays, NumPy arrays that are read-only, and memory-mapped
    files.

    The predictions Xw are updated along a step. A step therefore costs a product with X and one
    with X', and each further step size along the same direction O(m). A change of coordinate j by h
    changes prediction i by h X_ij, so that all coordinate slopes at s nodes cost O(s m d) and not s
    d gradients.

    Parameters
    ----------
    X : matrix
        The design matrix of shape (m, d), a row for each sample: an array or a scipy.sparse matrix.
    y : array
        The targets, one for each sample: numbers or labels, as `loss` takes them.
    loss : str or callable, default "logistic"
        "logistic" (labels 0/1 or -1/1), "squared", "poisson" (counts, rate exp(Xw)), "gamma"
        (positive, mean exp(Xw)), "huber", "multinomial" (labels 0, 1, 2, ...), whose coefficients
        are a matrix with a column for each class, or any JAX function of (prediction, target).
    l2 : float or array, default 0.0
        The penalty, at least 0: one number, or one for each coefficient.
    sample_weight : array, optional
        A weight of at least 0 for each sample; 1 by default.
    intercept : bool, default False
        Whether the last coefficient (of several classes the last row) is an intercept without a
        penalty. X is not copied for it.
    offset : array, optional
        What is added to the predictions: for counts the logarithm of the exposure.

    Raises
    ------
    ValueError
        If `X` is no matrix; `y`, `sample_weight` or `offset` does not have a number for each row;
        a target is not one that the loss takes; `loss` is an unknown name, or a function that does
        not return one number; `l2` is negative, or neither one number nor one for each coefficient;
        a weight is negative, or all are 0; or an entry is not finite.

    References
    ----------
    McCullagh and Nelder, Generalized Linear Models (2nd edition, 1989); for the Huber loss Huber,
    Robust Statistics (1981), chapter 7.

    Examples
    --------
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

    _internal: ClassVar[tuple[str, ...]] = (
        "coefficients",
        "from_predictions",
        "information_sums",
        "labels",
        "penalty",
        "predictions",
        "value_of",
        "weighted",
    )

    @keep_float64
    def __init__(
        self,
        X: UserInput,
        y: UserInput,
        loss: str | Callable[[Any, Any], Any] = "logistic",
        l2: UserInput = 0.0,
        sample_weight: UserInput = None,
        *,
        intercept: bool = False,
        offset: UserInput = None,
    ) -> None:
        owner = "LinearModel"
        one = loss_of(owner, loss)
        rows: Any = design(owner, X)
        m, d = rows.shape
        y = targets(owner, y, m, rows.dtype, X)
        self.loss = Multinomial.of(owner, y) if one is None else one
        self.y = self.loss.targets(owner, y)
        self.labels = (-1.0, 1.0) if _signed(y) else (0.0, 1.0)
        self.X = WithIntercept(rows) if checks.flag(owner, "intercept", intercept) else rows
        self.l2 = penalties(owner, l2, y.dtype, (d, *self.shape[1:]), intercept)
        self.sample_weight = weights(owner, sample_weight, m, y.dtype, X)
        self.offset = None
        if offset is not None:
            self.offset = shard_rows_like(X, own(checks.array(owner, "offset", offset)))
            checks.shape(owner, "offset", self.offset, (m, *self.shape[1:]))
        self.loss.check(owner, precision_of(self.X, y))

    def _argument(self, name: str) -> Any:
        has_intercept = isinstance(self.X, WithIntercept)
        if name == "intercept":
            return has_intercept
        if name == "loss":
            return name_of_loss(self.loss)
        if name == "X":
            return self.X.inner if has_intercept else self.X
        if name == "y":  # its labels may be those of the loss
            return jax.ShapeDtypeStruct(self.y.shape, self.y.dtype)
        if name == "l2" and has_intercept and is_numpy(self.l2) and self.l2.ndim:
            penalties = np.asarray(self.l2[:-1])  # the intercept has none
            return penalties.flat[0] if (penalties == penalties.flat[0]).all() else penalties
        return given_weights(self.sample_weight) if name == "sample_weight" else getattr(self, name)

    def check(self, owner: str, x: Vector) -> None:
        """Accept every x: the value is a number by construction."""

    @cached_property
    def shape(self) -> tuple[int, ...]:
        columns, classes = self.X.shape[1], getattr(self.loss, "classes", None)
        return (columns,) if classes is None else (columns, classes)

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return math.prod(self.shape)

    @cached_property  # it is read many times in a run
    def traits(self) -> Traits:
        quadratic = self.loss.is_quadratic
        cost = DerivativeCost(per_node=0.0 if quadratic else 1.0)
        return Traits(
            label_of(self),
            structure="quadratic" if quadratic else "linear model",
            linear_slopes=quadratic,
            accumulates_rounding=True,
            curvature="Hessian" if self.loss.is_convex else "Gauss-Newton",
            diagonal="Gauss-Newton",
            size=(self.X.shape[0], self.dimension),
            is_sparse=not self.X.is_dense,
            derivative_cost=cost,
            diagonal_cost=cost,
            product_cost=1.0,
        )

    def coefficients(self, x: Data) -> Data:
        """Return the vector, or with several classes a matrix with a column for each class."""
        return x.reshape(self.X.shape[1], -1) if self.loss.has_classes else x

    def predictions(self, x: Vector) -> Any:
        """Return Xw + offset."""
        p = self.X.times(self.coefficients(x))
        return p if self.offset is None else p + self.offset

    def weighted(self, entries: Data) -> Data:
        """Return the entries of each sample times its weight."""
        return (self.sample_weight if entries.ndim == 1 else self.sample_weight[:, None]) * entries

    def penalty(self, x: Vector) -> Any:
        """Return sum_j l2_j x_j^2."""
        return self.l2 * inner(x, x) if self.l2.ndim == 0 else inner(self.l2 * x, x)

    @numpy_in_numpy_out
    def value(self, x: PyTree) -> Any:
        x = jnp.asarray(checks.floating("LinearModel", "x", x)).reshape(-1)
        return self.value_of(x, self.predictions(x))

    @numpy_in_numpy_out
    def predict(self, w: UserInput, X: UserInput = None, offset: UserInput = None) -> Any:
        """Return the expected targets: means, or for labels the most probable ones.

        They are those of the rows of `X`, by default the data of the model, plus an `offset`.

        Parameters
        ----------
        w : array
            The coefficients, in the form of x.
        X : matrix, optional
            The samples; by default the data of the model.
        offset : array, optional
            What is added to the predictions of `X`.

        Returns
        -------
        array
            One for each row.
        """
        return self.loss.predicted(self._predictions("predict", w, X, offset), self.labels)

    @numpy_in_numpy_out
    def probabilities(self, w: UserInput, X: UserInput = None, offset: UserInput = None) -> Any:
        """Return the probability of each label, in a column for each, in ascending order.

        Parameters
        ----------
        w : array
            The coefficients, in the form of x.
        X : matrix, optional
            The samples; by default the data of the model.
        offset : array, optional
            What is added to the predictions of `X`.

        Returns
        -------
        array
            A row for each sample and a column for each label.

        Raises
        ------
        ValueError
            If the loss has no labels.
        """
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
        """Return f at x, whose predictions p are known."""
        return inner(self.sample_weight, self.loss.value(p, self.y)) + self.penalty(x) / 2

    def evaluate(self, x: Vector) -> Evaluation:
        if not is_long(self, self.X, x):
            return self.from_predictions(x, self.predictions(x))
        value, gradient, p = one_pass(self, self.X, x)
        return Evaluation(x, value + self.penalty(x) / 2, gradient + self.l2 * x, p)

    def from_predictions(self, x: Vector, p: Data) -> Evaluation:
        """Return the evaluation at x, whose predictions p are known."""
        slope, _ = self.loss.derivatives(p, self.y)
        gradient = self.X.back(self.weighted(slope)).reshape(-1) + self.l2 * x
        return Evaluation(x, self.value_of(x, p), gradient, p)

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        product = self.X.times(self.coefficients(d))
        return PredictionLine(self, evaluation, d, slope_along(evaluation, d, slope), product)

    def coordinate_derivatives(self, evaluation: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        if self.loss.is_quadratic:
            return linear_derivatives(evaluation, self.X.squares(self.sample_weight) + self.l2, t)
        shift = t - evaluation.x
        if self.loss.has_classes:
            of = self.X, self.loss, evaluation.aux, self.y, self.sample_weight
            slope, curvature = slopes_by_class(*of, shift)
        else:
            slope, curvature = self.X.column_sums(
                self.loss.derivatives, evaluation.aux, self.y, self.sample_weight, shift
            )
        return slope + self.l2 * t, curvature + self.l2

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        along = self.X.times(self.coefficients(v))
        change = self.weighted(self.loss.along(evaluation.aux, self.y, along))
        return self.X.back(change).reshape(-1) + self.l2 * v

    def curvature(self, evaluation: Evaluation) -> Curvature:
        """Return X' diag(s l'') X + l2, with l'' at least 0 where the loss is not convex."""
        (m, columns), d = self.X.shape, self.dimension

        def information(H: Callable[[], Matrix]) -> Information | None:
            if np.any(np.asarray(self.l2) > 0):
                return None  # penalised estimates are biased: no covariance
            if self.loss.has_own_information:
                return self.information_sums(evaluation).information()
            dof = self._n_samples() - d
            factor = self.loss.dispersion(float(evaluation.value), dof)
            if factor is None:
                return None
            return Information.of(H(), factor, dof if self.loss.is_quadratic else np.inf)

        def is_stationary(tolerance: Number) -> Flag:
            diagonal, targets = self._diagonal(evaluation), self._size_of_targets()
            return residual_is_stationary(evaluation, diagonal, targets, tolerance)

        def times(v: Vector) -> Vector:
            if self.loss.is_convex:
                return self.hessian_times(evaluation, v)
            along = self.X.times(v)
            return self.X.back(self._curvature_weight(evaluation) * along) + self.l2 * v

        return Curvature(
            times=times,
            diagonal=lambda: self._diagonal(evaluation),
            shape=(m, d) if self.X.is_dense else None,
            matrix=(lambda: self._matrix(evaluation)) if self.X.is_dense else None,
            is_exact=self.loss.is_convex,
            cost=columns / COLUMNS_PER_GRADIENT * (d // columns + 1) / 2,
            product_cost=1.0,
            rows_are_data=True,
            information=information if self.X.is_dense else None,
            is_stationary=is_stationary if self.loss.is_quadratic else None,
        )

    def information_sums(self, evaluation: Evaluation) -> InformationSums:
        """Return the sums over the rows that covariances of the coefficients are made of."""
        return self._information_sums(self.X, evaluation)

    def _information_sums(self, X: Any, evaluation: Evaluation) -> InformationSums:
        sums = InformationSums(self.loss, self.dimension)
        p, weight = (np.asarray(of) for of in (evaluation.aux, self.sample_weight))
        sums.add(X, np.asarray(self.y), p, weight)
        return sums

    def _matrix(self, evaluation: Evaluation) -> Matrix:
        if not self.loss.has_classes:
            return self.X.gram(self._curvature_weight(evaluation), self.l2)
        H = fix_gauge(self._matrix_of_classes(evaluation), self.l2, self.shape[1])
        return H + self.l2 * array_namespace(H).eye(len(H), dtype=H.dtype)

    def _matrix_of_classes(self, evaluation: Evaluation) -> Matrix:
        return matrix_of_classes(self.X, self.loss, evaluation.aux, self.sample_weight)

    def _diagonal(self, evaluation: Evaluation) -> Vector:
        return self.X.squares(self._curvature_weight(evaluation)).reshape(-1) + self.l2

    def _curvature_weight(self, evaluation: Evaluation) -> Data:
        """Return s l'', for every class its own; not negative where the loss is not convex."""
        _, curvature = self.loss.derivatives(evaluation.aux, self.y)
        return self.weighted(array_namespace(curvature).maximum(curvature, 0))

    def _size_of_targets(self) -> Scalar:
        """Return the weighted norm of y less the offset."""
        y = self.y if self.offset is None else self.y - self.offset
        return weighted_norm(y, self.sample_weight)

    def _n_samples(self) -> int:
        """Return the number of samples whose weight is not zero."""
        return self.X.shape[0] - count_zero_weight(self.sample_weight)

    def on_host(self) -> LinearModel | None:
        if self.loss.needs_jax or any_sharded(self):
            return None
        f = to_numpy(self)
        return f if f.X.is_dense else eqx.tree_at(lambda f: f.X, f, f.X.in_scipy())


def _signed(y: Any) -> bool:
    """Return whether labels are -1 and 1."""
    return not checks.is_traced(y) and any_entry(is_negative, y)
