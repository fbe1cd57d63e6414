"""NPZ: vectors are columns, a matrix X is the columns X_0, X_1, ...; read along its rows."""

from __future__ import annotations

import contextlib
import dataclasses
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from cfgd.fit.table import Table, reading


@dataclasses.dataclass(frozen=True)
class Member:
    """An array of the archive: where its numbers begin, and how they follow one another."""

    name: str
    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype[Any]
    begins: int

    @property
    def names(self) -> list[str]:
        if len(self.shape) == 1:
            return [self.name]
        return [f"{self.name}_{j}" for j in range(self.shape[1])]

    def type(self) -> Any:
        if self.dtype.kind in "US":
            return pa.string()
        return pa.from_numpy_dtype(self.dtype.newbyteorder("="))


class Npz(Table):
    format: ClassVar[str] = "NPZ"

    def __init__(self, path: Path) -> None:
        with reading(path, self.format), zipfile.ZipFile(path) as archive:
            self.members = [_member(path, archive, name) for name in archive.namelist()]
        lengths = {member.shape[0]: member.name for member in self.members}
        if len(lengths) > 1:
            (n, a), (m, b) = list(lengths.items())[:2]
            raise ValueError(f"{path}: {a!r} has {n} rows and {b!r} has {m}.")
        self.length = next(iter(lengths), 0)
        columns = [(name, member) for member in self.members for name in member.names]
        super().__init__(path, [name for name, _ in columns], [of.type() for _, of in columns])

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        wanted = set(names)
        with contextlib.ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(self.path))
            members = [member for member in self.members if wanted & set(member.names)]
            files = [list(_streams(stack, archive, member)) for member in members]
            for start in range(0, self.length, rows):
                count = min(rows, self.length - start)
                found: dict[str, Any] = {}
                for member, streams in zip(members, files, strict=True):
                    columns = _rows(member, streams, count)
                    for name, column in zip(member.names, columns, strict=True):
                        if name in wanted:
                            found[name] = _array(column)
                yield pa.RecordBatch.from_pydict(found)


def _member(path: Path, archive: zipfile.ZipFile, file: str) -> Member:
    name = file.removesuffix(".npy")
    with archive.open(file) as stream:
        try:
            version = np.lib.format.read_magic(stream)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, by_column, dtype = read(stream)
        except (ValueError, KeyError):
            raise ValueError(f"{path}: {file!r} is no array of NumPy.") from None
        begins = stream.tell()
    if dtype.kind not in "biufUS":
        raise ValueError(f"{path}: {name!r} has dtype {dtype}; numbers and texts can be used.")
    if len(shape) not in (1, 2):
        raise ValueError(f"{path}: {name!r} must be a vector or a matrix, got shape {shape}.")
    return Member(name, shape, by_column and len(shape) == 2, dtype, begins)


def _streams(
    stack: contextlib.ExitStack, archive: zipfile.ZipFile, member: Member
) -> Iterator[Any]:
    """One for the rows; of a matrix that is stored by columns one for each of them."""
    n, *more = member.shape
    for j in range(more[0] if member.by_column else 1):
        stream = stack.enter_context(archive.open(f"{member.name}.npy"))
        stream.seek(member.begins + j * n * member.dtype.itemsize)
        yield stream


def _rows(member: Member, streams: list[Any], count: int) -> np.ndarray:
    """The columns of the next rows."""
    width = 1 if member.by_column else int(np.prod(member.shape[1:]))
    size = count * width * member.dtype.itemsize
    parts = []
    for stream in streams:
        raw = stream.read(size)
        if len(raw) < size:
            raise EOFError(f"{member.name!r} ends too early")
        parts.append(np.frombuffer(raw, member.dtype).reshape(count, width))
    return np.concatenate(parts, 1).T if len(parts) > 1 else parts[0].T


def _array(column: np.ndarray) -> Any:
    if column.dtype.kind == "S":
        column = np.char.decode(column, "utf-8", "replace")
    if column.dtype.kind == "U":
        return pa.array(column.tolist(), pa.string())
    return pa.array(np.ascontiguousarray(column, column.dtype.newbyteorder("=")))
