"""CSV files, plain or compressed by gzip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import csv

from cfgd.apps.fit.table import Table, is_numeric, read_errors


class Csv(Table):
    """A CSV file with a header.

    Types are inferred from the first block of the file. A column in which a later value does not
    agree becomes text, so that opening the file takes at least one pass.
    """

    format: ClassVar[str] = "CSV"

    def __init__(self, path: Path, memory: float) -> None:
        with read_errors(path, self.format):
            with csv.open_csv(path, **_options()) as reader:
                schema = reader.schema
            types = [_widest_type(inferred) for inferred in schema.types]
            super().__init__(path, memory, schema.names, types)
            while (column := self._column_with_conversion_error()) is not None:
                if self.types[column] == pa.string():  # any UTF-8 can be a string
                    raise ValueError(f"{path}: the column {column!r} has text that is not UTF-8.")
                self.types[column] = pa.string()

    def _column_with_conversion_error(self) -> str | None:
        """Read the file; return the first column with a value that is not of its type, or None."""
        try:
            for _ in self.batches(list(self.types), 0):
                pass
        except pa.ArrowInvalid as error:
            found = re.match(r"In CSV column #(\d+): .*conversion error", str(error))
            if found is None:
                raise
            return list(self.types)[int(found[1])]
        return None

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        types = {name: self.types[name] for name in names}
        with csv.open_csv(self.path, **_options(types)) as reader:
            yield from reader


def _options(types: dict[str, pa.DataType] | None = None) -> dict[str, Any]:
    return {
        "parse_options": csv.ParseOptions(newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            column_types=types, include_columns=list(types or []), strings_can_be_null=True
        ),
    }


def _widest_type(inferred: pa.DataType) -> pa.DataType:
    """Return float64 for numbers: later rows may have a decimal point where the first have none."""
    is_number = is_numeric(inferred) and inferred != pa.bool_()
    return pa.float64() if is_number or pa.types.is_null(inferred) else inferred
