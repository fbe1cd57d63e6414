"""Means and deviations of columns that come in blocks, each block by what it differs from all."""

from __future__ import annotations

import numpy as np


class Moments:
    """NaN is what is missing: it counts as the mean.

    >>> moments = Moments(1)
    >>> moments.add(np.array([[1.0], [2.0]]))
    >>> moments.add(np.array([[6.0], [np.nan]]))
    >>> print(moments.mean, moments.deviation.round(4))
    [3.] [1.8708]
    """

    def __init__(self, columns: int) -> None:
        self.rows = 0
        self.seen, self.mean, self.squares = np.zeros((3, columns))
        self.least, self.most = np.full(columns, np.inf), np.full(columns, -np.inf)

    def add(self, block: np.ndarray) -> None:
        there = ~np.isnan(block)
        count = there.sum(0)
        known = np.where(there, block, 0.0)
        mean = np.divide(known.sum(0), count, out=np.zeros_like(self.mean), where=count > 0)
        apart = np.where(there, block - mean, 0.0)
        seen = self.seen + count
        shift = mean - self.mean
        weight = np.divide(count, seen, out=np.zeros_like(self.mean), where=seen > 0)
        self.squares += (apart**2).sum(0) + shift**2 * self.seen * weight
        self.mean += shift * weight
        self.seen, self.rows = seen, self.rows + len(block)
        self.least = np.fmin(self.least, np.where(there, block, np.inf).min(0, initial=np.inf))
        self.most = np.fmax(self.most, np.where(there, block, -np.inf).max(0, initial=-np.inf))

    @property
    def deviation(self) -> np.ndarray:
        return np.sqrt(self.squares / max(self.rows, 1))
