"""The multinomial logistic loss, with one prediction for each class."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.linalg import array_namespace, is_numpy, logistic
from cfgd._core.sharding import is_sharded, max_entry
from cfgd._core.types import Data, Matrix, Samples, UserInput, Values, Vectors
from cfgd.objectives.linear.design import BLOCK_NUMBERS
from cfgd.objectives.linear.losses import Loss


class Multinomial(Loss):
    """log(sum_k exp(p_k)) - p_y for labels y = 0, 1, ..., classes - 1.

    All classes have coefficients. Adding a constant to the predictions of all classes changes
    nothing, so that only a penalty makes the coefficients unique.
    """

    has_classes: ClassVar[bool] = True
    has_own_information: ClassVar[bool] = True

    classes: int = eqx.field(static=True)

    @classmethod
    def of(cls, owner: str, y: UserInput) -> Multinomial:
        """Return the loss for the classes 0, 1, ... up to the largest label."""
        return cls.with_last(owner, last_label(owner, y))

    @classmethod
    def with_last(cls, owner: str, label: int) -> Multinomial:
        """Return the loss whose largest label is `label`."""
        classes = label + 1
        if classes < 2:
            checks.fail(owner, "y", "name at least two classes", "only 0")
        return cls(classes)

    def targets(self, owner: str, y: Samples) -> Any:
        return (y if is_sharded(y) else np.asarray(y)).astype(np.int32)

    def value(self, p: Data, y: Any) -> Any:
        # a sum over classes, not p[rows, y]: indices of sharded rows would be gathered everywhere
        own = array_namespace(p).where(self._is_class(y, p), p, 0).sum(1)
        return _log_sum_exp(p) - own

    def derivatives(self, p: Data, y: Values) -> tuple[Any, Any]:
        """Return the gradient in the predictions, and the diagonal of the Hessian."""
        share = self.shares(p)
        return share - self._one_hot(p, y), share * (1 - share)

    def along(self, p: Data, y: Values, v: Data) -> Any:
        share = self.shares(p)
        return share * (v - (share * v).sum(1, keepdims=True))

    def shares(self, p: Data) -> Any:
        """Return the probability of each class."""
        xp = array_namespace(p)
        weight = xp.exp(p - p.max(1, keepdims=True))
        return weight / weight.sum(1, keepdims=True)

    def _one_hot(self, p: Data, y: Any) -> Any:
        """Return 1 for the class of each sample and 0 for the others."""
        return self._is_class(y, p).astype(p.dtype)

    def _is_class(self, y: Any, p: Data) -> Any:
        return y[:, None] == array_namespace(p).arange(self.classes)

    def one_by_one(self, p: Data, y: Any) -> tuple[Any, Any]:
        """Return for each class the predictions and labels of an equivalent logistic loss.

        As a function of the prediction of class k alone, the loss is that of logistic regression
        with the prediction p_k - log(sum of exp(p_l) over l != k); see `logistic_slopes`.
        """

        def above(k: Any) -> Any:
            others = jnp.where(jnp.arange(self.classes) == k, -jnp.inf, p)
            return p[:, k] - _log_sum_exp(others)

        return jax.lax.map(above, jnp.arange(self.classes)), self._one_hot(p, y).T

    def dispersion(self, value: float, freedom: int) -> float | None:
        return None  # only differences of classes are identifiable: see `Information.classes`

    def predicted(self, p: Data, labels: tuple[float, ...]) -> Any:
        return p.argmax(1)

    def probabilities(self, p: Data) -> Any:
        return self.shares(p)


def last_label(owner: str, y: Any) -> int:
    """Return the largest of the labels, checked to be 0, 1, 2, ..."""
    if checks.is_traced(y):
        checks.fail(owner, "y", "be known for the loss multinomial", "a traced array")
    checks.no_entry(owner, "y", "be 0, 1, 2, ... for the loss multinomial", _is_not_a_class, y)
    return int(max_entry(y))


def _is_not_a_class(y: Any) -> Any:
    return (y < 0) | (y != y.round())


def logistic_slopes(p: Data, y: Data) -> tuple[Data, Data]:
    """Return the first two derivatives of log(1 + exp(p)) - y p, for labels 0 and 1."""
    share = logistic(p)
    return share - y, share * (1 - share)


def _log_sum_exp(p: Data) -> Any:
    """Return log(sum_k exp(p_k)) of each row, without overflow."""
    xp = array_namespace(p)
    largest = p.max(1)
    return largest + xp.log(xp.exp(p - largest[:, None]).sum(1))


def slopes_by_class(
    X: Any, loss: Any, p: Data, y: Any, weight: Samples, shift: Vectors
) -> tuple[Vectors, Vectors]:
    """Return coordinate slopes and curvatures; along one class the loss is that of `one_by_one`."""
    nodes, columns = len(shift), X.shape[1]

    def of_class(job: Any) -> tuple[Vectors, Vectors]:
        above, own, shift = job
        return X.column_sums(logistic_slopes, above, own, weight, shift)

    by_class = shift.reshape(nodes, columns, -1).transpose(2, 0, 1)
    found = jax.lax.map(of_class, (*loss.one_by_one(p, y), by_class))
    slope, curvature = (of.transpose(1, 2, 0).reshape(nodes, -1) for of in found)
    return slope, curvature


def matrix_of_classes(X: Any, loss: Any, p: Data, weight: Samples) -> Matrix:
    """Return the Hessian, with the blocks X' diag(s share_k (delta_kl - share_l)) X."""
    shares, xp = loss.shares(p), array_namespace(p)
    (m, d), K = X.shape, shares.shape[1]
    if is_numpy(shares) and m * d * d <= BLOCK_NUMBERS:
        return _matrix_of_few(X, shares, weight)
    none = xp.zeros((), shares.dtype)
    blocks: list[list[Any]] = [[None] * K for _ in range(K)]
    for k in range(K):
        own = weight * shares[:, k]
        blocks[k][k] = X.gram(own * (1 - shares[:, k]), none)
        for j in range(k):
            blocks[k][j] = blocks[j][k] = -X.gram(own * shares[:, j], none)
    # coefficients are ordered by columns: those of one column for all classes are adjacent
    H = xp.stack([xp.stack(row) for row in blocks])
    return H.transpose(2, 0, 3, 1).reshape(d * K, d * K)


