"""Estimators on Dask arrays and data frames: fits by `Blocks`, predictions block by block."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import special
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from cfgd._core import checks
from cfgd.integrations.sklearn.class_weights import balanced, is_balanced
from cfgd.integrations.sklearn.statistics import MOST_COEFFICIENTS, FitStatistics, held_of
from cfgd.objectives import Blocks
from cfgd.objectives.linear.covariance import InformationSums
from cfgd.objectives.linear.dask_rows import is_dask
from cfgd.objectives.linear.losses import Gamma, Logistic, Poisson, Squared
from cfgd.objectives.linear.multinomial import Multinomial
from cfgd.objectives.linear.stream import Model
from cfgd.solve import Solution

# ---------------------------------------------------------------------- fits


@dataclasses.dataclass(frozen=True)
class Labels:
    """The classes of a Dask vector, and the index of the class of each row."""

    classes: np.ndarray
    indices: Any


def check_columns(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check number and names of the columns; return data of no rows that stand for X."""
    columns = X.shape[1] if X.ndim > 1 else 1
    stand_in = X._meta if hasattr(X, "dtypes") else np.empty((0, columns))
    validate_data(estimator, stand_in, skip_check_array=True, reset=reset)
    return np.empty((0, columns))


def dask_vector(owner: str, name: str, value: Any, X: Any) -> Any:
    """Return one value for each row of X as a Dask array; `value` may be in memory."""
    import dask.array as da

    if is_dask(value):
        if not hasattr(value, "to_dask_array"):
            return value
        if not isinstance(value.dtype, np.dtype):  # of pandas or Arrow, which Dask warns of
            value = value.astype(float if getattr(value.dtype, "_is_numeric", False) else object)
        return value.to_dask_array()
    if value is None or isinstance(value, str):
        got = "None" if value is None else checks.describe(value)
        checks.fail(owner, name, "have a value for each row", got)
    chunks = X.chunks[0] if hasattr(X, "chunks") else (np.nan,)
    if np.isnan(chunks).any():
        wanted = "be a Dask array or series where the chunks of X have unknown sizes"
        checks.fail(owner, name, wanted, checks.describe(value))
    array = np.asarray(value)
    if array.shape != X.shape[:1]:
        checks.fail(owner, name, f"have shape {X.shape[:1]}", array.shape)
    return da.from_array(array, chunks=(chunks,))


