"""Files of delimited text, CSV and TSV, plain or compressed."""

from __future__ import annotations

import functools
import io
import itertools
import mmap
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import csv

from cfgd.apps.fit.blank_rows import BlankRows
from cfgd.apps.fit.compression import codec, open_stream
from cfgd.apps.fit.header import MOST_ABOVE, describe_above
from cfgd.apps.fit.missing_marks import MARKS
from cfgd.apps.fit.number_text import COMMA, NAMES, POINT, NumberTexts
from cfgd.apps.fit.sniffing import ENCODING_NAMES, last_rows, rows_of, sniff
from cfgd.apps.fit.table import Table, is_numeric, read_errors

RAGGED = re.compile(r"Expected \d+ columns, got \d+")
LEADING_ZERO = re.compile(r"\s*0\d+\s*$")
POSTCODE = re.compile(r"\b(?:zip|plz|postal|post_?code|postleitzahl|fips|iban|isbn|ean|gtin)", re.I)
# Rows of a batch on average, below which all of them are put together: every column of every batch
# takes some microseconds.
MIN_BATCH = 2000
# Bytes of a range at least: pyarrow infers types from a megabyte, and parses it in milliseconds.
LEAST_RANGE = 2**20
SHOWN = 60  # characters of a row that a message shows


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
    infers_types: ClassVar[bool] = True
    # of a part: where its bytes begin and end; a part behind the first one has no header
    begin, end = 0, None
    _blank_of_parts: Sequence[BlankRows] = ()

    def __init__(self, path: Path, memory: float, decimal: str | None = None) -> None:
        self.path, self.dialect = path, sniff(path)
        self._blank: BlankRows | None = None
        self.decimal = decimal or self._head_decimal()
        with read_errors(path, self.format):
            super().__init__(path, memory, self.dialect.names, self._inferred_types(path))
            self._read_doubtful_columns_as_text()

    def describe(self) -> list[str]:
        dialect, is_comma = self.dialect, self.decimal == COMMA
        sentences = describe_above(dialect.above)
        if dialect.is_plain and not is_comma:
            return sentences
        decimals = f" with {NAMES[COMMA]}" if is_comma else ""
        return [f"{self.path.name} is read as {dialect.describe()}{decimals}.", *sentences]

    def first_rows(self) -> Sequence[Sequence[str]]:
        return self.dialect.rows[:MOST_ABOVE]

    def divided(self, count: int) -> list[Table]:
        """Return ranges of whole lines, where no text may have the end of a line in it."""
        size = self.path.stat().st_size
        count = min(count, size // LEAST_RANGE)
        if count < 2 or self._may_have_quotes:
            return [self]
        ends = [0]
        with self.path.open("rb") as file:
            for i in range(1, count):
                file.seek(max(ends[-1], i * size // count))
                file.readline()
                if ends[-1] < file.tell() < size:
                    ends.append(file.tell())
        ends.append(size)
        blank = self._blank_of_parts
        if self._blank is not None and len(blank) != len(ends) - 1:
            blank = [BlankRows(self._blank.names) for _ in ends[1:]]
        found: list[Table] = []
        for i, (begin, end) in enumerate(itertools.pairwise(ends)):
            own = blank[i] if blank else None
            found.append(self.part(begin=begin, end=end, types={**self.types}, _blank=own))
        return found

    def learn_blank_rows(self, parts: Sequence[Any]) -> None:
        self._blank_of_parts = [part._blank for part in parts if part._blank is not None]
        if len(parts) == 1:
            self._blank = parts[0]._blank

    def learn_types(self, part: Table) -> None:
        if isinstance(part, Csv):
            self.dialect = part.dialect
            changed = [name for name, of in part.types.items() if of == pa.string()]
            self.read_as_text(changed)

    def set_decimal(self, decimal: str) -> None:
        self.decimal = decimal
        with read_errors(self.path, self.format):
            types = self._inferred_types(self.path)
            self.types = dict(zip(self.dialect.names, types, strict=True))
            self._read_doubtful_columns_as_text()

    def read_as_text(self, names: Sequence[str]) -> None:
        self.types |= {name: pa.string() for name in names if name in self.types}

    def _head_decimal(self) -> str:
        """Return the decimal sign of most of the first numbers that have one for certain."""
        fields = [field for row in self.dialect.rows for field in row if COMMA in field]
        if not fields:
            return POINT
        commas = NumberTexts(pa.array(fields, pa.string())).matches
        return COMMA if np.sum(commas[COMMA]) > np.sum(commas[POINT]) else POINT

    def _inferred_types(self, path: Path) -> list[pa.DataType]:
        while True:
            try:
                with open_stream(path) as stream, csv.open_csv(stream, **self._options()) as reader:
                    return list(map(_read_type, reader.schema.types))
            except UnicodeDecodeError:
                self._change_encoding(path)
            except pa.ArrowInvalid as error:
                raise self._explained(error) from None

    def _read_doubtful_columns_as_text(self) -> None:
        """Read columns as texts whose numbers may be codes, or have either decimal sign.

        Digits such as 01234 are a code: they are looked for in the first and the last rows, and in
        all rows of columns that are named as postcodes. In a file of semicolons 1.234 may be more
        than a thousand.
        """
        rows = [*self.dialect.rows, *last_rows(self.path, self.dialect)]
        for i, name in enumerate(self.dialect.names):
            if self.types[name] != pa.float64():
                continue
            fields = [row[i] for row in rows if i < len(row)]
            if POSTCODE.search(name) or any(map(LEADING_ZERO.match, fields)):
                self.types[name] = pa.string()
            elif self.dialect.separator == ";" and fields:
                numbers = NumberTexts(pa.array(fields, pa.string()))
                if numbers.has_group_mark.any() and np.array_equal(*numbers.matches.values()):
                    self.types[name] = pa.string()

    def leave_out_blank_rows(self, names: Sequence[str]) -> None:
        """Leave out rows that have no value in any of these columns, as spreadsheets write them.

        A pass over all of them finds the rows; it must be the first one.
        """
        self._blank, self._blank_of_parts = BlankRows(names), []

    @property
    def blank_rows(self) -> int:
        return sum(blank.count for blank in self._blank_of_parts)

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        found = self._parsed(names)
        return found if self._blank is None else self._blank.left_out(names, found)

    def _parsed(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        options = self._options({name: self.types[name] for name in names})
        try:
            with self._open() as stream:
                if self._is_kept():  # all of it, by several threads
                    table = csv.read_csv(stream, **options)
                    chunks = table.column(0).num_chunks if names else 1
                    is_short = table.num_rows < MIN_BATCH * chunks
                    yield from (table.combine_chunks() if is_short else table).to_batches()
                    return
                with csv.open_csv(stream, **options) as reader:
                    yield from reader
        except UnicodeDecodeError:
            self._change_encoding(self.path)
            raise TypesChanged from None
        except pa.ArrowInvalid as error:
            found = re.match(r"In CSV column #(\d+): .*conversion error", str(error))
            if found is None:
                raise self._explained(error) from None
            column = self.dialect.names[int(found[1])]
            if self.types[column] == pa.string():  # any UTF-8 can be a string
                self._change_encoding(self.path)
            else:
                self.types[column] = pa.string()
            raise TypesChanged from None

    @functools.cached_property
    def _may_have_quotes(self) -> bool:
        """Whether a text may have the end of a line in it; without, parsing takes half the time."""
        is_one_byte = self.dialect.encoding in ("utf-8", "utf-8-sig", "cp1252")
        if codec(self.path)[0] is not None or not is_one_byte:
            return True
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return content.find(self.dialect.quote.encode()) >= 0

    def _is_kept(self) -> bool:
        """Return whether all columns fit into the memory for kept ones, as the first rows tell.

        A number takes 8 bytes, and a text as many as in the file. What a compressed file expands to
        is not known.
        """
        if codec(self.path)[0] is not None or not self.dialect.rows:
            return False
        end = self.path.stat().st_size if self.end is None else self.end
        size, rows = end - self.begin, self.dialect.rows
        characters = sum(len(field) + 1 for row in rows for field in row)
        numbers = sum(map(len, rows)) * size / characters
        return 8 * numbers + size * (pa.string() in self.types.values()) < self.kept_bytes

    def _open(self) -> Any:
        """Open the file, or the range of a part of it."""
        if self.end is None:
            return open_stream(self.path)
        return pa.PythonFile(ByteRange(self.path, self.begin, self.end), mode="r")

    def _change_encoding(self, path: Path) -> None:
        """Take Windows-1252 where bytes behind the first rows are not UTF-8."""
        if self.dialect.encoding not in ("utf-8", "utf-8-sig"):
            name = ENCODING_NAMES[self.dialect.encoding]
            raise ValueError(f"{path} is not {name} as a whole, as its beginning is: save it anew.")
        self.dialect = sniff(path, "cp1252")

    def _explained(self, error: pa.ArrowInvalid) -> Exception:
        """Return an error that names the first row of another width, or else the same error."""
        if not RAGGED.search(str(error)):
            return error
        width, dialect = len(self.dialect.names), self.dialect
        with open_stream(self.path) as stream:
            text = io.TextIOWrapper(stream, dialect.encoding, "replace", newline="")
            rows = (
                row
                for n, row in rows_of(text, dialect.separator, dialect.quote)
                if n > dialect.skipped
            )
            for number, row in enumerate(rows, 1):
                if len(row) != width:
                    shown = dialect.separator.join(row)[:SHOWN]
                    fields = f"{len(row)} field{'' if len(row) == 1 else 's'}"
                    return ValueError(
                        f"{self.path}: row {number} has {fields} where the header has {width}: "
                        f"{shown!r}: a text with the separator in it must be in quotes, and a row "
                        "that is none of the table must be deleted."
                    )
        return error

    def _options(self, types: dict[str, pa.DataType] | None = None) -> dict[str, Any]:
        return {
            "read_options": csv.ReadOptions(
                encoding="utf-8" if self.dialect.encoding == "utf-8-sig" else self.dialect.encoding,
                column_names=list(self.dialect.names),
                skip_rows=0 if self.begin else self.dialect.skipped,
                skip_rows_after_names=0 if self.begin else 1,
            ),
            "parse_options": csv.ParseOptions(
                newlines_in_values=self._may_have_quotes,
                delimiter=self.dialect.separator,
                quote_char=self.dialect.quote,
            ),
            "convert_options": csv.ConvertOptions(
                column_types=types,
                include_columns=list(types or []),
                null_values=list(MARKS),
                decimal_point=self.decimal,
            ),
        }


class ByteRange(io.RawIOBase):
    """The bytes of a file from a place to another one."""

    def __init__(self, path: Path, begin: int, end: int) -> None:
        self.file, self.left = path.open("rb"), end - begin
        self.file.seek(begin)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)[: self.left]
        count = self.file.readinto(view)
        self.left -= count
        return count

    def close(self) -> None:
        self.file.close()
        super().close()


def _read_type(inferred: pa.DataType) -> pa.DataType:
    """Return float64 for numbers: later rows may have a decimal point where the first have none."""
    is_number = is_numeric(inferred) and inferred != pa.bool_()
    return pa.float64() if is_number or pa.types.is_null(inferred) else pa.string()
