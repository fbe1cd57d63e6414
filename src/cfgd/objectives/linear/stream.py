"""Value, gradient and Hessian of a linear model by passes over blocks of rows.

A pass is a function of the blocks of a part of the rows; an engine adds the sums of all parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from cfgd._core import checks
from cfgd._core.engines.base import Arrays, Engine, Pass
from cfgd.objectives.linear.block_source import OWNER, Block
from cfgd.objectives.linear.design import Dense, InScipy
from cfgd.objectives.linear.intercept import WithIntercept
from cfgd.objectives.linear.losses import Loss
from cfgd.objectives.linear.multinomial import Multinomial, last_label, matrix_of_classes

# coefficients up to which the Hessian X' diag(l'') X is summed in the pass of the gradient
MAX_COEFFICIENTS = 4096
# bytes for each entry of such a matrix: 8, and the copies of it that a step makes
BYTES_PER_ENTRY = 64


class StreamEvaluation(NamedTuple):
    """The results of a pass at the point w."""

    w: np.ndarray
    value: float
    gradient: np.ndarray
    curvature: np.ndarray  # the Hessian, or its diagonal


class PredictedBlock(NamedTuple):
    """A block of rows with its predictions p at a point."""

    X: Any
    y: Any
    weight: np.ndarray
    p: Any


# ---------------------------------------------------------------------- passes


@dataclasses.dataclass(frozen=True)
class RowsSurvey:
    """Properties of the rows that the first pass finds.

    `samples` are the rows whose weight is not zero, and `least_weight` is the least of these
    weights. `labels` are those of a loss with two classes; of several classes the largest one.
    """

    rows: int = 0
    columns: int | None = None
    samples: int = 0
    least_weight: float = np.inf
    has_offset: bool = False
    labels: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))

    def and_of(self, other: RowsSurvey) -> RowsSurvey:
        """Return the properties of the rows of both."""
        columns = [found.columns for found in (self, other) if found.columns is not None]
        if len(set(columns)) > 1:
            checks.fail(OWNER, "source", f"give blocks with {columns[0]} columns", f"{columns[1]}")
        return RowsSurvey(
            self.rows + other.rows,
            columns[0] if columns else None,
            self.samples + other.samples,
            min(self.least_weight, other.least_weight),
            self.has_offset or other.has_offset,
            np.union1d(self.labels, other.labels),
        )


def survey_rows(blocks: Iterable[Any], loss: Loss | None) -> RowsSurvey:
    """Check all rows of a part; `loss` is None for the multinomial loss."""
    found = RowsSurvey()
    for number, given in enumerate(blocks):
        block = _checked(number, given, found.columns)
        if loss is None:
            labels = np.array([last_label(OWNER, block.y)] if len(block.y) else [])
        elif loss.probabilities(np.zeros(1)) is not None:
            loss.targets(OWNER, block.y)
            labels = np.unique(block.y)
        else:
            loss.targets(OWNER, block.y)
            labels = np.zeros(0)
        weight = np.ones(len(block.y)) if block.weight is None else block.weight
        found = found.and_of(
            RowsSurvey(
                len(block.y),
                block.X.shape[1],
                int(np.count_nonzero(weight)),
                float(np.min(weight, where=weight > 0, initial=np.inf)),
                block.offset is not None,
                labels,
            )
        )
    return found


def _checked(number: int, given: object, columns: int | None) -> Block:
    """Return a block, or raise a `ValueError` that names its number."""
    where = f"(block {number})"
    if not isinstance(given, Block):
        wanted = f"give X, y and perhaps weights and offsets {where}"
        checks.fail(OWNER, "source", wanted, checks.describe(given))
    X, y, weight, offset = given
    if X.ndim != 2 or y.shape != X.shape[:1]:
        wanted = f"give a matrix and a target for each of its rows {where}"
        checks.fail(OWNER, "source", wanted, f"shapes {X.shape} and {y.shape}")
    if columns is not None and X.shape[1] != columns:
        wanted = f"give blocks with {columns} columns {where}"
        checks.fail(OWNER, "source", wanted, f"{X.shape[1]}")
    if weight is not None and (weight.shape != y.shape or np.any(weight < 0)):
        wanted = f"be a number of at least 0 for each row {where}"
        got = f"shape {weight.shape}" if weight.shape != y.shape else f"{weight.min()}"
        checks.fail(OWNER, "sample_weight", wanted, got)
    if offset is not None and len(offset) != len(y):
        checks.fail(OWNER, "offset", f"be one for each row {where}", f"shape {offset.shape}")
    entries = X.data if scipy.sparse.issparse(X) else X
    if not all(np.isfinite(of).all() for of in (entries, y, weight, offset) if of is not None):
        checks.fail(OWNER, "source", f"give finite numbers {where}", "others")
    return given


@dataclasses.dataclass(frozen=True)
class Model:
    """A linear model without its rows, and the sums of it over the blocks of a part.

    Attributes
    ----------
    loss : Loss
        Of the predictions and the targets.
    intercept : bool
        Whether the last row of the coefficients is the intercept.
    shape : tuple
        Of the coefficients: rows of X, and columns for several classes.
    has_matrix : bool
        Whether the Hessian is summed with the gradient; else its diagonal is.
    """

    loss: Loss
    intercept: bool
    shape: tuple[int, ...]
    has_matrix: bool

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return int(np.prod(self.shape))

    def predict(self, blocks: Iterable[Block], w: np.ndarray) -> Iterator[PredictedBlock]:
        """Iterate over blocks with their predictions at w."""
        with np.errstate(over="ignore", invalid="ignore"):  # a trial step may be far too long
            for block in blocks:
                design = InScipy(block.X) if scipy.sparse.issparse(block.X) else Dense(block.X)
                X: Any = WithIntercept(design) if self.intercept else design
                y = self.loss.targets(OWNER, block.y)
                p = X.times(w.reshape(self.shape))
                if block.offset is not None:
                    p = p + block.offset
                weight = np.ones(len(y)) if block.weight is None else block.weight
                yield PredictedBlock(X, y, weight, p)
                del block, design, X, y, p

    def evaluate(self, blocks: Iterable[Block], w: np.ndarray) -> Arrays:
        """Return the sums of value, gradient and curvature, and the number of rows."""
        value, rows, gradient = 0.0, 0, np.zeros(self.shape)
        total = np.zeros(2 * (self.dimension,) if self.has_matrix else self.shape)
        for block in self.predict(blocks, w):
            slope, curvature = map(np.asarray, self.loss.derivatives(block.p, block.y))
            value += float(block.weight @ np.asarray(self.loss.value(block.p, block.y)))
            gradient += block.X.back(_times(block.weight, slope))
            total += self._curvature(block, curvature)
            rows += len(block.y)
        return np.array(value), gradient.reshape(-1), total, np.array(rows)

    def _curvature(self, block: PredictedBlock, curvature: np.ndarray) -> Any:
        """Return a block's part of the Hessian, or of its diagonal."""
        if not self.has_matrix:
            return block.X.squares(_times(block.weight, curvature))
        if self.loss.has_classes:
            return matrix_of_classes(block.X, self.loss, block.p, block.weight)
        return block.X.gram(block.weight * curvature, np.zeros(()))

    def hessian_times(self, blocks: Iterable[Block], w: np.ndarray, v: np.ndarray) -> Arrays:
        """Return Hv at w, and the number of rows."""
        total, rows = np.zeros(self.shape), 0
        for X, y, weight, p in self.predict(blocks, w):
            change = self.loss.along(p, y, X.times(v.reshape(self.shape)))
            total += X.back(_times(weight, np.asarray(change)))
            rows += len(y)
        return total.reshape(-1), np.array(rows)


