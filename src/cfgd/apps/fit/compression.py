"""Streams of the bytes of a file that may be compressed by gzip or Zstandard."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

# the codec of Arrow for each ending, and the first bytes of such files
CODECS = {".gz": ("gzip", b"\x1f\x8b"), ".zst": ("zstd", b"\x28\xb5\x2f\xfd")}


def codec(path: Path) -> tuple[str | None, bytes]:
    """Return the codec that the name of a file asks for and its first bytes, or None for none."""
    return CODECS.get(path.suffix.lower(), (None, b""))


def open_stream(path: Path) -> pa.NativeFile:
    """Open a file for reading; what is read is decompressed, a part at a time."""
    return pa.input_stream(str(path), compression=codec(path)[0])


def first_bytes(path: Path, count: int) -> bytes:
    """Return the first bytes of the content of a file; raise a `ValueError` if it is damaged."""
    try:
        with open_stream(path) as stream:
            return bytes(stream.read(count))
    except OSError:
        if codec(path)[0] is None:
            raise
        raise ValueError(f"{path} is damaged: it cannot be decompressed.") from None
