"""Standardised rows of the design matrix in blocks, streamed from the file or in memory.

A pass is a function of the blocks of a part of the rows, which gets further arguments besides and
returns arrays; `Rows.sum` adds what it returns over all parts.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cfgd._core.engines.base import Arrays, Engine, Part
from cfgd.apps.fit.encoder import EncodedPart, Encoder, no_rows
from cfgd.apps.fit.row_block import NO_PENALTY, CodedBlock, RowBlock
from cfgd.apps.fit.split import FOLDS, HELD_OUT, RowSubset, training_rows
from cfgd.apps.fit.table import Table
from cfgd.apps.fit.target import Target
from cfgd.apps.fit.workers import Report, Workers, ignore_rows


class Rows(abc.ABC):
    """Rows of the design matrix X with their targets y.

    Attributes
    ----------
    width, count, cluster_count : int
        How many columns X has, how many training rows there are, and how many clusters.
    parts : list of parts
        Those of this process, each of which iterates over blocks with codes.
    passes : int
        How often all rows have been asked for.
    unknown_rows, undefined_rows : int
        The sums of the fields of `CodedBlock` in the last pass of `sum`.
    """

    target: Target
    width: int
    count: int
    cluster_count: int
    workers: Workers
    parts: Sequence[Part]
    passes: int
    unknown_rows: int
    undefined_rows: int

    @functools.cached_property
    def engine(self) -> Engine:
        return self.workers.engine(self.parts)

    def map(self, subset: RowSubset, function: Callable[..., Any], *args: Any) -> Iterator[Any]:
        """Iterate over function(blocks, *args) of all parts; the blocks are of the subset."""
        self.passes += 1
        return self.engine.map(_of_subset, subset, function, args)

    def sum(self, subset: RowSubset, function: Callable[..., Arrays], *args: Any) -> Arrays:
        """Return the sum of the arrays function(blocks, *args) of all parts."""
        self.passes += 1
        *arrays, counts = self.engine.sum(_of_subset_with_counts, subset, function, args)
        self.unknown_rows, self.undefined_rows = counts.tolist()
        return tuple(arrays)

    def first(
        self, subset: RowSubset, count: int, function: Callable[..., Arrays], *args: Any
    ) -> Arrays:
        """Return arrays with a row for each of the first `count` rows of the subset.

        `function(block, *args)` returns arrays with a row for each row of a block. Parts behind
        those rows are not read.
        """
        self.passes += 1
        found: list[Arrays] = []
        for parts in self._leading(subset, count):
            found += self.workers.engine(parts).map(_first, subset, count, function, args)
            if sum(len(arrays[0]) for arrays in found if arrays) >= count:
                break
        filled = [arrays for arrays in found if arrays]
        return tuple(np.concatenate(some)[:count] for some in zip(*filled, strict=True))

    @abc.abstractmethod
    def _leading(self, subset: RowSubset, count: int) -> Iterator[Sequence[Part]]:
        """Iterate over parts, of which the first ones should have so many rows of the subset."""

    @property
    def coefficient_shape(self) -> tuple[int, ...]:
        """The shape of the coefficients; the intercept is last."""
        d, classes = self.width + 1, self.target.classes
        return (d,) if classes == 1 else (d, classes)


def of_subset(blocks: Iterator[CodedBlock], subset: RowSubset) -> Iterator[RowBlock]:
    """Iterate over those rows of blocks that belong to a subset."""
    for rows, codes, _, _ in blocks:
        mask = subset(codes)
        if mask.any():
            yield rows if mask.all() else rows.select(mask)
        del rows


def _of_subset(
    blocks: Iterator[CodedBlock], subset: RowSubset, function: Callable[..., Any], args: Any
) -> Any:
    return function(of_subset(blocks, subset), *args)


def _of_subset_with_counts(
    blocks: Iterator[CodedBlock], subset: RowSubset, function: Callable[..., Arrays], args: Any
) -> Arrays:
    counts = np.zeros(2, int)
    return (*function(of_subset(_counted(blocks, counts), subset), *args), counts)


def _counted(blocks: Iterator[CodedBlock], counts: np.ndarray) -> Iterator[CodedBlock]:
    """Iterate over blocks, and add what they count."""
    for block in blocks:
        counts += block.unknown, block.undefined
        yield block
        del block


def _first(
    blocks: Iterator[CodedBlock],
    subset: RowSubset,
    count: int,
    function: Callable[..., Arrays],
    args: Any,
) -> Arrays:
    """Return the arrays of the first rows of a part, and read no further; () for no rows."""
    found: list[Arrays] = []
    for block in of_subset(blocks, subset):
        part = block.select(slice(count))
        found.append(function(part, *args))
        count -= len(part.y)
        if count <= 0:
            break
    return tuple(np.concatenate(arrays) for arrays in zip(*found, strict=True))


class StreamedRows(Rows):
    """Rows that each pass reads from the file again, with one block of them in memory.

    `code_counts` are those of `TableStatistics`.
    """

    def __init__(
        self,
        table: Table,
        encoder: Encoder,
        code_counts: Sequence[np.ndarray],
        on_rows_read: Report = ignore_rows,
    ) -> None:
        self.target, self.width = encoder.target, len(encoder.standardisation.mean)
        self.code_counts, self.encoder = code_counts, encoder
        self.count = int(sum(self._rows_of(training_rows)))
        self.workers, self.passes = table.workers, 0
        self.unknown_rows = self.undefined_rows = 0
        self.cluster_count = len(encoder.cluster_codes)
        report = self.workers.reporting(on_rows_read)
        rows = [int(counts.sum()) for counts in code_counts]
        parts = zip(table.parts(), rows, strict=True)
        self.all_parts = [EncodedPart(part, encoder, report, n) for part, n in parts]
        self.parts = self._own(self.all_parts)

    def _own(self, parts: Sequence[Part]) -> Sequence[Part]:
        return self.workers.share(parts) or [no_rows]

    def _rows_of(self, subset: RowSubset) -> list[int]:
        """Return how many rows of a subset each part has."""
        mask = subset(np.arange(HELD_OUT, FOLDS))
        return [int(counts[mask].sum()) for counts in self.code_counts]

    def _leading(self, subset: RowSubset, count: int) -> Iterator[Sequence[Part]]:
        ends = np.cumsum(self._rows_of(subset))
        needed = int(np.searchsorted(ends, count)) + 1
        for start in range(0, len(self.all_parts), needed):
            yield self._own(self.all_parts[start : start + needed])


@dataclasses.dataclass
class InMemoryRows(Rows):
    """All rows of this process in memory, the training rows first.

    `counted` are the unknown and undefined rows of this process.
    """

    data: RowBlock
    codes: np.ndarray
    target: Target
    block_rows: int
    count: int
    workers: Workers
    cluster_count: int
    counted: tuple[int, int]
    passes: int = 0
    unknown_rows: int = 0
    undefined_rows: int = 0

    def __post_init__(self) -> None:
        self.width = self.data.X.shape[1]
        self.parts = [self._blocks]

    @classmethod
    def read(cls, rows: StreamedRows) -> InMemoryRows:
        """Read all rows in one pass, into arrays that are allocated once."""
        own = rows.workers.share(rows.code_counts)
        n, n_training = (
            int(sum(counts[skipped:].sum() for counts in own))
            for skipped in (0, 1)  # the first code is that of held-out rows
        )
        roles, codes = rows.encoder.roles, np.empty(n, np.int8)
        data = RowBlock(
            np.empty((n, rows.width)),
            np.empty(n),
            None if roles.weights is None else np.empty(n),
            None if roles.offset is None else np.empty(n),
            None if roles.cluster is None else np.empty(n, int),
        )
        ends = [0, n_training]
        unknown = undefined = 0
        with rows.workers.together():
            for block in (block for part in rows.parts for block in part()):
                training = training_rows(block.codes)
                for k, mask in enumerate((training, ~training)):
                    chosen = np.flatnonzero(mask)
                    place = slice(ends[k], ends[k] + len(chosen))
                    codes[place] = block.codes[chosen]
                    for array, values in zip(data, block.rows, strict=True):
                        if array is not None and values is not None:
                            # a quarter of the time of a mask; "clip" writes without a buffer
                            np.take(values, chosen, 0, out=array[place], mode="clip")
                    ends[k] = place.stop
                unknown, undefined = unknown + block.unknown, undefined + block.undefined
        # fewer than n where the formula has no value
        data, codes = data.select(slice(ends[1])), codes[: ends[1]]
        return cls(
            data,
            codes,
            rows.target,
            rows.encoder.block_rows,
            rows.count,
            rows.workers,
            rows.cluster_count,
            (unknown, undefined),
            rows.passes + 1,
        )

    def _blocks(self) -> Iterator[CodedBlock]:
        unknown, undefined = self.counted
        for start in range(0, len(self.codes), self.block_rows):
            place = slice(start, start + self.block_rows)
            yield CodedBlock(self.data.select(place), self.codes[place], unknown, undefined)
            unknown = undefined = 0

    def _leading(self, subset: RowSubset, count: int) -> Iterator[Sequence[Part]]:
        yield self.parts

    @functools.cached_property
    def gram(self) -> np.ndarray:
        """X'X of the training rows with a column of ones, without weights."""
        return self.sum(training_rows, _gram, self.width)[0]

    def known_gram(self, subset: RowSubset) -> np.ndarray | None:
        """Return X'SX if it is that of all columns' correlations: of all training rows, S = 1."""
        is_weighted = self.data.weight is not None or self.target.class_weights is not None
        return None if is_weighted or subset is not training_rows else self.gram

    def select(self, subset: RowSubset) -> RowBlock:
        """Return a subset of the rows of this process; all training rows are not copied."""
        mask = subset(self.codes)
        n = int(np.sum(training_rows(self.codes)))
        if mask[:n].all() and not mask[n:].any():
            return self.data.select(slice(n))
        return self.data.select(mask)


def _gram(blocks: Iterator[RowBlock], width: int) -> Arrays:
    total = np.zeros((width + 1, width + 1))
    for block in blocks:
        total += block.gram(np.ones(len(block.y)), NO_PENALTY)
    return (total,)