def weight_vector(owner: str, sample_weight: Any, y: Any, X: Any) -> Any:
    """Return the weights of the rows as a Dask array, or None for none; a number is all of them."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, int | float):
        return y.map_blocks(_full, float(sample_weight), dtype=float)
    return dask_vector(owner, "sample_weight", sample_weight, X)


def blocks_of(owner: str, X: Any, y: Any, loss: str, **given: Any) -> Blocks:
    """Return the objective of Dask data; errors name the arguments of `fit`."""
    try:
        return Blocks(X, y, loss, **given)
    except ValueError as error:
        message = str(error).replace("`Blocks(source=", "`Blocks(X=")
        raise ValueError(message.replace("`Blocks(", f"`{owner}(")) from error


def labels_of(owner: str, y: Any) -> Labels:
    """Find the classes of a Dask vector, in a round of their own."""
    classes = np.unique(np.concatenate(_computed(y.map_blocks(_unique, meta=np.empty(0, object)))))
    check_classification_targets(classes)
    if len(classes) < 2:
        got = f"one class: {classes[0]}" if len(classes) else "none"
        checks.fail(owner, "y", "name at least two classes", got)
    of = functools.partial(_indices, classes)
    return Labels(classes, y.map_blocks(of, dtype=float, meta=np.empty(0)))


def weight_by_class(class_weight: Any, labels: Labels, weight: Any) -> Any:
    """Return the weights of the rows times those of their classes, as a Dask array."""
    import dask.array as da

    if is_balanced(class_weight):
        arrays = [labels.indices] if weight is None else [labels.indices, weight]
        of = functools.partial(_counts, len(labels.classes))
        totals = np.sum(_computed(da.map_blocks(of, *arrays, meta=np.empty(0))), 0)
        by_class = balanced(totals)
    else:
        by_class = compute_class_weight(class_weight, classes=labels.classes, y=labels.classes)
    each = labels.indices.map_blocks(functools.partial(_taken, by_class), dtype=float)
    return each if weight is None else each * weight


def _computed(array: Any) -> list[Any]:
    """Return the blocks of a Dask vector, which may be of any size."""
    from dask.base import compute

    return list(compute(*array.to_delayed().ravel()))


def _full(block: np.ndarray, value: float) -> np.ndarray:
    return np.full(len(block), value)


def _unique(block: Any) -> np.ndarray:
    return np.unique(np.asarray(block))


def _indices(classes: np.ndarray, block: Any) -> np.ndarray:
    return np.searchsorted(classes, np.asarray(block)).astype(float)


def _counts(K: int, indices: np.ndarray, weight: Any = None) -> np.ndarray:
    return np.bincount(indices.astype(int), weight, minlength=K).astype(float)


def _taken(by_class: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return by_class[indices.astype(int)]


# ---------------------------------------------------------------------- statistics


def statistics_of_blocks(
    f: Blocks,
    solution: Solution,
    names: tuple[str, ...],
    classes: tuple[str, ...] = (),
    *,
    title: str,
) -> FitStatistics:
    """Return the statistics of a fitted `Blocks`, by one more pass."""
    model, n = f.stream.model, f.stream.model.dimension
    held = held_of(solution, n)
    x = np.asarray(solution.x, float).reshape(-1)
    has_sums = n <= MOST_COEFFICIENTS
    parts = list(f.stream.map(_sums_of_part, model, x, has_sums))
    sums = None
    if has_sums:
        sums = functools.reduce(_added, (one for one, _ in parts))
    targets = functools.reduce(TargetSums.and_of, (one for _, one in parts))
    return FitStatistics(
        title=title,
        names=(*names, "intercept") if model.intercept else names,
        classes=classes,
        shape=model.shape,
        loss=model.loss,
        l2=np.broadcast_to(np.asarray(f.stream.l2, float), n),
        count=f.stream.survey.samples,
        sums=sums,
        information=None if has_sums else solution.information,
        unit=1.0,
        targets=targets.numbers(model),
        held=held,
    )


@dataclasses.dataclass(frozen=True)
class TargetSums:
    """Sums of the targets alone, of rows whose weight is not zero.

    `by_class` are the weights of the classes, and `squares` is about the mean.
    """

    weight: float
    mean: float
    squares: float
    logs: dict[str, float]
    by_class: np.ndarray
    is_weighted: bool

    def and_of(self, other: TargetSums) -> TargetSums:
        """Return the sums of the rows of both."""
        weight = self.weight + other.weight
        if weight == 0:
            return self
        change, share = other.mean - self.mean, other.weight / weight
        return TargetSums(
            weight,
            self.mean + share * change,
            # Chan, Golub and LeVeque: the sum of squares about the mean of both
            self.squares + other.squares + self.weight * share * change**2,
            {name: self.logs[name] + other.logs[name] for name in self.logs},
            self.by_class + other.by_class,
            self.is_weighted or other.is_weighted,
        )

    def numbers(self, model: Model) -> dict[str, float]:
        """Return what the log-likelihood and R squared need."""
        if isinstance(model.loss, Squared):
            about_zero = 0.0 if model.intercept else self.weight * self.mean**2
            return {"squares": self.squares + about_zero, "log weights": self.logs["weight"]}
        if isinstance(model.loss, Poisson):
            return {"log factorials": self.logs["factorial"]}
        if isinstance(model.loss, Gamma):
            return {} if self.is_weighted else {"log y": self.logs["y"]}
        if model.intercept and isinstance(model.loss, Logistic | Multinomial):
            shares = self.by_class / self.weight
            return {"null likelihood": float(self.weight * special.xlogy(shares, shares).sum())}
        return {}


def _sums_of_part(
    blocks: Iterable[Any], model: Model, x: np.ndarray, has_sums: bool
) -> tuple[InformationSums, TargetSums]:
    """Return the sums of a part of the rows."""
    sums = InformationSums(model.loss, model.dimension if has_sums else 0)
    K = getattr(model.loss, "classes", 2)
    no_logs = {"weight": 0.0, "factorial": 0.0, "y": 0.0}
    targets = TargetSums(0.0, 0.0, 0.0, no_logs, np.zeros(K), False)
    for X, y, weight, p in model.predict(blocks, x):
        if has_sums:
            sums.add(X, y, p, weight)
        used = weight > 0
        if used.any():
            targets = targets.and_of(_targets_of(model.loss, np.asarray(y)[used], weight[used], K))
    return sums, targets


def _targets_of(loss: Any, y: np.ndarray, weight: np.ndarray, K: int) -> TargetSums:
    total = float(weight.sum())
    mean = float(weight @ y) / total
    by_class: np.ndarray = np.zeros(K)
    if isinstance(loss, Logistic | Multinomial):
        indices = (y if isinstance(loss, Multinomial) else y > 0).astype(int)
        by_class = np.bincount(indices, weight, minlength=K)
    factorials = isinstance(loss, Poisson)
    logs = {
        "weight": float(np.log(weight).sum()),
        "factorial": float(weight @ special.gammaln(y + 1)) if factorials else 0.0,
        "y": float(np.log(y).sum()) if isinstance(loss, Gamma) else 0.0,
    }
    squares = float(weight @ (y - mean) ** 2)
    return TargetSums(total, mean, squares, logs, by_class, bool(np.any(weight != 1)))


def _added(one: InformationSums, other: InformationSums) -> InformationSums:
    """Return the sums of the rows of both."""
    both = InformationSums(one.loss, 0)
    for name in ("gram", "count", "squares", "slopes", "squared_slopes"):
        setattr(both, name, getattr(one, name) + getattr(other, name))
    return both


# ---------------------------------------------------------------------- predictions


def predict_blocks(estimator: Any, method: str, X: Any) -> Any:
    """Return the Dask array of the predictions of a method, one block for each block of rows."""
    check_is_fitted(estimator)
    check_columns(estimator, X, reset=False)
    owner = f"{type(estimator).__name__}.{method}"
    rows = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    if rows.ndim != 2:
        checks.fail(owner, "X", "be a matrix", f"a Dask array of {rows.ndim} axes")
    if rows.numblocks[1] > 1:
        wanted = "have all columns in one chunk: X.rechunk({1: -1})"
        checks.fail(owner, "X", wanted, f"{rows.numblocks[1]} chunks of columns")
    small = copy.copy(estimator)
    # a task takes the coefficients along, not the run and the statistics
    for name in ("solution_", "loss_curve_", "_statistics", "feature_names_in_"):
        with contextlib.suppress(AttributeError):
            delattr(small, name)
    like = getattr(small, method)(np.zeros((1, rows.shape[1])))
    of = functools.partial(_predict_block, small, method, like)
    if like.ndim == 1:
        return rows.map_blocks(of, dtype=like.dtype, drop_axis=1, meta=like[:0])
    chunks = (rows.chunks[0], (like.shape[1],))
    return rows.map_blocks(of, dtype=like.dtype, chunks=chunks, meta=like[:0])


def _predict_block(estimator: Any, method: str, like: np.ndarray, block: Any) -> np.ndarray:
    if block.shape[0] == 0:
        return like[:0]
    return np.asarray(getattr(estimator, method)(block))
