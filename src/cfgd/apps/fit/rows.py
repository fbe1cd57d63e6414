"""Standardised rows of the design matrix in blocks, streamed from the file or in memory."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from cfgd.apps.fit.columns import Column, EncodedRows, encode
from cfgd.apps.fit.formula import Formula
from cfgd.apps.fit.missing_values import left_out_rows
from cfgd.apps.fit.row_roles import ClusterCodes, RowRoles
from cfgd.apps.fit.split import RowSubset, Split, training_rows
from cfgd.apps.fit.table import Table
from cfgd.apps.fit.table_statistics import NO_ROLES, Standardisation, TableStatistics
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


class KnownGram(NamedTuple):
    """The Gram matrix of rows in the place of the rows."""

    matrix: np.ndarray

    def gram(self, weight: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Return the matrix: all weights are 1."""
        return self.matrix + penalty


class Rows(abc.ABC):
    """Rows of the design matrix X with their targets y."""

    target: Target
    width: int  # columns of X
    count: int  # training rows

    @abc.abstractmethod
    def blocks(self, subset: RowSubset) -> Iterator[RowBlock]:
        """Iterate over a subset of the rows, in blocks."""

    def fit_weight(self, block: RowBlock) -> np.ndarray:
        """Return the weights of the rows in the fit: those of their class included."""
        if self.target.class_weights is None:
            return block.weights
        return block.weights * self.target.class_weights[block.y.astype(int)]

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
    roles: RowRoles = NO_ROLES
    formula: Formula | None = None
    passes: int = 0
    # rows of the last pass with a text that no training row has, and those for which the formula
    # has no value, because a level of C(...) is in no training row
    unknown_text_rows: int = 0
    undefined_rows: int = 0
    cluster_codes: ClusterCodes = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.width = len(self.standardisation.mean)

    def coded_blocks(self) -> Iterator[tuple[RowBlock, np.ndarray]]:
        """Iterate over the rows and the codes of the split, without the rows that are left out."""
        next_codes = self.split.code_generator()
        self.unknown_text_rows = self.undefined_rows = 0
        self.passes += 1
        names = [*(column.name for column in self.columns), self.target.name, *self.roles.names]
        for batch in self.table.blocks(names, self.block_rows):
            codes = next_codes(batch.num_rows)
            y = self.target.encode(batch.column(self.target.name))
            encoded = encode(self.columns, batch)
            undefined = np.zeros_like(encoded.missing)
            if self.formula is not None:
                X, undefined = self.formula(self.columns, encoded.X)
                encoded = EncodedRows(X, encoded.missing, encoded.unknown)
            roles = self.roles.read(batch, self.cluster_codes)
            left_out = left_out_rows(self.missing, encoded.missing | np.isnan(y)) | roles.unused
            self.unknown_text_rows += int(np.sum(encoded.unknown & ~left_out))
            self.undefined_rows += int(np.sum(undefined & ~left_out))
            used = ~left_out & ~undefined
            offset = None if roles.offset is None else roles.offset / self.target.scale
            about = RowBlock(encoded.X, y, roles.weight, offset, roles.cluster)
            if not used.all():
                about, codes = about.select(used), codes[used]
            yield about._replace(X=self.standardisation(about.X)), codes
            self.on_rows_read(batch.num_rows)

    def blocks(self, subset: RowSubset) -> Iterator[RowBlock]:
        for block, codes in self.coded_blocks():
            mask = subset(codes)
            if mask.any():
                yield block if mask.all() else block.select(mask)


@dataclasses.dataclass
class InMemoryRows(Rows):
    """All rows in memory, the training rows first."""

    data: RowBlock
    codes: np.ndarray
    target: Target
    block_rows: int
    count: int

    def __post_init__(self) -> None:
        self.width = self.data.X.shape[1]

    @classmethod
    def read(cls, rows: StreamedRows, statistics: TableStatistics) -> InMemoryRows:
        """Read all rows in one pass, into arrays that are allocated once."""
        n = statistics.training_count + statistics.held_out_count
        roles, codes = rows.roles, np.empty(n, np.int8)
        data = RowBlock(
            np.empty((n, rows.width)),
            np.empty(n),
            None if roles.weights is None else np.empty(n),
            None if roles.offset is None else np.empty(n),
            None if roles.cluster is None else np.empty(n, int),
        )
        training_end, end = 0, statistics.training_count
        for block, block_codes in rows.coded_blocks():
            training = training_rows(block_codes)
            for mask, start in ((training, training_end), (~training, end)):
                chosen = np.flatnonzero(mask)
                place = slice(start, start + len(chosen))
                codes[place] = block_codes[chosen]
                for array, values in zip(data, block, strict=True):
                    if array is not None and values is not None:
                        # a quarter of the time of a mask; "clip" writes without a buffer
                        np.take(values, chosen, 0, out=array[place], mode="clip")
            training_end += int(training.sum())
            end += int((~training).sum())
        # fewer than n where the formula has no value
        data = data.select(slice(end))
        return cls(data, codes[:end], rows.target, rows.block_rows, statistics.training_count)

    def blocks(self, subset: RowSubset) -> Iterator[RowBlock]:
        for start in range(0, len(self.codes), self.block_rows):
            place = slice(start, start + self.block_rows)
            mask = subset(self.codes[place])
            if mask.any():
                yield self.data.select(place).select(mask)

    @functools.cached_property
    def gram(self) -> np.ndarray:
        """X'X of the training rows with a column of ones, without weights."""
        d = self.width
        total = np.zeros((d + 1, d + 1))
        for block in self.blocks(training_rows):
            total += block.gram(np.ones(len(block.y)), NO_PENALTY)
        return total

    def known_gram(self, subset: RowSubset) -> np.ndarray | None:
        """Return X'SX if it is that of all columns' correlations: of all training rows, S = 1."""
        is_weighted = self.data.weight is not None or self.target.class_weights is not None
        return None if is_weighted or subset is not training_rows else self.gram

    def select(self, subset: RowSubset) -> RowBlock:
        """Return a subset of the rows; all training rows are not copied."""
        mask = subset(self.codes)
        if mask[: self.count].all() and not mask[self.count :].any():
            return self.data.select(slice(self.count))
        return self.data.select(mask)
