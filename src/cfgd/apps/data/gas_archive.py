"""From a path to its texts, whatever is there: a file, a folder or a zip, whole or damaged.

What is read and unpacked is bounded: a small file may expand to more than the memory holds.
"""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

MEGABYTES = 100  # of all that is read and unpacked; the gas data, twice packed, has 60
ENCRYPTED = 0x41  # flags of a member of a zip
# zipfile reads those of other methods without a bound
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# what zipfile and gzip raise on bytes that are not what they should be
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    RuntimeError,
)

Text = tuple[str, str]  # the name for messages, and the content


class Room:
    """How much may still be read."""

    def __init__(self) -> None:
        self.left = MEGABYTES * 1_000_000

    def take(self, name: str, read: Callable[[int], bytes]) -> bytes:
        """All that `read(limit)` has to give, if that is not too much."""
        raw = read(self.left + 1)
        if len(raw) > self.left:
            raise ValueError(
                f"{name} takes what is read beyond {MEGABYTES} MB, more than the gas data has."
            )
        self.left -= len(raw)
        return raw


def texts(path: Path) -> tuple[list[Text], bool]:
    """The texts at a path, and whether they are UCI's batches (and not one CSV file)."""
    room, name = Room(), str(path)
    try:
        if not path.exists():
            raise ValueError(f"There is no file {path}.")
        if path.is_dir():
            return list(in_folder(path, room)), True
        raw = from_file(path, room)
    except OSError as error:
        raise ValueError(f"{error.filename or path} cannot be read: {error.strerror}.") from None
    if raw[:2] == b"PK":
        return list(in_zip(raw, name, room)), True
    return [(name, text(raw, name, room))], path.suffix == ".dat"


def from_file(path: Path, room: Room) -> bytes:
    with path.open("rb") as file:
        return room.take(str(path), file.read)


def in_folder(path: Path, room: Room) -> Iterator[Text]:
    for file in sorted(path.rglob("batch*.dat")):
        if file.exists() and not file.is_file():
            kind = "a folder" if file.is_dir() else "no ordinary file"
            raise ValueError(f"{file} is {kind}; a file of UCI's data is wanted there.")
        yield str(file), text(from_file(file, room), str(file), room)


def in_zip(raw: bytes, name: str, room: Room, inside: bool = False) -> Iterator[Text]:
    """The batches of an archive, or of an archive inside it: UCI has packed it both ways."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(raw))
    except DAMAGE:
        raise ValueError(f"{name} is a damaged zip file.") from None
    for member in sorted(archive.infolist(), key=lambda member: member.filename):
        last = member.filename.rsplit("/", 1)[-1]
        full = f"{name}, {last}"
        if last.startswith("batch") and last.endswith(".dat"):
            yield full, text(from_zip(archive, member, full, room), full, room)
        elif last.endswith(".zip") and inside:
            raise ValueError(f"{full} is a zip file in a zip file in another: unpack the first.")
        elif last.endswith(".zip"):
            yield from in_zip(from_zip(archive, member, full, room), full, room, inside=True)


def from_zip(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, room: Room) -> bytes:
    if member.flag_bits & ENCRYPTED:
        raise ValueError(f"{name} is encrypted: unpack it and give the folder.")
    if member.compress_type not in METHODS:
        raise ValueError(
            f"{name} is packed by method {member.compress_type} and not deflate (8): unpack it and "
            "give the folder."
        )

    def read(limit: int) -> bytes:
        try:
            with archive.open(member) as file:
                return file.read(limit)
        except DAMAGE:
            raise ValueError(f"{name} is damaged in the zip file.") from None

    return room.take(name, read)


def text(raw: bytes, name: str, room: Room) -> str:
    """UTF-8, perhaps gzipped."""
    if raw[:2] == b"\x1f\x8b":
        raw = room.take(name, lambda limit: unzipped(raw, name, limit))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before, byte = error.object[: error.start], error.object[error.start]
        line = before.count(b"\n") + 1
        raise ValueError(f"{name}: line {line} has the byte {byte:#x}, no UTF-8 text.") from None


def unzipped(raw: bytes, name: str, limit: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            return file.read(limit)
    except DAMAGE:
        raise ValueError(f"{name} is damaged or cut short: it is no whole gzipped text.") from None
