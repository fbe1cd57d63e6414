"""Arrays in .npy and .npz files that others may have written: sizes are checked before use.

A header may claim any shape, and a few bytes of a compressed archive may expand to gigabytes. The
functions below raise an `UnreadableError` before anything of the claimed size is allocated.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.files import first_line

# Bytes in which a header must end: the limit of NumPy's own reader, and the bytes before the text.
HEADER_BYTES = 10_000 + 12
# The largest ratio of deflate: 258 bytes for two bits (zlib's technical notes).
MOST_EXPANSION = 1032
ENCRYPTED = 0x41  # flag bits of encryption and strong encryption
KINDS = "biufcSU"  # booleans, numbers and texts: no Python objects, dates or records
# What zipfile raises, beside OSError, for archives that are damaged, encrypted or compressed by
# unknown methods.
ARCHIVE_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, UnicodeError),
    *(KeyError, IndexError, OverflowError, RuntimeError),
)


class UnreadableError(ValueError):
    """Raised with a phrase that says what is wrong with a file; the caller adds its name."""


class Header(NamedTuple):
    """What the header of a .npy file says, and the position at which the numbers begin."""

    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype[Any]
    begins: int

    @property
    def size(self) -> int:
        """The bytes of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: Any) -> Header:
    """Read the header of an array; raise an `UnreadableError` for anything else."""
    raw = io.BytesIO(stream.read(HEADER_BYTES))
    try:
        version = np.lib.format.read_magic(raw)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, by_column, dtype = read(raw)
    except Exception:  # parsing a header raises nearly all that Python's parser and NumPy have
        raise UnreadableError("no array of NumPy") from None
    if any(isinstance(n, bool) or n < 0 for n in shape):
        raise UnreadableError(f"an array of shape {_short(shape)}")
    if dtype.kind not in KINDS or dtype.itemsize == 0:
        raise UnreadableError(f"an array of dtype {_short(dtype)}, not of numbers or texts")
    return Header(shape, by_column, dtype, raw.tell())


def check_size(header: Header, size: int) -> None:
    """Raise an `UnreadableError` unless a file of `size` bytes holds what its header says."""
    held = size - header.begins
    if held != header.size:
        wanted = f"{header.size:,}" if header.size < 2**63 else f"{float(header.size):.3g}"
        raise UnreadableError(
            f"an array of shape {_short(header.shape)}, which takes {wanted} bytes, in {held:,}"
        )


def check_member(member: zipfile.ZipInfo, archive_size: int) -> None:
    """Raise an `UnreadableError` for a member that the archive cannot hold, or that is encrypted.

    `zipfile` reads no more than the declared size of a member, and decompresses by parts; so this
    bounds what is read of it.
    """
    if member.flag_bits & ENCRYPTED:
        raise UnreadableError("encrypted")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UnreadableError(f"compressed by method {member.compress_type}, not by deflate (8)")
    is_stored = member.compress_type == zipfile.ZIP_STORED
    most = member.compress_size * (1 if is_stored else MOST_EXPANSION)
    if member.compress_size > archive_size or member.file_size > most:
        raise UnreadableError(
            f"declared to have {member.file_size:,} bytes, which its {member.compress_size:,} in a "
            f"file of {archive_size:,} cannot hold"
        )


def load_stored(file: io.BufferedIOBase) -> dict[str, np.ndarray]:
    """Return the arrays of an archive that `numpy.savez` wrote, which does not compress them.

    They take no more memory than the file. The arrays cannot be written into.

    Raises
    ------
    UnreadableError
        If the file is not such an archive.
    """
    size = file.seek(0, io.SEEK_END)
    try:
        with zipfile.ZipFile(file) as archive:
            return dict(_stored_arrays(archive, size))
    except UnreadableError:
        raise
    except (*ARCHIVE_ERRORS, OSError, ValueError) as error:
        raise UnreadableError(first_line(str(error)) or "it ends too early") from error


def _stored_arrays(archive: zipfile.ZipFile, size: int) -> Iterator[tuple[str, np.ndarray]]:
    members = archive.infolist()
    # entries may overlap in the file
    if sum(member.file_size for member in members) > size:
        raise UnreadableError(f"its arrays are declared to have more than its {size:,} bytes")
    if len({member.filename for member in members}) < len(members):
        raise UnreadableError("an array is there twice")
    for member in members:
        try:
            if member.compress_type != zipfile.ZIP_STORED:
                raise UnreadableError("compressed")
            check_member(member, size)
            yield member.filename.removesuffix(".npy"), _from_bytes(archive.read(member))
        except UnreadableError as error:
            raise UnreadableError(f"{member.filename!r} is {error}") from None


def _from_bytes(raw: bytes) -> np.ndarray:
    header = read_header(io.BytesIO(raw))
    check_size(header, len(raw))
    flat = np.frombuffer(raw, header.dtype, offset=header.begins)
    return flat.reshape(header.shape, order="F" if header.by_column else "C")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
