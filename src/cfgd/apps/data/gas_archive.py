"""Read the texts of the gas data from a file, a folder or a zip archive.

The bytes that are read and decompressed are bounded: a small archive may expand to more than the
memory holds. Damaged files raise a `ValueError` of one sentence.
"""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from cfgd._core.files import is_there

MEGABYTES = 100  # that may be read and decompressed; the gas data in nested archives has 60
ENCRYPTED = 0x41  # flag bits of encryption and strong encryption
# zipfile decompresses members of other methods without a bound on their size
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# exceptions that zipfile and gzip raise for damaged files
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

Text = tuple[str, str]  # the name for error messages, and the content


class ReadBudget:
    """The number of bytes that may still be read."""

    def __init__(self) -> None:
        self.left = MEGABYTES * 1_000_000

    def read(self, name: str, read: Callable[[int], bytes]) -> bytes:
        """Return what `read(limit)` returns, or raise a `ValueError` if it exceeds the budget."""
        raw = read(self.left + 1)
        if len(raw) > self.left:
            raise ValueError(
                f"{name} expands beyond {MEGABYTES} MB, more than the size of the gas data."
            )
        self.left -= len(raw)
        return raw


def read_texts(path: Path) -> tuple[list[Text], bool]:
    """Return the texts at a path, and whether they are UCI's batches rather than one CSV file."""
    budget, name = ReadBudget(), str(path)
    try:
        if not is_there(path):
            raise ValueError(f"There is no file {path}.")
        if path.is_dir():
            return list(_texts_in_folder(path, budget)), True
        raw = _read_file(path, budget)
    except OSError as error:
        raise ValueError(f"{error.filename or path} cannot be read: {error.strerror}.") from None
    if raw[:2] == b"PK":
        return list(_texts_in_zip(raw, name, budget)), True
    return [(name, _decode(raw, name, budget))], path.suffix == ".dat"


def _read_file(path: Path, budget: ReadBudget) -> bytes:
    with path.open("rb") as file:
        return budget.read(str(path), file.read)


def _texts_in_folder(path: Path, budget: ReadBudget) -> Iterator[Text]:
    for file in sorted(path.rglob("batch*.dat")):
        if file.exists() and not file.is_file():
            kind = "a folder" if file.is_dir() else "not a regular file"
            raise ValueError(f"{file} is {kind}; it must be a file of UCI's data.")
        yield str(file), _decode(_read_file(file, budget), str(file), budget)


def _texts_in_zip(
    raw: bytes, name: str, budget: ReadBudget, is_nested: bool = False
) -> Iterator[Text]:
    """Yield the batches of an archive, or of an archive inside it: UCI has published both."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(raw))
    except DAMAGE:
        raise ValueError(f"{name} is a damaged zip file.") from None
    for member in sorted(archive.infolist(), key=lambda member: member.filename):
        last = member.filename.rsplit("/", 1)[-1]
        full = f"{name}, {last}"
        if last.startswith("batch") and last.endswith(".dat"):
            yield full, _decode(_read_member(archive, member, full, budget), full, budget)
        elif last.endswith(".zip") and is_nested:
            raise ValueError(f"{full} is nested in two zip files: unpack the outer one.")
        elif last.endswith(".zip"):
            inner = _read_member(archive, member, full, budget)
            yield from _texts_in_zip(inner, full, budget, is_nested=True)


def _read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, budget: ReadBudget
) -> bytes:
    if member.flag_bits & ENCRYPTED:
        raise ValueError(f"{name} is encrypted: unpack it and pass the folder.")
    if member.compress_type not in METHODS:
        raise ValueError(
            f"{name} is compressed by method {member.compress_type}, not deflate (8): unpack it "
            "and pass the folder."
        )

    def read(limit: int) -> bytes:
        try:
            with archive.open(member) as file:
                return file.read(limit)
        except DAMAGE:
            raise ValueError(f"{name} is damaged in the zip file.") from None

    return budget.read(name, read)


def _decode(raw: bytes, name: str, budget: ReadBudget) -> str:
    """Return UTF-8 text, which may be gzipped."""
    if raw[:2] == b"\x1f\x8b":
        raw = budget.read(name, lambda limit: _decompress(raw, name, limit))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before, byte = error.object[: error.start], error.object[error.start]
        line = before.count(b"\n") + 1
        raise ValueError(
            f"{name}: line {line} has the byte {byte:#x}, which is not UTF-8."
        ) from None


def _decompress(raw: bytes, name: str, limit: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            return file.read(limit)
    except DAMAGE:
        raise ValueError(
            f"{name} is damaged or truncated: it is not a complete gzip file."
        ) from None
