"""The interface of a table in a file: named columns whose rows any number of passes can read."""

from __future__ import annotations

import abc
import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cfgd._core.files import first_line, printable, reason
from cfgd._core.npy import ARCHIVE_ERRORS, UnreadableError
from cfgd.apps.fit.formats import typed
from cfgd.apps.fit.workers import THIS_PROCESS, Workers

ColumnKind = Literal["number", "text"]
# Share of the memory for reading up to which the columns of a file are kept after a pass: parsing a
# text file again takes three times as long as all else that a pass does.
KEPT_SHARE = 1 / 8


class Table(abc.ABC):
    """A table in a file; `types` maps the names of its columns, in their order, to Arrow types.

    A table may be a part of another one: some of its consecutive rows.

    Attributes
    ----------
    memory : float
        The number of bytes that reading may take.
    infers_types : bool
        Whether the types are inferred from texts: the first pass then reads all columns, and may
        change them.
    decimal : str
        The decimal sign of numbers that are inferred from texts.
    workers : Workers
        Who computes the passes of `map`.
    row_count : int or None
        The number of rows, where it is known before they are read.
    rows_before, rows_before_in_file : int
        Of a part: the rows of the whole table before it, and those of its file.
    kept_bytes : float
        The size up to which the columns are kept after a pass.
    """

    format: ClassVar[str]
    infers_types: ClassVar[bool] = False
    decimal = "."
    workers: Workers = THIS_PROCESS
    row_count: int | None = None
    rows_before = rows_before_in_file = 0
    _known_counts: tuple[int, ...] = ()

    def __init__(
        self, path: Path, memory: float, names: Sequence[str], types: Sequence[pa.DataType]
    ) -> None:
        self.path, self.memory = path, memory
        self.kept_bytes = KEPT_SHARE * memory
        self._kept: tuple[dict[str, pa.DataType], list[pa.RecordBatch]] = {}, []
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise ValueError(f"{path} has more than one column {name!r}: rename all but one.")
            seen.add(name)
        self.types = dict(zip(names, types, strict=True))

    @property
    def files(self) -> list[Path]:
        """The files in which the rows are."""
        return [self.path]

    def describe(self) -> list[str]:
        """Return sentences about how the file is written, where that is not plain."""
        return []

    def first_rows(self) -> Sequence[Sequence[str]]:
        """Return the first rows of a file whose header had to be found, as texts."""
        return ()

    def read_as_text(self, names: Sequence[str]) -> None:  # noqa: B027 - not for other files
        """Read columns as the texts that are in the file, where it is one of texts."""

    def set_decimal(self, decimal: str) -> None:  # noqa: B027
        """Read columns of numbers with another decimal sign, where the file is one of texts."""

    def leave_out_blank_rows(self, names: Sequence[str]) -> None:  # noqa: B027
        """Leave out rows that have no value in any of these columns, where a file has such."""

    @property
    def blank_rows(self) -> int:
        """How many rows are left out since they have no value."""
        return 0

    # ------------------------------------------------------------------ parts

    def map(self, function: Callable[..., Any], *args: Any) -> Iterator[Any]:
        """Iterate over function(part, *args) for all parts, in their order."""
        workers = self.workers
        parts = [OnePart(part) for part in workers.share(self.parts())]
        return workers.engine(parts).map(_of_part, function, *args)

    def parts(self) -> list[Table]:
        """Return the parts that the workers compute."""
        parts = self.divided(self.workers.count)
        counts = self._known_counts or [part.row_count for part in parts]
        before = in_file = 0
        for part, count, previous in zip(parts, counts, [None, *parts[:-1]], strict=True):
            if previous is not None and previous.path != part.path:
                in_file = 0
            part.rows_before, part.rows_before_in_file = before, in_file
            before, in_file = before + (count or 0), in_file + (count or 0)
        return parts

    def divided(self, count: int) -> list[Table]:
        """Return about `count` parts, if the format allows it."""
        return [self]

    def part(self, **changed: Any) -> Any:
        """Return a copy for a part of the rows; `changed` are its attributes."""
        other = copy.copy(self)
        other.forget_batches()
        vars(other).update(changed)
        return other

    def set_counts(self, counts: Sequence[int]) -> None:
        """Set the numbers of rows of the parts, once a pass has found them."""
        self._known_counts = tuple(counts)

    def learn_types(self, part: Table) -> None:  # noqa: B027
        """Take over the types that the pass over a part has changed."""

    def learn_blank_rows(self, parts: Sequence[Any]) -> None:  # noqa: B027
        """Take over the blank rows that a pass has found in all parts."""

    def row_label(self, row: int) -> str:
        """Return how a message names a row of the whole table, which is counted from 1."""
        return f"{row}"

    def __getstate__(self) -> dict[str, Any]:
        """Return what goes to another process: all but the workers and the batches."""
        known = vars(self) | {"_kept": ({}, []), "kept_bytes": 0.0}
        known.pop("workers", None)
        return known

    # ------------------------------------------------------------------ rows

    @abc.abstractmethod
    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Read the table once: yield record batches that have these columns, in any order.

        A batch has about `rows` rows where the format lets the reader choose.
        """

    def blocks(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Read the table once: yield record batches of at most `rows` rows of these columns.

        Every batch is validated: pyarrow trusts the offsets of texts and the indices of categories
        in a file, and reads outside of its memory where they are wrong.
        """
        for batch in self._kept_batches(names) or self._checked_batches(names, rows):
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    def _checked_batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Read batches from the file, and keep them if all of them are small."""
        kept: list[pa.RecordBatch] | None = []
        types = {name: self.types[name] for name in names}
        size = 0
        with read_errors(self.path, self.format):
            for batch in self.batches(names, rows):
                batch.validate(full=True)
                self._check_categories(batch, rows)
                size += batch.nbytes
                if kept is not None:
                    kept.append(batch)
                if size > self.kept_bytes:
                    kept = None
                yield batch
        if kept is not None and self.types.items() >= types.items():
            self._kept = types, kept

    def _kept_batches(self, names: list[str]) -> list[pa.RecordBatch]:
        """Return the batches of an earlier pass if they have these columns with their types."""
        types, batches = self._kept
        is_same = all(types.get(name) == self.types[name] for name in names)
        return batches if is_same else []

    def forget_batches(self) -> None:
        """Free the batches that are kept for further passes."""
        self._kept = {}, []

    def _check_categories(self, batch: pa.RecordBatch, rows: int) -> None:
        """Raise a `ValueError` if the texts that categories stand for might not fit into memory."""
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if pa.types.is_dictionary(column.type) and is_text(column.type.value_type):
                longest = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
                if longest * min(rows, batch.num_rows) > self.memory:
                    raise ValueError(
                        f"{self.path}: the column {name!r} has a text of {longest:,} bytes, too "
                        f"long for categories: leave it out with {typed('--drop', name)}."
                    )

    def kind(self, name: str) -> ColumnKind:
        """Return whether a column holds numbers or texts; raise a `ValueError` for other types."""
        column_type = self.types[name]
        if is_text(value_type(column_type)):
            return "text"
        if is_numeric(value_type(column_type)):
            return "number"
        raise ValueError(
            f"{self.path}: the column {name!r} has the type {column_type}, but only numbers, "
            f"texts, dates and booleans can be used: leave it out with {typed('--drop', name)}."
        )


class OnePart:
    """A part of a table as the engines take it: its only block is the table itself."""

    def __init__(self, table: Table) -> None:
        self.table, self.rows = table, table.row_count

    def __call__(self) -> Iterator[Table]:
        return iter((self.table,))


def _of_part(tables: Iterator[Table], function: Callable[..., Any], *args: Any) -> Any:
    return function(next(tables), *args)


def value_type(column_type: pa.DataType) -> pa.DataType:
    """Return the type of the values of a column, which may be categories."""
    return column_type.value_type if pa.types.is_dictionary(column_type) else column_type


def is_text(column_type: pa.DataType) -> bool:
    """Return whether a column of this type holds texts."""
    return pa.types.is_string(column_type) or pa.types.is_large_string(column_type)


def is_numeric(column_type: pa.DataType) -> bool:
    """Return whether values of this type can be cast to float64; booleans can."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(column_type) for test in tests)


