"""CSV, plain or compressed: what its columns hold is known when all of it has been read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import csv

from cfgd.apps.fit.table import Table, is_number, reading


class Csv(Table):
    """Types are guessed from the first block of the file, and widened where a later row says so."""

    format: ClassVar[str] = "CSV"

    def __init__(self, path: Path) -> None:
        with reading(path, self.format):
            with csv.open_csv(path, **_options()) as first:
                names, types = first.schema.names, [_begun(of) for of in first.schema.types]
            super().__init__(path, names, types)
            while (column := self._unfit()) is not None:
                if self.types[column] == pa.string():  # which takes all but this
                    raise ValueError(f"{path}: the column {column!r} has text that is not UTF-8.")
                self.types[column] = pa.string()

    def _unfit(self) -> str | None:
        """The column in which a value does not go with its type."""
        try:
            for _ in self.batches(list(self.types), 0):
                pass
        except pa.ArrowInvalid as error:
            found = re.match(r"In CSV column #(\d+): .*conversion error", str(error))
            if found is None:
                raise
            return list(self.types)[int(found[1])]
        return None

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        types = {name: self.types[name] for name in names}
        with csv.open_csv(self.path, **_options(types)) as reader:
            yield from reader


def _options(types: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "parse_options": csv.ParseOptions(newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            column_types=types, include_columns=list(types or []), strings_can_be_null=True
        ),
    }


def _begun(of: Any) -> Any:
    return pa.float64() if pa.types.is_null(of) or (is_number(of) and of != pa.bool_()) else of
