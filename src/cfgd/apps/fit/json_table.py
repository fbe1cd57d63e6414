"""Tables of JSON: a line for each row, or one list of all rows."""

from __future__ import annotations

import datetime
import io
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from cfgd._core.npy import UnreadableError
from cfgd.apps.fit.compression import first_bytes, open_stream
from cfgd.apps.fit.sniffing import ENCODING_NAMES, HEAD_BYTES, detect_encoding
from cfgd.apps.fit.table import Table, read_errors

EXACT = 2**53  # up to which float64 has every integer
BATCH = 10_000  # rows that are converted at once
# Python's objects take about this many times the bytes of their JSON.
OBJECT_BYTES = 10
SURROGATES = re.compile(r"[\ud800-\udfff]")  # which no encoding can write
LONGEST_LINE = 2**24  # characters: a longer row is no row of a table
NOT_UTF8 = re.compile(r"[\udc80-\udcff]")  # what Python makes of bytes that are not UTF-8


def python_type(values: list[Any]) -> pa.DataType:
    """Return the Arrow type of Python's values; texts if they are of several kinds."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and any(abs(v) > EXACT for v in values if type(v) is int):
        return pa.string()  # which has all digits
    if kinds <= {int, float}:
        return pa.float64()
    if kinds == {bool}:
        return pa.bool_()
    if kinds <= {datetime.datetime, datetime.date}:
        return pa.timestamp("us")
    return pa.string()


def python_array(values: list[Any], column_type: pa.DataType) -> pa.Array:
    """Return Python's values as an array of a type that `python_type` has found."""
    if column_type == pa.float64():
        return pa.array([None if v is None else float(v) for v in values], column_type)
    if column_type == pa.string():
        return pa.array([_as_text(value) for value in values], column_type)
    return pa.array(values, column_type)


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime.timedelta):  # of Excel: hours and minutes, beyond a day, too
        seconds = round(value.total_seconds())
        sign = "-" if seconds < 0 else ""
        minutes, second = divmod(abs(seconds), 60)
        return f"{sign}{minutes // 60}:{minutes % 60:02d}:{second:02d}"
    return str(value).lower() if isinstance(value, bool) else str(value)


class JsonLines(Table):
    """A file with a JSON object for each row, read one line at a time, or a list of such objects.

    The first pass finds the columns and their types; a row without a column has no value there.
    """

    format: ClassVar[str] = "JSON"

    def __init__(self, path: Path, memory: float) -> None:
        self.path, raw = path, first_bytes(path, HEAD_BYTES)
        # of JSON in Latin-1 only the beginning tells it, so that UTF-8 is the rule
        self.encoding = detect_encoding(raw) or "utf-8"
        self.is_list = raw[:100].decode(self.encoding, "replace").lstrip()[:1] == "["
        if self.is_list and OBJECT_BYTES * path.stat().st_size > memory:
            raise ValueError(
                f"{path} is one list of {path.stat().st_size:,} bytes, which must be in memory at "
                "once: write a line for each row (.jsonl)."
            )
        types: dict[str, pa.DataType | None] = {}
        count = 0
        with read_errors(path, self.format):
            for rows in self._rows():
                count += len(rows)
                for name in {name: None for row in rows for name in row}:
                    values = [row.get(name) for row in rows]
                    if any(value is not None for value in values):
                        found, known = python_type(values), types.get(name)
                        types[name] = found if known in (None, found) else pa.string()
                    else:
                        types.setdefault(name, None)
        known_types = [pa.float64() if one is None else one for one in types.values()]
        super().__init__(path, memory, list(types), known_types)
        self.row_count = count

    def describe(self) -> list[str]:
        if self.encoding == "utf-8":
            return []
        return [f"{self.path.name} is read as {ENCODING_NAMES[self.encoding]}."]

    def _rows(self) -> Iterator[list[dict[str, Any]]]:
        objects = self._objects()
        while rows := list(islice(objects, BATCH)):
            yield rows

    def _objects(self) -> Iterator[dict[str, Any]]:
        with open_stream(self.path) as stream:
            # bytes that are not UTF-8 become half characters, so that their line can be named
            errors = "surrogateescape" if self.encoding.startswith("utf-8") else "strict"
            text = io.TextIOWrapper(stream, self.encoding, errors, newline="\n")
            if self.is_list:
                for number, row in enumerate(_decoded(text.read(), 1), 1):
                    yield _checked(row, f"row {number}")
                return
            number = 0
            while line := text.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise UnreadableError(
                        f"line {number} is longer than {LONGEST_LINE:,} characters"
                    )
                if line.strip():
                    yield _checked(_decoded(line, number), f"line {number}")

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        for found in self._rows():
            columns = [
                python_array([row.get(name) for row in found], self.types[name]) for name in names
            ]
            yield pa.RecordBatch.from_arrays(columns, names)


def _decoded(text: str, line: int) -> Any:
    if NOT_UTF8.search(text):
        raise UnreadableError(f"line {line} is not UTF-8")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"line {line + error.lineno - 1} is not JSON ({error.msg})") from None
    except (ValueError, RecursionError):  # too many digits, too deeply nested
        raise UnreadableError(f"line {line} is not JSON") from None


def _checked(row: Any, place: str) -> dict[str, Any]:
    """Return a row if it is an object of numbers, texts, booleans and null."""
    if not isinstance(row, dict):
        got = f"{row!r}"[:40]
        raise UnreadableError(f"{place} must be an object with the names of columns, got {got}")
    for name, value in row.items():
        if isinstance(value, dict | list):
            kind = "a list" if isinstance(value, list) else "an object"
            raise UnreadableError(
                f"{name!r} in {place} is {kind}, not a number or a text: a table has an object for "
                "each row, as pandas writes it with orient='records'"
            )
        if isinstance(value, int) and abs(value) > 2**1000:
            raise UnreadableError(f"{name!r} in {place} is too large a number")
        if any(SURROGATES.search(text) for text in (name, value) if isinstance(text, str)):
            raise UnreadableError(f"{name!a} in {place} has half a character")
    return row