def to_float64(column: pa.Array) -> np.ndarray:
    """Return the column as float64, with NaN for missing values; it may be read-only.

    This and `of_float64` read and make the buffers themselves: `Array.to_numpy` and `pa.array`
    import pandas where it is installed, which takes as long as parsing a million numbers.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    if not len(column):
        return np.zeros(0)
    validity, data = column.buffers()
    end = column.offset + len(column)
    values = np.frombuffer(data, np.float64, end)[column.offset :]
    if not column.null_count:
        return values
    bits = np.frombuffer(validity, np.uint8, -(-end // 8))
    present = np.unpackbits(bits, count=end, bitorder="little")[column.offset :]
    return np.where(present, values, np.nan)


def of_float64(values: np.ndarray) -> pa.Array:
    """Return an array of numbers, in which NaN stays NaN."""
    values = np.ascontiguousarray(values, np.float64)
    return pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values)])


def to_strings(column: pa.Array) -> pa.Array:
    """Return the column as strings, with null for missing values and, as in CSV, empty strings."""
    column = column.cast(pa.string())
    if not pc.any(pc.equal(column, "")).as_py():
        return column
    # pyarrow.compute.if_else gives wrong results on slices of a column, in version 16
    return pa.array([text or None for text in column.to_pylist()], pa.string())


@contextlib.contextmanager
def read_errors(path: Path, format: str) -> Iterator[None]:
    """Turn the errors that libraries raise for a file they cannot read into a `ValueError`."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {first_line(reason(error))}.") from None
    except UnreadableError as error:
        raise ValueError(f"{path} cannot be read as {format}: {printable(str(error))}.") from None
    except MemoryError:  # pa.ArrowMemoryError is one, too
        raise ValueError(f"{path} cannot be read: it takes more memory than there is.") from None
    except (pa.ArrowException, *ARCHIVE_ERRORS) as error:
        cause = first_line(str(error)) or "it ends too early"
        raise ValueError(f"{path} cannot be read as {format}: {cause}.") from None
