"""A linear model of rows that do not fit into memory: they are streamed, one pass a look."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from cfgd import _check
from cfgd.objective.block_source import OWNER, Source, ahead, source_of
from cfgd.objective.external import External
from cfgd.objective.loss import LOSSES, Loss
from cfgd.objective.samples import penalties

# columns up to which X' diag(l'') X is made in the pass that makes the gradient: beyond, it would
# take longer than reading
MOST_COLUMNS = 512
MEMORY = 256e6


class Stream:
    """Sums over the rows, a pass for each point."""

    def __init__(self, source: Source, loss: Loss, intercept: bool) -> None:
        self.source, self.loss, self.intercept = source, loss, intercept
        self.l2: Any = 0.0
        self.rows = self.columns = self.passes = 0
        self._survey()
        self.dimension = self.columns + intercept
        self.has_matrix = self.dimension <= MOST_COLUMNS
        self.last: tuple[np.ndarray, np.ndarray] | None = None  # a point, and the Hessian there

    def _survey(self) -> None:
        """Look at all rows once: what is wrong with them is said before any work."""
        self.passes += 1
        for number, (X, y) in enumerate(ahead(self.source())):
            X, y = self._checked(number, X, y)
            self.columns = X.shape[1] if number == 0 else self.columns
            self.rows += len(y)
        if self.rows == 0:
            _check.fail(OWNER, "source", "have rows", "none")

    def _checked(self, number: int, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        X, y = _floats(X), np.asarray(y, float)
        where = f"(block {number})"
        if X.ndim != 2 or y.shape != X.shape[:1]:
            wanted = f"give a matrix and a target for each of its rows {where}"
            _check.fail(OWNER, "source", wanted, f"shapes {X.shape} and {y.shape}")
        if number > 0 and X.shape[1] != self.columns:
            wanted = f"give blocks with {self.columns} columns {where}"
            _check.fail(OWNER, "source", wanted, f"{X.shape[1]}")
        entries = X.data if scipy.sparse.issparse(X) else X
        if not np.isfinite(entries).all() or not np.isfinite(y).all():
            _check.fail(OWNER, "source", f"give finite numbers {where}", "others")
        self.loss.targets(OWNER, y)
        return X, y

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        self.passes += 1
        d = self.columns
        value, gradient = 0.0, np.zeros(self.dimension)
        H = np.zeros((self.dimension, self.dimension)) if self.has_matrix else None
        for block, targets in ahead(self.source()):
            X, y = _floats(block), self.loss.targets(OWNER, np.asarray(targets, float))
            with np.errstate(over="ignore", invalid="ignore"):  # a trial may lie too far off
                p = X @ w[:d] + (w[d] if self.intercept else 0.0)
                value += float(np.sum(self.loss.value(p, y)))
                slope, curvature = (np.asarray(of) for of in self.loss.derivatives(p, y))
                gradient[:d] += X.T @ slope
                if self.intercept:
                    gradient[d] += slope.sum()
                if H is not None:
                    self._add(H, X, curvature)
        self.last = None if H is None else (w.copy(), H + np.diag(np.broadcast_to(self.l2, len(w))))
        penalty = self.l2 * w
        return value + float(penalty @ w) / 2, gradient + penalty

    def _add(self, H: np.ndarray, X: Any, curvature: np.ndarray) -> None:
        """X' diag(l'') X of a block."""
        d = self.columns
        if scipy.sparse.issparse(X):
            H[:d, :d] += (X.T @ X.multiply(curvature[:, None])).toarray()
        else:
            H[:d, :d] += X.T @ (curvature[:, None] * X)
        if self.intercept:
            cross = X.T @ curvature
            H[:d, d] += cross
            H[d, :d] += cross
            H[d, d] += curvature.sum()

    def hessian(self, w: np.ndarray) -> np.ndarray:
        """Of the pass that was there last, or of one more."""
        if self.last is None or not np.array_equal(self.last[0], w):
            self.value_and_gradient(w)
        assert self.last is not None
        return self.last[1]


class Blocks(External):
    r"""f(w) = sum_i loss((Xw)_i, y_i) + sum_j l2_j w_j^2 / 2 of rows that are read at every look.

    `source` is a matrix, np.memmap and scipy.sparse among them, with `y`; a list of files, .npy
    with a list of others as `y`, .npz with arrays X and y, or .parquet, in which `target` names a
    column; or a function that returns an iterator of pairs of X and y, which is called for every
    pass. The losses are those of `LinearModel` for one prediction, as is `intercept`; its value
    and minimiser are that of `LinearModel` on the same rows, to rounding.

    A look takes one pass, in which the next block is read while one is computed with, and about
    `memory` bytes, however many rows there are. Up to 512 columns the same pass makes the Hessian,
    so that `Auto` takes Tikhonov steps: a handful of passes in all. The first pass is that of the
    checks.

    >>> import cfgd, numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(1000, 3))
    >>> f = cfgd.Blocks(X, X @ [1.0, -2.0, 0.5] > 0.3 * random.normal(size=1000), l2=1.0)
    >>> solution = cfgd.minimize(f, np.zeros(3))
    >>> print(solution.status.name, f.passes < 20, solution.x.round(1))
    converged True [ 3.3 -6.5  1.6]
    """

    stream: Stream

    def __init__(
        self,
        source: Any,
        y: Any = None,
        loss: str = "logistic",
        l2: Any = 0.0,
        *,
        intercept: bool = False,
        target: str | None = None,
        memory: float = MEMORY,
    ) -> None:
        if loss not in LOSSES:
            _check.fail(OWNER, "loss", f"be one of {', '.join(LOSSES)}", repr(loss))
        budget = _check.positive(OWNER, "memory", memory)
        rows = source_of(source, y, target, float(budget))
        stream = Stream(rows, LOSSES[loss], _check.flag(OWNER, "intercept", intercept))
        stream.l2 = penalties(OWNER, l2, np.dtype(float), (stream.columns,), intercept)
        self.stream = stream
        hessian = stream.hessian if stream.has_matrix else None
        super().__init__(stream.value_and_gradient, hessian=hessian)

    @property
    def dimension(self) -> int:
        return self.stream.dimension

    @property
    def passes(self) -> int:
        """Over all rows so far."""
        return self.stream.passes

    @property
    def rows(self) -> int:
        return self.stream.rows


def _floats(X: Any) -> Any:
    return X.tocsr().astype(float) if scipy.sparse.issparse(X) else np.asarray(X, float)
