"""Several files with the same columns, which are one table: the rows of one after the other."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from cfgd.apps.fit.table import KEPT_SHARE, Table, is_numeric, is_text, value_type


class Files(Table):
    """The rows of several files of one format; the columns may be in any order.

    Numbers of several types are read as float64, and a column that is text in one of several text
    files is text in all.
    """

    format: ClassVar[str] = "files"

    def __init__(self, path: Path, tables: Sequence[Table]) -> None:
        first = tables[0]
        self.tables = tables
        self.decimal = first.decimal
        for table in tables:
            _check_same(first, table)
        super().__init__(path, first.memory, list(first.types), list(first.types.values()))
        signs = {table.decimal for table in tables}
        if len(signs) > 1:  # files without a decimal sign tell nothing
            self.set_decimal(next(iter(signs - {Table.decimal})))
        self._unify_types()
        for table in tables:
            table.kept_bytes = KEPT_SHARE * first.memory / len(tables)

    @property
    def infers_types(self) -> bool:  # type: ignore[override]
        return self.tables[0].infers_types

    @property
    def files(self) -> list[Path]:
        return [table.path for table in self.tables]

    def describe(self) -> list[str]:
        """Return the sentences about the first file, and those about others that differ."""
        said: dict[str, str] = {}
        for table in self.tables:
            for sentence in table.describe():
                said.setdefault(sentence.replace(table.path.name, ""), sentence)
        return list(said.values())

    def first_rows(self) -> Sequence[Sequence[str]]:
        return self.tables[0].first_rows()

    def divided(self, count: int) -> list[Table]:
        share = -(-count // len(self.tables))
        found = [part for table in self.tables for part in table.divided(share)]
        return found

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        for table in self.tables:
            yield from table.blocks(names, rows)

    def read_as_text(self, names: Sequence[str]) -> None:
        for table in self.tables:
            table.read_as_text(names)
        self._unify_types()

    def set_decimal(self, decimal: str) -> None:
        self.decimal = decimal
        for table in self.tables:
            if table.decimal != decimal:
                table.set_decimal(decimal)
        self._unify_types()

    def learn_types(self, part: Table) -> None:
        for table in self.tables:
            if table.path == part.path:
                table.learn_types(part)
        self._unify_types()

    def leave_out_blank_rows(self, names: Sequence[str]) -> None:
        for table in self.tables:
            table.leave_out_blank_rows(names)

    @property
    def blank_rows(self) -> int:
        return sum(table.blank_rows for table in self.tables)

    def learn_blank_rows(self, parts: Sequence[Any]) -> None:
        for table in self.tables:
            table.learn_blank_rows([part for part in parts if part.path == table.path])

    def row_label(self, row: int) -> str:
        """Return the row of the file, and its name."""
        parts = self.parts()
        counts = self._known_counts or tuple(part.row_count or 0 for part in parts)
        ends = list(itertools.accumulate(counts))
        k = min(bisect.bisect_left(ends, row), len(parts) - 1)
        within = row - (ends[k] - counts[k]) + parts[k].rows_before_in_file
        return f"{within} of {parts[k].path.name}"

    def forget_batches(self) -> None:
        for table in self.tables:
            table.forget_batches()
        super().forget_batches()

    def _unify_types(self) -> None:
        """Read a column alike in all files."""
        for name in self.tables[0].types:
            found = {table.types[name] for table in self.tables}
            if len(found) > 1 and self.infers_types and pa.string() in found:
                for table in self.tables:
                    table.read_as_text([name])
            values = {value_type(one) for one in found}
            if len(values) == 1:
                self.types[name] = next(iter(found))
            elif all(map(is_numeric, values)):
                self.types[name] = pa.float64()
            elif any(map(is_text, values)):
                self.types[name] = pa.string()


def _check_same(first: Table, table: Table) -> None:
    """Raise a `ValueError` if two files do not have the same columns, of the same kinds."""
    for one, other in ((first, table), (table, first)):
        for name in one.types:
            if name not in other.types:
                raise ValueError(
                    f"{other.path} has no column {name!r}, which {one.path} has: all files of a "
                    "table must have the same columns."
                )
    for name, of in first.types.items():
        kinds = [_kind(value_type(one)) for one in (of, table.types[name])]
        if kinds[0] != kinds[1] and not first.infers_types:
            raise ValueError(
                f"The column {name!r} is {kinds[1]} in {table.path} and {kinds[0]} in "
                f"{first.path}: all files of a table must have the same columns."
            )


def _kind(of: pa.DataType) -> str:
    if is_text(of):
        return "text"
    return "a number" if is_numeric(of) else f"of the type {of}"
