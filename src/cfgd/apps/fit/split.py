"""Assign every row of the file to the held-out rows or to a fold of the training rows.

One random number is drawn for each row, in the order of the file, so that every pass over the
file assigns the rows alike, whatever the sizes of the blocks in which they are read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

FOLDS = 5
# The seed is that of a stream of its own: with the plain seed the numbers would be those that
# `numpy.random.default_rng(seed).random()` gives, by which simulated tables are often made, and the
# split would follow their first column.
STREAM = int.from_bytes(b"split", "big")
HELD_OUT = -1  # the code of a row that is held out; that of a training row is its fold

# maps the codes of rows to a mask of those that belong to the subset
RowSubset: TypeAlias = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Split:
    """A random split that holds out `test_share` of the rows and divides the others into folds."""

    test_share: float
    seed: int

    def code_generator(self, rows_before: int = 0) -> Callable[[int], np.ndarray]:
        """Return a function that gives the codes of the next `rows` rows, after so many rows."""
        bits = np.random.PCG64([STREAM, self.seed])
        bits.advance(rows_before)  # one step for each number
        random = np.random.Generator(bits)

        def next_codes(rows: int) -> np.ndarray:
            drawn = random.random(rows)
            fold = np.floor((drawn - self.test_share) / (1 - self.test_share) * FOLDS)
            codes = np.where(drawn < self.test_share, HELD_OUT, np.clip(fold, 0, FOLDS - 1))
            return codes.astype(np.int8)

        return next_codes


def training_rows(codes: np.ndarray) -> np.ndarray:
    """Return the mask of the training rows."""
    return codes != HELD_OUT


def held_out_rows(codes: np.ndarray) -> np.ndarray:
    """Return the mask of the rows that are held out."""
    return codes == HELD_OUT


def fold(k: int) -> RowSubset:
    """Return the subset of the training rows in fold k."""
    return lambda codes: codes == k


def without_fold(k: int) -> RowSubset:
    """Return the subset of the training rows outside fold k."""
    return lambda codes: (codes != HELD_OUT) & (codes != k)
