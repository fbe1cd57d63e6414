"""Regions of an array of many fits: parts that are read, fitted and stored one after another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


class Region(NamedTuple):
    """Fits `start` to `stop` in C order, which are a box of the leading axes of an array."""

    start: int
    stop: int
    slices: tuple[Any, ...]

    @property
    def size(self) -> int:
        """How many fits there are."""
        return self.stop - self.start

    def read(self, array: Any) -> np.ndarray:
        """Return this part of an array, with one row for each fit: its last axis is kept.

        Any object that can be sliced will do; only this part of it is read.
        """
        part = array[self.slices]
        if isinstance(part, np.ma.MaskedArray):
            part = np.ma.filled(part.astype(float), np.nan)
        part = np.asarray(part)
        return part.reshape(self.size, part.shape[-1])


def regions(shape: tuple[int, ...], largest: int) -> Iterator[Region]:
    """Yield regions of at most `largest` fits that cover `shape` in C order."""
    axis = next(k for k in range(len(shape)) if math.prod(shape[k + 1 :]) <= largest)
    inner = math.prod(shape[axis + 1 :])
    length = max(1, largest // max(inner, 1))
    for number, outer in enumerate(np.ndindex(*shape[:axis])):
        for begin in range(0, shape[axis], length):
            end = min(begin + length, shape[axis])
            start = (number * shape[axis] + begin) * inner
            yield Region(start, start + (end - begin) * inner, (*outer, slice(begin, end)))
