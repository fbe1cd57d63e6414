"""Columns of a table as columns of a matrix: a number is one, a text one for each other value."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float

from cfgd.apps.fit.table import Kind, numbers, texts

Rows: TypeAlias = Float[np.ndarray, "n d"]
Mask: TypeAlias = Bool[np.ndarray, " n"]


@dataclasses.dataclass(frozen=True)
class Number:
    name: str
    mean: float  # which stands in for what is missing, if asked for

    kind: Kind = "number"

    @property
    def labels(self) -> list[str]:
        return [self.name]

    def entries(self, column: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Its part of the matrix, with the mean for what is missing; what is missing; unknown."""
        values = numbers(column)
        missing = np.isnan(values)
        return np.where(missing, self.mean, values)[:, None], missing, np.zeros_like(missing)


@dataclasses.dataclass(frozen=True)
class Text:
    """One column for each of `levels`, which is 1 where a row has it; `base` is all of them 0."""

    name: str
    base: str
    levels: tuple[str, ...]

    kind: Kind = "text"

    @property
    def labels(self) -> list[str]:
        return [f"{self.name} = {level}" for level in self.levels]

    def entries(self, column: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        column = texts(column)
        missing = column.is_null().to_numpy(zero_copy_only=False)
        known = pa.array([*self.levels, self.base], pa.string())
        place = pc.fill_null(pc.index_in(column, known), -1).to_numpy(zero_copy_only=False)
        unknown = (place < 0) & ~missing
        return (place[:, None] == np.arange(len(self.levels))).astype(float), missing, unknown


Column: TypeAlias = Number | Text


@dataclasses.dataclass(frozen=True)
class Entries:
    """Rows of the matrix, and which of them are no use."""

    X: Rows
    missing: Mask  # in some column
    unknown: Mask  # a text that no row of the fit has


def entries(columns: Sequence[Column], batch: Any) -> Entries:
    parts = [column.entries(batch.column(column.name)) for column in columns]
    X, missing, unknown = zip(*parts, strict=True)
    return Entries(np.concatenate(X, 1), np.any(missing, 0), np.any(unknown, 0))


def labels(columns: Sequence[Column]) -> list[str]:
    """Of the columns of the matrix."""
    return [label for column in columns for label in column.labels]
