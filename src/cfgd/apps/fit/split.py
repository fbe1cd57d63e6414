"""Which rows are held out, and to which fold a row belongs: one draw for each row of the file.

The draws follow the order of the rows, so that every pass over the file finds the same parts,
whatever the blocks are in which it is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

FOLDS = 5
TEST = -1  # the code of a row that is held out; others have that of their fold

Part: TypeAlias = Callable[[np.ndarray], np.ndarray]  # codes -> whether a row belongs to it


@dataclasses.dataclass(frozen=True)
class Split:
    share: float  # of rows that are held out
    seed: int

    def draws(self) -> Callable[[int], np.ndarray]:
        """The codes of the next rows, from the first row on."""
        random = np.random.default_rng(self.seed)

        def codes(rows: int) -> np.ndarray:
            drawn = random.random(rows)
            fold = np.floor((drawn - self.share) / (1 - self.share) * FOLDS)
            return np.where(drawn < self.share, TEST, np.clip(fold, 0, FOLDS - 1)).astype(np.int8)

        return codes


def train(codes: np.ndarray) -> np.ndarray:
    return codes != TEST


def test(codes: np.ndarray) -> np.ndarray:
    return codes == TEST


def fold(k: int) -> Part:
    return lambda codes: codes == k


def without_fold(k: int) -> Part:
    return lambda codes: (codes != TEST) & (codes != k)