def _matrix_of_few(X: Any, shares: Data, weight: Samples) -> Matrix:
    """Return the same for small data: all blocks by one product, which takes less time than many.

    Its second factor has the products X_ij X_il of two columns, for all pairs of them.
    """
    (m, d), K = X.shape, shares.shape[1]
    between = shares[:, :, None] * -shares[:, None, :]
    between[:, range(K), range(K)] = shares * (1 - shares)
    between *= weight[:, None, None]
    rows = X.times(np.eye(d, dtype=shares.dtype))
    products = (rows[:, :, None] * rows[:, None, :]).reshape(m, d * d)
    H = (between.reshape(m, K * K).T @ products).reshape(K, K, d, d)
    return H.transpose(2, 0, 3, 1).reshape(d * K, d * K)


def fix_gauge(H: Matrix, l2: Data, classes: int) -> Matrix:
    """Return H with curvature added along its null directions, so that it can be factorised.

    In a column without penalty, adding a constant to the coefficients of all classes changes
    nothing. The gradient is zero along such a direction, so the Newton step is not changed.
    """
    xp, K, d = array_namespace(H), classes, len(H) // classes
    free = ((l2 + xp.zeros(len(H), H.dtype)).reshape(d, K) == 0).all(1)
    common = xp.where(free, H.diagonal().reshape(d, K).sum(1) / K, 0)
    added = xp.diag(common)[:, None, :, None] * xp.full((K, 1, K), 1 / K, H.dtype)
    return H + added.reshape(d * K, d * K)
