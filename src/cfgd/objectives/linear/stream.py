"""Value, gradient and Hessian of a linear model by passes over blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from cfgd._core import checks
from cfgd.objectives.linear.block_source import OWNER, Block, Source, prefetch
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


class Stream:
    """A linear model of streamed rows.

    One pass gives the value, the gradient, and the Hessian or, for many columns, its diagonal.
    """

    def __init__(self, source: Source, loss: Loss | None, intercept: bool, memory: float) -> None:
        """Check the rows in a first pass; `loss` is None for the multinomial loss."""
        self.source, self.intercept = source, intercept
        self.l2: Any = 0.0
        self.rows = self.columns = self.passes = 0
        self.n_samples = 0  # rows whose weight is not zero
        self.least_weight = np.inf  # of those
        self.has_offset = False
        self.last: StreamEvaluation | None = None
        self.loss = self._survey(loss)
        classes = getattr(self.loss, "classes", None)
        d = self.columns + intercept
        self.shape = (d,) if classes is None else (d, classes)
        self.dimension = int(np.prod(self.shape))
        fits = BYTES_PER_ENTRY * self.dimension**2 <= memory / 2
        self.has_matrix = fits and self.dimension <= MAX_COEFFICIENTS

    # ------------------------------------------------------------------ the first pass

    def _survey(self, loss: Loss | None) -> Loss:
        """Check all rows in a first pass, count them, and return the loss for their labels."""
        self.passes += 1
        labels = np.zeros(0)
        for number, given in enumerate(prefetch(self.source())):
            block = self._checked(number, given)
            self.columns, self.rows = block.X.shape[1], self.rows + len(block.y)
            weight = block.weight
            self.n_samples += len(block.y) if weight is None else int(np.count_nonzero(weight))
            weight = np.ones(1) if weight is None else weight
            least = float(np.min(weight, where=weight > 0, initial=np.inf))
            self.least_weight = min(self.least_weight, least)
            self.has_offset = self.has_offset or block.offset is not None
            if loss is None:
                labels = np.array([max(last_label(OWNER, block.y), labels.max(initial=0))])
            elif loss.probabilities(np.zeros(1)) is not None:
                loss.targets(OWNER, block.y)
                labels = np.union1d(labels, block.y)
            else:
                loss.targets(OWNER, block.y)
        if self.rows == 0:
            checks.fail(OWNER, "source", "have rows", "none")
        if self.n_samples == 0:
            checks.fail(OWNER, "sample_weight", "have a positive entry", "only zeros")
        if loss is None:
            return Multinomial.with_last(OWNER, int(labels[0]))
        if len(labels):
            loss.targets(OWNER, labels)  # the labels of all blocks together
        return loss

    def _checked(self, number: int, given: object) -> Block:
        """Return a block in float64, or raise a `ValueError` that names its number."""
        where = f"(block {number})"
        if not isinstance(given, tuple | list) or not 2 <= len(given) <= 4:
            wanted = f"give X, y and perhaps weights and offsets {where}"
            checks.fail(OWNER, "source", wanted, checks.describe(given))
        X, y, weight, offset = _floats(Block(*given))
        if X.ndim != 2 or y.shape != X.shape[:1]:
            wanted = f"give a matrix and a target for each of its rows {where}"
            checks.fail(OWNER, "source", wanted, f"shapes {X.shape} and {y.shape}")
        if number > 0 and X.shape[1] != self.columns:
            wanted = f"give blocks with {self.columns} columns {where}"
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
        return Block(X, y, weight, offset)

    # ------------------------------------------------------------------ all later passes

    def _blocks(self) -> Iterator[Block]:
        """Iterate over the blocks of one pass; it must have as many rows as the first one."""
        self.passes += 1
        rows = 0
        for block in prefetch(_floats(Block(*given)) for given in self.source()):
            rows += len(block.y)
            yield block
            del block
        if rows != self.rows:
            checks.fail(OWNER, "source", f"give {self.rows:,} rows at every pass", f"{rows:,}")

    def _design(self, X: object) -> Any:
        design = InScipy(X) if scipy.sparse.issparse(X) else Dense(X)
        return WithIntercept(design) if self.intercept else design

    def evaluate(self, w: np.ndarray) -> StreamEvaluation:
        """Evaluate the model at w, by one pass unless w is the last point."""
        w = np.asarray(w, float).reshape(-1)
        last = self.last  # a run in another thread may replace it meanwhile
        if last is not None and np.array_equal(last.w, w):
            return last
        last = self.last = None  # release its Hessian before another one is allocated
        value, gradient = 0.0, np.zeros(self.shape)
        total = np.zeros(2 * (self.dimension,) if self.has_matrix else self.shape)
        for block in self.predicted_blocks(w):
            slope, curvature = map(np.asarray, self.loss.derivatives(block.p, block.y))
            value += float(block.weight @ np.asarray(self.loss.value(block.p, block.y)))
            gradient += block.X.back(_times(block.weight, slope))
            total += self._curvature(block, curvature)
        gradient, penalty = gradient.reshape(-1), self.l2 * w
        total = total if self.has_matrix else total.reshape(-1)
        total.flat[:: self.dimension + 1 if self.has_matrix else 1] += self.l2
        value += float(penalty @ w) / 2
        last = StreamEvaluation(w.copy(), value, gradient + penalty, total)
        self.last = last
        return last

    def _curvature(self, block: PredictedBlock, curvature: np.ndarray) -> Any:
        """Return a block's part of the Hessian, or of its diagonal."""
        if not self.has_matrix:
            return block.X.squares(_times(block.weight, curvature))
        if self.loss.has_classes:
            return matrix_of_classes(block.X, self.loss, block.p, block.weight)
        return block.X.gram(block.weight * curvature, np.zeros(()))

    def predicted_blocks(self, w: np.ndarray) -> Iterator[PredictedBlock]:
        """Iterate over the blocks of a pass, with their predictions at w."""
        with np.errstate(over="ignore", invalid="ignore"):  # a trial step may be far too long
            for block in self._blocks():
                X, y = self._design(block.X), self.loss.targets(OWNER, block.y)
                p = X.times(w.reshape(self.shape))
                if block.offset is not None:
                    p = p + block.offset
                weight = np.ones(len(y)) if block.weight is None else block.weight
                yield PredictedBlock(X, y, weight, p)
                del block, X, y, p

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        evaluation = self.evaluate(w)
        return evaluation.value, evaluation.gradient.reshape(np.shape(w))

    def hessian(self, w: np.ndarray) -> np.ndarray:
        return self.evaluate(w).curvature

    def hessian_times(self, w: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return Hv at w: by the matrix if there is one, else by one pass."""
        if self.has_matrix:
            return self.hessian(w) @ v
        total = np.zeros(self.shape)
        for X, y, weight, p in self.predicted_blocks(w):
            change = self.loss.along(p, y, X.times(v.reshape(self.shape)))
            total += X.back(_times(weight, np.asarray(change)))
        return total.reshape(-1) + self.l2 * v

    def diagonal(self, w: np.ndarray) -> np.ndarray:
        curvature = self.evaluate(w).curvature
        return curvature.diagonal() if self.has_matrix else curvature


def _times(weight: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Multiply each row by its weight."""
    return (weight if entries.ndim == 1 else weight[:, None]) * entries


def _floats(block: Block) -> Block:
    """Convert a block to float64; this runs in the thread that prefetches."""
    X = block.X
    X = X.tocsr().astype(float, copy=False) if scipy.sparse.issparse(X) else np.asarray(X, float)
    return Block(X, *(None if of is None else np.asarray(of, float) for of in block[1:]))
