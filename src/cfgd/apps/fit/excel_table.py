"""Sheets of Excel files (.xlsx), by openpyxl."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar
from xml.etree.ElementTree import ParseError

import pyarrow as pa

from cfgd._core.extras import import_extra
from cfgd._core.npy import UnreadableError
from cfgd.apps.fit.header import LOOKED_ROWS, MOST_ABOVE, describe_above, find_header
from cfgd.apps.fit.ids import is_unnamed
from cfgd.apps.fit.json_table import OBJECT_BYTES, python_array, python_type
from cfgd.apps.fit.table import Table, read_errors


class Excel(Table):
    """A sheet of an Excel file, the first one by default, which is in memory as a whole."""

    format: ClassVar[str] = "Excel"

    def __init__(self, path: Path, memory: float, sheet: str | None = None) -> None:
        self.is_given = sheet is not None
        with read_errors(path, self.format):
            _check_size(path, memory)
            rows, self.sheets = _rows(path, sheet)
        rows = [row for row in rows if any(value is not None for value in row)]
        if not rows:
            raise ValueError(f"{path} is empty.")
        width = max(map(len, rows))
        texts = [
            ["" if value is None else str(value) for value in row] for row in rows[:LOOKED_ROWS]
        ]
        header = find_header([row + [""] * (width - len(row)) for row in texts])
        names = list(header.names)
        self._above = [" ".join(filter(None, row)) for row in texts[: header.index]]
        self._first = texts[header.index + 1 :][:MOST_ABOVE]
        rows = rows[header.index + 1 :]
        columns = [[row[i] if i < len(row) else None for row in rows] for i in range(len(names))]
        empty = [
            name
            for name, column in zip(names, columns, strict=True)
            if not is_unnamed(name) and all(value is None for value in column)
        ]
        if empty and _has_formulas(path, sheet):
            raise ValueError(
                f"{path}: the column {empty[0]!r} has formulas without their values, as programs "
                "other than a spreadsheet write them: open the file in one and save it."
            )
        types = list(map(python_type, columns))
        super().__init__(path, memory, names, types)
        self.row_count = len(rows)
        arrays = [python_array(*both) for both in zip(columns, types, strict=True)]
        self.rows = pa.RecordBatch.from_arrays(arrays, names)

    def describe(self) -> list[str]:
        sentences = describe_above(self._above)
        if len(self.sheets) > 1 and not self.is_given:
            others = ", ".join(map(repr, self.sheets[1:]))
            sentences.insert(
                0, f"The first sheet {self.sheets[0]!r} is read; --sheet reads another: {others}."
            )
        return sentences

    def first_rows(self) -> Sequence[Sequence[str]]:
        return self._first

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        yield self.rows.select(names)


def _check_size(path: Path, memory: float) -> None:
    """Raise an `UnreadableError` if the file expands to more than the memory."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if OBJECT_BYTES * size > memory:
        raise UnreadableError(
            f"it expands to {size:,} bytes, too many for the {memory:.3g} bytes of memory that may "
            "be used: save it as CSV or Parquet"
        )


def _rows(path: Path, sheet: str | None) -> tuple[list[list[Any]], list[str]]:
    """Return the rows of a sheet, and the names of all sheets."""
    openpyxl = import_extra("openpyxl", f"Reading {path.name}", "excel")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions that are not read
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            try:
                names = [one.title for one in book.worksheets]
                if sheet is not None and sheet not in names:
                    known = ", ".join(map(repr, names))
                    raise ValueError(f"--sheet: {path} has no sheet {sheet!r}, only {known}.")
                found = book[sheet if sheet is not None else names[0]]
                rows = [_without_end(list(row)) for row in found.iter_rows(values_only=True)]
                return rows, names
            finally:
                book.close()
    except (KeyError, IndexError, TypeError, AttributeError, ParseError) as error:
        raise UnreadableError(f"it is damaged ({type(error).__name__})") from None


def _has_formulas(path: Path, sheet: str | None) -> bool:
    """Return whether there is a formula in the first rows of a sheet."""
    openpyxl = import_extra("openpyxl", f"Reading {path.name}", "excel")
    book = openpyxl.load_workbook(path, read_only=True)
    try:
        rows = book[sheet or book.worksheets[0].title].iter_rows(max_row=LOOKED_ROWS)
        return any(cell.data_type == "f" for row in rows for cell in row)
    finally:
        book.close()


def _without_end(row: list[Any]) -> list[Any]:
    """Return a row without the empty cells at its end; empty texts are empty cells."""
    row = [None if value == "" else value for value in row]
    while row and row[-1] is None:
        row.pop()
    return row
