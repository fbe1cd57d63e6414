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
        present = ~np.isnan(block)
        block_count = present.sum(0)
        total = np.where(present, block, 0.0).sum(0)
        block_mean = np.divide(
            total, block_count, out=np.zeros_like(self.mean), where=block_count > 0
        )
        centred = np.where(present, block - block_mean, 0.0)
        count = self.count + block_count
        shift = block_mean - self.mean
        weight = np.divide(block_count, count, out=np.zeros_like(self.mean), where=count > 0)
        self.sum_of_squares += (centred**2).sum(0) + shift**2 * self.count * weight
        self.mean += shift * weight
        self.count, self.rows = count, self.rows + len(block)
        lowest = np.where(present, block, np.inf).min(0, initial=np.inf)
        highest = np.where(present, block, -np.inf).max(0, initial=-np.inf)
        self.minimum = np.fmin(self.minimum, lowest)
        self.maximum = np.fmax(self.maximum, highest)

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation over all rows, missing values being the mean."""
        return np.sqrt(self.sum_of_squares / max(self.rows, 1))
