"""Encode the columns of a table as columns of the design matrix.

A column of numbers becomes one column; a column of texts is one-hot encoded, without its reference
level.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cfgd.apps.fit.table import ColumnKind, to_float64, to_strings

Matrix: TypeAlias = np.ndarray  # of shape (n, d)
Mask: TypeAlias = np.ndarray  # n booleans


@dataclasses.dataclass(frozen=True)
class EncodedRows:
    """Rows of the design matrix, with masks of the rows that need attention.

    `missing` marks rows with a missing value, `unknown` those with a text that no training row has;
    it is encoded as the pool of rare texts, or as the reference level.
    """

    X: Matrix
    missing: Mask
    unknown: Mask


@dataclasses.dataclass(frozen=True)
class NumberColumn:
    """A column of numbers; `mean` is imputed for missing values."""

    name: str
    mean: float

    kind: ColumnKind = "number"

    @property
    def terms(self) -> list[str]:
        """The name of its column of the design matrix."""
        return [self.name]

    def encode(self, column: pa.Array) -> EncodedRows:
        values = to_float64(column)
        missing = np.isnan(values)
        imputed = np.where(missing, self.mean, values) if missing.any() else values
        return EncodedRows(imputed[:, None], missing, np.zeros_like(missing))


POOL = "other"  # the level of rare texts
MISSING = "(missing)"  # the level of missing texts, where they are not errors


@dataclasses.dataclass(frozen=True)
class TextColumn:
    """A column of texts: a column of zeros and ones for each of `levels`, all zeros for `base`.

    `base` is the reference level, and `rare` are the texts of training rows that are pooled as the
    level `POOL`. A text that no training row has is encoded as `POOL`, or as the reference level if
    there is no pool. A missing text is encoded as `MISSING` if that is a level, else alike.
    """

    name: str
    base: str
    levels: tuple[str, ...]
    rare: tuple[str, ...] = ()

    kind: ColumnKind = "text"

    @property
    def terms(self) -> list[str]:
        """The names of its columns of the design matrix."""
        return [f"{self.name} = {level}" for level in self.levels]

    @property
    def place_of_unknown(self) -> str:
        """The level that texts without one are encoded as."""
        return POOL if self.rare else self.base

    def encode(self, column: pa.Array) -> EncodedRows:
        column = to_strings(column)
        missing = column.is_null().to_numpy(zero_copy_only=False)
        places = [*self.levels, self.base]  # the index of the reference level is behind all levels
        known = pa.array([*places, *self.rare], pa.string())
        found = pc.fill_null(pc.index_in(column, known), -1).to_numpy(zero_copy_only=False)
        unknown = (found < 0) & ~missing
        other = places.index(self.place_of_unknown)
        index = np.where((found < 0) | (found >= len(places)), other, found)
        if MISSING in places:
            index = np.where(missing, places.index(MISSING), index)
        one_hot = (index[:, None] == np.arange(len(self.levels))).astype(float)
        return EncodedRows(one_hot, missing, unknown)


Column: TypeAlias = NumberColumn | TextColumn


def encode(columns: Sequence[Column], batch: pa.RecordBatch) -> EncodedRows:
    """Encode the rows of a record batch; a mask is set where any column sets it."""
    parts = [column.encode(batch.column(column.name)) for column in columns]
    return EncodedRows(
        np.concatenate([part.X for part in parts], 1),
        np.any([part.missing for part in parts], 0),
        np.any([part.unknown for part in parts], 0),
    )


def term_names(columns: Sequence[Column]) -> list[str]:
    """Return the names of the columns of the design matrix."""
    return [term for column in columns for term in column.terms]