def _times(weight: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Multiply each row by its weight."""
    return (weight if entries.ndim == 1 else weight[:, None]) * entries


# ---------------------------------------------------------------------- the model of all rows


class Stream:
    """A linear model of streamed rows.

    One pass gives the value, the gradient, and the Hessian or, for many columns, its diagonal.
    """

    def __init__(self, engine: Engine, loss: Loss | None, intercept: bool, memory: float) -> None:
        """Check the rows in a first pass; `loss` is None for the multinomial loss."""
        self.engine = engine
        self.l2: Any = 0.0
        self.passes = 1
        self.last: StreamEvaluation | None = None
        found = RowsSurvey()
        for part in engine.map(survey_rows, loss):
            found = found.and_of(part)
        if found.rows == 0:
            checks.fail(OWNER, "source", "have rows", "none")
        if found.samples == 0:
            checks.fail(OWNER, "sample_weight", "have a positive entry", "only zeros")
        self.survey, self.columns = found, found.columns or 0
        if loss is None:
            loss = Multinomial.with_last(OWNER, int(found.labels.max()))
        elif len(found.labels):
            loss.targets(OWNER, found.labels)  # the labels of all blocks together
        d, classes = self.columns + intercept, getattr(loss, "classes", None)
        shape = (d,) if classes is None else (d, classes)
        n = int(np.prod(shape))
        has_matrix = BYTES_PER_ENTRY * n**2 <= memory / 2 and n <= MAX_COEFFICIENTS
        self.model = Model(loss, intercept, shape, has_matrix)

    def map(self, function: Pass, *args: Any) -> Iterator[Any]:
        """Iterate over the results of a pass over all parts, which is counted."""
        self.passes += 1
        return self.engine.map(function, *args)

    def _sum(self, function: Pass, *args: Any) -> Arrays:
        """Return the sums of one pass; it must have as many rows as the first one."""
        self.passes += 1
        *sums, rows = self.engine.sum(function, *args)
        if rows != self.survey.rows:
            wanted = f"give {self.survey.rows:,} rows at every pass"
            checks.fail(OWNER, "source", wanted, f"{int(rows):,}")
        return tuple(sums)

    def evaluate(self, w: np.ndarray) -> StreamEvaluation:
        """Evaluate the model at w, by one pass unless w is the last point."""
        w = np.asarray(w, float).reshape(-1)
        last = self.last  # a run in another thread may replace it meanwhile
        if last is not None and np.array_equal(last.w, w):
            return last
        last = self.last = None  # release its Hessian before another one is allocated
        value, gradient, total = self._sum(self.model.evaluate, w)
        penalty = self.l2 * w
        if not self.model.has_matrix:
            total = total.reshape(-1)
        total.flat[:: self.model.dimension + 1 if self.model.has_matrix else 1] += self.l2
        last = StreamEvaluation(
            w.copy(), float(value) + float(penalty @ w) / 2, gradient + penalty, total
        )
        self.last = last
        return last

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        evaluation = self.evaluate(w)
        return evaluation.value, evaluation.gradient.reshape(np.shape(w))

    def hessian(self, w: np.ndarray) -> np.ndarray:
        return self.evaluate(w).curvature

    def hessian_times(self, w: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return Hv at w: by the matrix if there is one, else by one pass."""
        if self.model.has_matrix:
            return self.hessian(w) @ v
        w, v = np.asarray(w, float), np.asarray(v, float)
        (product,) = self._sum(self.model.hessian_times, w, v)
        return product + self.l2 * v

    def diagonal(self, w: np.ndarray) -> np.ndarray:
        curvature = self.evaluate(w).curvature
        return curvature.diagonal() if self.model.has_matrix else curvature
