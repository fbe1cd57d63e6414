"""Reading the arrays of an .npz file a few rows at a time."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cfgd._core.npy import UnreadableError, check_member, check_size, read_header

# Bytes of an open stream: the window of deflate, 32 kB, its tables, and a buffer.
STREAM_BYTES = 2**16
# Bytes of streams that are allowed in any case: about what the interpreter itself takes.
LEAST_STREAMS = 2**26


@dataclasses.dataclass(frozen=True)
class Member:
    """An array of the archive: its header, and the position at which its numbers begin."""

    file: str
    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype[Any]
    begins: int

    @property
    def name(self) -> str:
        return self.file.removesuffix(".npy")

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def member(archive: zipfile.ZipFile, file: str, archive_size: int) -> Member:
    """Read the header of an array of the archive, and check that the file can hold the array.

    Raises
    ------
    UnreadableError
        If it is no array, or larger than the file of `archive_size` bytes can hold.
    """
    info = archive.getinfo(file)
    try:
        check_member(info, archive_size)
        with archive.open(info) as stream:
            header = read_header(stream)
        check_size(header, info.file_size)
    except UnreadableError as error:
        raise UnreadableError(f"{file!r} is {error}") from None
    shape, by_column, dtype, begins = header
    return Member(file, shape, by_column and len(shape) == 2, dtype, begins)


def check_memory(members: Sequence[Member], memory: float) -> None:
    """Raise an `UnreadableError` where a row of all arrays, or their streams, take more memory."""
    row = sum(member.row_bytes for member in members)
    streams = sum(STREAM_BYTES * member.shape[1] for member in members if member.by_column)
    if row > memory:
        raise UnreadableError(
            f"one row takes {float(row):.3g} bytes, and {memory:.3g} may be used for it"
        )
    if streams > max(memory, LEAST_STREAMS):
        raise UnreadableError(
            f"rows of a matrix in column-major order take {float(streams):.3g} bytes to read, and "
            f"{memory:.3g} may be used: save it in row-major order"
        )


class Reader:
    """Sequential access to the rows of an array."""

    def __init__(
        self, stack: contextlib.ExitStack, archive: zipfile.ZipFile, member: Member
    ) -> None:
        self.member = member
        self.streams = list(_streams(stack, archive, member))

    def rows(self, count: int) -> np.ndarray:
        """Return the next `count` rows as a matrix; a vector gives one column."""
        member = self.member
        width = 1 if member.by_column else math.prod(member.shape[1:])
        size = count * width * member.dtype.itemsize
        parts = []
        for stream in self.streams:
            raw = stream.read(size)
            if len(raw) < size:
                raise EOFError(f"{member.name!r} ends too early")
            parts.append(np.frombuffer(raw, member.dtype).reshape(count, width))
        return np.concatenate(parts, 1) if len(parts) > 1 else parts[0]


def _streams(
    stack: contextlib.ExitStack, archive: zipfile.ZipFile, member: Member
) -> Iterator[Any]:
    """Open one stream for the rows, or one for each column of a matrix in column-major order."""
    n, *more = member.shape
    for j in range(more[0] if member.by_column else 1):
        stream = stack.enter_context(archive.open(member.file))
        stream.seek(member.begins + j * n * member.dtype.itemsize)
        yield stream
