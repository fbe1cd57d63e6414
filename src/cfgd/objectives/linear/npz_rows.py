"""Reading the arrays of an .npz file a few rows at a time."""

from __future__ import annotations

import contextlib
import dataclasses
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Member:
    """An array of the archive: its header, and the position at which its numbers begin."""

    name: str
    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype[Any]
    begins: int


def member(path: Path, archive: zipfile.ZipFile, file: str) -> Member:
    """Read the header of an array of the archive."""
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
    return Member(name, shape, by_column and len(shape) == 2, dtype, begins)


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
        width = 1 if member.by_column else int(np.prod(member.shape[1:]))
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
        stream = stack.enter_context(archive.open(f"{member.name}.npy"))
        stream.seek(member.begins + j * n * member.dtype.itemsize)
        yield stream
