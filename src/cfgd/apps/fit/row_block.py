"""Blocks of rows of the design matrix, and how many rows they have."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd.apps.fit.target import Target
from cfgd.objectives.linear.block_size import rows_of_memory

# copies of a block that are in memory at once: what pyarrow has read, the encoded and standardised
# rows, and the temporary arrays of the pass
COPIES = 16
CACHED_NUMBERS, MIN_CACHED = 2**17, 4096  # numbers in a block (1 MiB), and rows of wide ones
NO_PENALTY = np.zeros(())


def rows_of_block(memory: float, columns: int) -> int:
    """Return the number of rows of a block for which `memory` bytes suffice.

    Blocks of few columns are no larger than the cache of a core, with the temporary arrays.
    """
    in_cache = max(MIN_CACHED, CACHED_NUMBERS // max(columns, 1))
    return min(in_cache, rows_of_memory(memory, columns, COPIES))


class RowBlock(NamedTuple):
    """Rows of the design matrix with what is known of each; None where no column says it.

    `weight` is the one of `--weights`, `offset` is in the units of y, and `cluster` a number.
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    cluster: np.ndarray | None = None

    def select(self, mask: np.ndarray | slice) -> RowBlock:
        """Return some of the rows."""
        about = (None if of is None else of[mask] for of in self[2:])
        return RowBlock(self.X[mask], self.y[mask], *about)

    @property
    def weights(self) -> np.ndarray:
        """The weight of each row, 1 where none is given."""
        return np.ones(len(self.y)) if self.weight is None else self.weight

    def fit_weight(self, target: Target) -> np.ndarray:
        """Return the weights of the rows in the fit: those of their class included."""
        if target.class_weights is None:
            return self.weights
        return self.weights * target.class_weights[self.y.astype(int)]

    def predictors(self, w: np.ndarray) -> np.ndarray:
        """Return the linear predictors for coefficients of standardised columns."""
        return self.plus_offset(self.X @ w[:-1] + w[-1])

    def design(self, classes: int) -> Any:
        """Return what has `gram`: the rows, or for several classes the design matrix of cfgd."""
        if classes == 1:
            return self
        from cfgd.objectives.linear.design import Dense  # which needs JAX
        from cfgd.objectives.linear.intercept import WithIntercept

        return WithIntercept(Dense(self.X))

    def gram(self, weight: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Return X'SX of the rows with a column of ones, plus a penalty for each coefficient."""
        is_weighted = bool(np.any(weight != 1))
        root = np.sqrt(weight)[:, None]
        by_root = self.X * root if is_weighted else self.X
        d = self.X.shape[1]
        found = np.empty((d + 1, d + 1))
        # of a matrix and its own transpose BLAS computes one half
        found[:d, :d] = by_root.T @ by_root
        found[:d, d] = found[d, :d] = by_root.T @ root[:, 0]
        found[d, d] = weight.sum()
        found.flat[:: d + 2] += penalty
        return found

    def plus_offset(self, p: np.ndarray) -> np.ndarray:
        """Return linear predictors with the offset added."""
        return p if self.offset is None else p + self.offset


class CodedBlock(NamedTuple):
    """Rows with their codes of the split, without those that are left out.

    `unknown` counts rows with a text that no training row has, and `undefined` those that are left
    out because the formula has no value, as a level of C(...) is in no training row.
    """

    rows: RowBlock
    codes: np.ndarray
    unknown: int = 0
    undefined: int = 0


class KnownGram(NamedTuple):
    """The Gram matrix of rows in the place of the rows."""

    matrix: np.ndarray

    def gram(self, weight: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Return the matrix: all weights are 1."""
        return self.matrix + penalty
