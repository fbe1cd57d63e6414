"""Means and deviations of columns that arrive in blocks.

The blocks are merged by the update of Chan, Golub and LeVeque (1979), which does not cancel where
the mean is large.
"""

from __future__ import annotations

import numpy as np


class RunningMoments:
    """Mean, deviation, minimum and maximum of columns; a missing value (NaN) counts as the mean.

    >>> moments = RunningMoments(1)
    >>> moments.add(np.array([[1.0], [2.0]]))
    >>> moments.add(np.array([[6.0], [np.nan]]))
    >>> print(moments.mean, moments.deviation.round(4))
    [3.] [1.8708]
    """

    def __init__(self, columns: int) -> None:
        self.rows = 0
        self.count, self.mean, self.sum_of_squares = np.zeros((3, columns))
        self.minimum, self.maximum = np.full(columns, np.inf), np.full(columns, -np.inf)

    def add(self, block: np.ndarray) -> None:
        """Include the rows of a block."""
        missing = np.isnan(block)
        has_missing = missing.any()
        block_count = len(block) - missing.sum(0)
        total = (np.where(missing, 0.0, block) if has_missing else block).sum(0)
        block_mean = np.divide(
            total, block_count, out=np.zeros_like(self.mean), where=block_count > 0
        )
        centred = block - block_mean
        if has_missing:
            centred[missing] = 0.0
        count = self.count + block_count
        shift = block_mean - self.mean
        weight = np.divide(block_count, count, out=np.zeros_like(self.mean), where=count > 0)
        squares = np.einsum("ij,ij->j", centred, centred)
        self.sum_of_squares += squares + shift**2 * self.count * weight
        self.mean += shift * weight
        self.count, self.rows = count, self.rows + len(block)
        self.minimum = np.fmin(self.minimum, np.fmin.reduce(block, 0, initial=np.inf))
        self.maximum = np.fmax(self.maximum, np.fmax.reduce(block, 0, initial=-np.inf))

    def merge(self, other: RunningMoments) -> None:
        """Include the rows of other moments."""
        count = self.count + other.count
        shift = other.mean - self.mean
        weight = np.divide(other.count, count, out=np.zeros_like(self.mean), where=count > 0)
        self.sum_of_squares += other.sum_of_squares + shift**2 * self.count * weight
        self.mean += shift * weight
        self.count, self.rows = count, self.rows + other.rows
        self.minimum = np.fmin(self.minimum, other.minimum)
        self.maximum = np.fmax(self.maximum, other.maximum)

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation over all rows, missing values being the mean."""
        return np.sqrt(self.sum_of_squares / max(self.rows, 1))
