"""NPZ files: a vector is a column, a matrix X is the columns X_0, X_1, ..."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from cfgd._core.npy import UnreadableError
from cfgd.apps.fit.table import Table, read_errors
from cfgd.objectives.linear.npz_rows import Member, Reader, check_memory, member

# Bytes that a column takes before a row is read: its name, its type and its statistics.
COLUMN_BYTES = 1000
# Copies of what is read that are in memory at once: the bytes, the array and Arrow's columns.
COPIES = 4


def column_names(member: Member) -> list[str]:
    """Return the names of the columns that an array of the archive stands for."""
    if len(member.shape) == 1:
        return [member.name]
    return [f"{member.name}_{j}" for j in range(member.shape[1])]


class Npz(Table):
    """An archive of NumPy arrays with equally many rows, read row by row without loading them."""

    format: ClassVar[str] = "NPZ"

    def __init__(self, path: Path, memory: float) -> None:
        with read_errors(path, self.format), zipfile.ZipFile(path) as archive:
            size = path.stat().st_size
            self.members = [_checked_member(archive, name, size) for name in archive.namelist()]
            width = sum(1 if len(one.shape) == 1 else one.shape[1] for one in self.members)
            if width * COLUMN_BYTES > memory:
                raise UnreadableError(
                    f"it has {float(width):.3g} columns, too many for the {memory:.3g} bytes of "
                    "memory that may be used"
                )
            check_memory(self.members, memory / COPIES)
        lengths = {member.shape[0]: member.name for member in self.members}
        if len(lengths) > 1:
            (n, a), (m, b) = list(lengths.items())[:2]
            raise ValueError(f"{path}: {a!r} has {n} rows and {b!r} has {m}.")
        self.length = next(iter(lengths), 0)
        columns = [(name, member) for member in self.members for name in column_names(member)]
        types = [_arrow_type(member) for _, member in columns]
        super().__init__(path, memory, [name for name, _ in columns], types)
        self.row_count = self.length

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        wanted = set(names)
        members = [member for member in self.members if wanted & set(column_names(member))]
        row_bytes = sum(member.row_bytes for member in members)
        # texts may take far more than a number
        rows = max(1, min(rows, int(self.memory / (COPIES * max(row_bytes, 1)))))
        with contextlib.ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(self.path))
            readers = [Reader(stack, archive, member) for member in members]
            for start in range(0, self.length, rows):
                count = min(rows, self.length - start)
                arrays: dict[str, pa.Array] = {}
                for member, reader in zip(members, readers, strict=True):
                    columns = reader.rows(count).T
                    for name, column in zip(column_names(member), columns, strict=True):
                        if name in wanted:
                            arrays[name] = _arrow_array(column)
                yield pa.RecordBatch.from_pydict(arrays)


def _checked_member(archive: zipfile.ZipFile, file: str, size: int) -> Member:
    checked = member(archive, file, size)
    name, shape, dtype = checked.name, checked.shape, checked.dtype
    if dtype.kind == "c":
        raise UnreadableError(f"{name!r} has dtype {dtype}, not of real numbers or texts")
    if len(shape) not in (1, 2):
        raise UnreadableError(f"{name!r} must be a vector or a matrix, got shape {shape}")
    return checked


def _arrow_type(member: Member) -> pa.DataType:
    if member.dtype.kind in "US":
        return pa.string()
    return pa.from_numpy_dtype(member.dtype.newbyteorder("="))


def _arrow_array(column: np.ndarray) -> pa.Array:
    if column.dtype.kind == "S":
        column = np.char.decode(column, "utf-8", "replace")
    if column.dtype.kind == "U":
        return pa.array(column.tolist(), pa.string())
    return pa.array(np.ascontiguousarray(column, column.dtype.newbyteorder("=")))
