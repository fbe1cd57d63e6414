"""Files of delimited text, CSV and TSV, plain or compressed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import csv

from cfgd.apps.fit.compression import open_stream
from cfgd.apps.fit.missing_marks import MARKS
from cfgd.apps.fit.number_text import COMMA, POINT, NumberTexts
from cfgd.apps.fit.sniffing import sniff
from cfgd.apps.fit.table import Table, is_numeric, read_errors

NEXT_ENCODING = {"utf-8": "cp1252", "utf-8-sig": "cp1252", "cp1252": "latin-1"}


class TypesChanged(Exception):  # noqa: N818 - it is no error
    """Raised in a pass over a file that has changed the type of a column: begin the pass again."""


class Csv(Table):
    """A file of delimited text with a header; every column is of float64 or of texts.

    Types are inferred from the first block of the file. A column in which a later value does not
    agree becomes text, and the pass that finds it ends with `TypesChanged`. Columns of texts that
    are numbers in another notation are left to `survey`.

    Parameters
    ----------
    decimal
        The decimal sign of the columns of numbers; None for that of the first rows.
    """

    format: ClassVar[str] = "CSV"

    def __init__(self, path: Path, memory: float, decimal: str | None = None) -> None:
        self.dialect = sniff(path)
        self.decimal = decimal or self._head_decimal()
        with read_errors(path, self.format):
            super().__init__(path, memory, self.dialect.names, self._inferred_types(path))
            self._read_ambiguous_columns_as_text()

    def set_decimal(self, decimal: str) -> None:
        """Read the columns of numbers with another decimal sign."""
        self.decimal = decimal
        with read_errors(self.path, self.format):
            types = self._inferred_types(self.path)
            self.types = dict(zip(self.dialect.names, types, strict=True))
            self._read_ambiguous_columns_as_text()

    def read_as_text(self, names: Sequence[str]) -> None:
        """Read columns as the texts that are in the file."""
        self.types |= {name: pa.string() for name in names if name in self.types}

    def _head_decimal(self) -> str:
        """Return the decimal sign of most of the first numbers that have one for certain."""
        fields = [field for row in self.dialect.rows for field in row if COMMA in field]
        commas = NumberTexts(pa.array(fields, pa.string())).matches
        return COMMA if np.sum(commas[COMMA]) > np.sum(commas[POINT]) else POINT

    def _inferred_types(self, path: Path) -> list[pa.DataType]:
        while True:
            try:
                with open_stream(path) as stream, csv.open_csv(stream, **self._options()) as reader:
                    return list(map(_read_type, reader.schema.types))
            except UnicodeDecodeError:
                self._change_encoding(path)

    def _read_ambiguous_columns_as_text(self) -> None:
        """Read columns as texts whose numbers may have a decimal point, or a comma, alike.

        In a file of semicolons 1.234 may be more than a thousand.
        """
        if self.dialect.separator != ";":
            return
        for i, name in enumerate(self.dialect.names):
            fields = pa.array([row[i] for row in self.dialect.rows if i < len(row)], pa.string())
            if self.types[name] == pa.float64() and len(fields):
                numbers = NumberTexts(fields)
                if numbers.has_group_mark.any() and np.array_equal(*numbers.matches.values()):
                    self.types[name] = pa.string()

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        types = {name: self.types[name] for name in names}
        try:
            with (
                open_stream(self.path) as stream,
                csv.open_csv(stream, **self._options(types)) as reader,
            ):
                yield from reader
        except UnicodeDecodeError:
            self._change_encoding(self.path)
            raise TypesChanged from None
        except pa.ArrowInvalid as error:
            found = re.match(r"In CSV column #(\d+): .*conversion error", str(error))
            if found is None:
                raise
            column = self.dialect.names[int(found[1])]
            if self.types[column] == pa.string():  # any UTF-8 can be a string
                self._change_encoding(self.path)
            else:
                self.types[column] = pa.string()
            raise TypesChanged from None

    def _change_encoding(self, path: Path) -> None:
        """Take the next encoding; the last one, Latin-1, can decode everything."""
        encoding = NEXT_ENCODING.get(self.dialect.encoding)
        if encoding is None:
            raise ValueError(f"{path} has text that is not {self.dialect.encoding}.")
        self.dialect = sniff(path, encoding)

    def _options(self, types: dict[str, pa.DataType] | None = None) -> dict[str, Any]:
        return {
            "read_options": csv.ReadOptions(
                encoding="utf-8" if self.dialect.encoding == "utf-8-sig" else self.dialect.encoding,
                column_names=list(self.dialect.names),
                skip_rows=self.dialect.skipped,
                skip_rows_after_names=1,
            ),
            "parse_options": csv.ParseOptions(
                newlines_in_values=True, delimiter=self.dialect.separator
            ),
            "convert_options": csv.ConvertOptions(
                column_types=types,
                include_columns=list(types or []),
                null_values=list(MARKS),
                decimal_point=self.decimal,
            ),
        }


def _read_type(inferred: pa.DataType) -> pa.DataType:
    """Return float64 for numbers: later rows may have a decimal point where the first have none."""
    is_number = is_numeric(inferred) and inferred != pa.bool_()
    return pa.float64() if is_number or pa.types.is_null(inferred) else pa.string()
