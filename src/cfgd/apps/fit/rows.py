"""Standardised rows, block by block: from the file at every pass, or from memory."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np

from cfgd.apps.fit.columns import Column, entries
from cfgd.apps.fit.split import Part, Split, train
from cfgd.apps.fit.survey import Scaling, Survey
from cfgd.apps.fit.table import Table
from cfgd.apps.fit.target import Target
from cfgd.objectives.linear import block_source

Block: TypeAlias = tuple[np.ndarray, np.ndarray]  # X and y
COPIES = 16  # numbers of a row that stand in memory at once, for each of its numbers
rows_of_block = partial(block_source.rows_of_block, copies=COPIES)


class Rows(abc.ABC):
    target: Target
    width: int  # columns of X
    count: int  # rows that are fitted to

    @abc.abstractmethod
    def blocks(self, part: Part) -> Iterator[Block]: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the coefficients, the intercept last."""
        d, K = self.width + 1, self.target.classes
        return (d,) if K == 1 else (d, K)


@dataclasses.dataclass
class Streamed(Rows):
    """Every pass reads the file anew and has a block of it in memory."""

    table: Table
    columns: list[Column]
    scaling: Scaling
    target: Target
    split: Split
    missing: str
    size: int  # rows of a block
    count: int
    advance: Callable[[int], None]  # told of rows that were read
    passes: int = 0
    unseen: int = 0  # rows of the last pass that have a text that no row of the fit has

    def __post_init__(self) -> None:
        self.width = len(self.scaling.mean)

    def coded(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """X, y and the codes of the split."""
        draws, self.unseen = self.split.draws(), 0
        self.passes += 1
        names = [*(column.name for column in self.columns), self.target.name]
        for batch in self.table.blocks(names, self.size):
            codes = draws(batch.num_rows)
            y = self.target.entries(batch.column(self.target.name))
            found = entries(self.columns, batch)
            missing = np.isnan(y)
            if self.missing == "drop":
                missing |= found.missing
            self.unseen += int(np.sum(found.unknown & ~missing))
            kept = ~missing & ~found.unknown
            yield self.scaling(found.X[kept]), y[kept], codes[kept]
            self.advance(batch.num_rows)

    def blocks(self, part: Part) -> Iterator[Block]:
        for X, y, codes in self.coded():
            mask = part(codes)
            if mask.any():
                yield (X, y) if mask.all() else (X[mask], y[mask])


@dataclasses.dataclass
class Held(Rows):
    """All rows in memory, those that are fitted to first."""

    X: np.ndarray
    y: np.ndarray
    codes: np.ndarray
    target: Target
    size: int
    count: int

    def __post_init__(self) -> None:
        self.width = self.X.shape[1]

    def blocks(self, part: Part) -> Iterator[Block]:
        for start in range(0, len(self.y), self.size):
            of = slice(start, start + self.size)
            mask = part(self.codes[of])
            if mask.any():
                yield self.X[of][mask], self.y[of][mask]

    def whole(self, part: Part) -> Block:
        """Without a copy where it is all that is fitted to."""
        mask = part(self.codes)
        if np.array_equal(mask, np.arange(len(mask)) < self.count):
            return self.X[: self.count], self.y[: self.count]
        return self.X[mask], self.y[mask]


def held(rows: Streamed, survey: Survey) -> Held:
    """Read once, into arrays that are there from the start."""
    n = survey.train + survey.test
    X, y, codes = np.empty((n, rows.width)), np.empty(n), np.empty(n, np.int8)
    ahead, behind = 0, survey.train
    for block, targets, drawn in rows.coded():
        ours = train(drawn)
        for mask, to in ((ours, ahead), (~ours, behind)):
            of = slice(to, to + int(mask.sum()))
            X[of], y[of], codes[of] = block[mask], targets[mask], drawn[mask]
        ahead, behind = ahead + int(ours.sum()), behind + int((~ours).sum())
    return Held(X[:behind], y[:behind], codes[:behind], rows.target, rows.size, survey.train)
