"""Standardised rows of the design matrix in blocks, streamed from the file or in memory."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np

from cfgd.apps.fit.columns import Column, encode
from cfgd.apps.fit.missing_values import left_out_rows
from cfgd.apps.fit.split import RowSubset, Split, training_rows
from cfgd.apps.fit.table import Table
from cfgd.apps.fit.table_statistics import Standardisation, TableStatistics
from cfgd.apps.fit.target import Target
from cfgd.objectives.linear import block_source

XY: TypeAlias = tuple[np.ndarray, np.ndarray]
# copies of a block that are in memory at once: what pyarrow has read, the encoded and standardised
# rows, and the temporary arrays of the pass
COPIES = 16
rows_of_block = partial(block_source.rows_of_block, copies=COPIES)


class Rows(abc.ABC):
    """Rows of the design matrix X with their targets y."""

    target: Target
    width: int  # columns of X
    count: int  # training rows

    @abc.abstractmethod
    def blocks(self, subset: RowSubset) -> Iterator[XY]:
        """Iterate over X and y of a subset of the rows, in blocks."""

    @property
    def coefficient_shape(self) -> tuple[int, ...]:
        """The shape of the coefficients; the intercept is last."""
        d, classes = self.width + 1, self.target.classes
        return (d,) if classes == 1 else (d, classes)


@dataclasses.dataclass
class StreamedRows(Rows):
    """Rows that each pass reads from the file again, with one block of them in memory."""

    table: Table
    columns: list[Column]
    standardisation: Standardisation
    target: Target
    split: Split
    missing: str  # the policy for missing values
    block_rows: int
    count: int
    on_rows_read: Callable[[int], None]
    passes: int = 0
    unknown_text_rows: int = 0  # rows of the last pass with a text that no training row has

    def __post_init__(self) -> None:
        self.width = len(self.standardisation.mean)

    def coded_blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Iterate over X, y and the codes of the split, without the rows that are left out."""
        next_codes, self.unknown_text_rows = self.split.code_generator(), 0
        self.passes += 1
        names = [*(column.name for column in self.columns), self.target.name]
        for batch in self.table.blocks(names, self.block_rows):
            codes = next_codes(batch.num_rows)
            y = self.target.encode(batch.column(self.target.name))
            encoded = encode(self.columns, batch)
            left_out = left_out_rows(self.missing, encoded.missing | np.isnan(y))
            self.unknown_text_rows += int(np.sum(encoded.unknown & ~left_out))
            used = ~left_out
            yield self.standardisation(encoded.X[used]), y[used], codes[used]
            self.on_rows_read(batch.num_rows)

    def blocks(self, subset: RowSubset) -> Iterator[XY]:
        for X, y, codes in self.coded_blocks():
            mask = subset(codes)
            if mask.any():
                yield (X, y) if mask.all() else (X[mask], y[mask])


@dataclasses.dataclass
class InMemoryRows(Rows):
    """All rows in memory, the training rows first."""

    X: np.ndarray
    y: np.ndarray
    codes: np.ndarray
    target: Target
    block_rows: int
    count: int

    def __post_init__(self) -> None:
        self.width = self.X.shape[1]

    @classmethod
    def read(cls, rows: StreamedRows, statistics: TableStatistics) -> InMemoryRows:
        """Read all rows in one pass, into arrays that are allocated once."""
        n = statistics.training_count + statistics.held_out_count
        X, y, codes = np.empty((n, rows.width)), np.empty(n), np.empty(n, np.int8)
        training_end, end = 0, statistics.training_count
        for block, block_y, block_codes in rows.coded_blocks():
            training = training_rows(block_codes)
            for mask, start in ((training, training_end), (~training, end)):
                place = slice(start, start + int(mask.sum()))
                X[place], y[place], codes[place] = block[mask], block_y[mask], block_codes[mask]
            training_end += int(training.sum())
            end += int((~training).sum())
        return cls(X, y, codes, rows.target, rows.block_rows, statistics.training_count)

    def blocks(self, subset: RowSubset) -> Iterator[XY]:
        for start in range(0, len(self.y), self.block_rows):
            place = slice(start, start + self.block_rows)
            mask = subset(self.codes[place])
            if mask.any():
                yield self.X[place][mask], self.y[place][mask]

    def select(self, subset: RowSubset) -> XY:
        """Return X and y of a subset; those of all training rows are not copied."""
        mask = subset(self.codes)
        if np.array_equal(mask, np.arange(len(mask)) < self.count):
            return self.X[: self.count], self.y[: self.count]
        return self.X[mask], self.y[mask]
