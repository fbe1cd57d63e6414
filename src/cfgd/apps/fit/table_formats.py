"""Open a table by the ending of its name, after a check that its first bytes agree."""

from __future__ import annotations

import gzip
import stat
import zlib
from pathlib import Path

from cfgd._core.files import reason
from cfgd.apps.fit.arrow_table import Feather, Parquet
from cfgd.apps.fit.csv_table import Csv
from cfgd.apps.fit.npz_table import Npz
from cfgd.apps.fit.table import Table

# for each ending the class of the table and the first bytes of such files
FORMATS: dict[str, tuple[type[Csv | Parquet | Feather | Npz], bytes]] = {
    ".csv": (Csv, b""),
    ".csv.gz": (Csv, b"\x1f\x8b"),
    ".parquet": (Parquet, b"PAR1"),
    ".feather": (Feather, b"ARROW1"),
    ".npz": (Npz, b"PK"),
}
# first bytes of files by which an error message names their true format
SIGNATURES = {
    b"\x1f\x8b": "gzip",
    b"PAR1": "Parquet",
    b"ARROW1": "Feather",
    b"FEA1": "Feather of version 1",
    b"PK\x03\x04": "a zip archive, as NPZ is",
}
HEAD = 64  # bytes that are enough to recognise a format


def open_table(path: Path, memory: float) -> Table:
    """Open the table in a file; raise a `ValueError` if it is not what its name says.

    `memory` is the number of bytes that reading may take.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise ValueError(f"There is no file {path}.") from None
    except OSError as error:  # a name that is too long, a folder that may not be read
        raise ValueError(f"{path} cannot be read: {reason(error)}.") from None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
        raise ValueError(f"{path} is {kind}, not a file.")
    ending = matching_ending(path, list(FORMATS))
    table_class, signature = FORMATS[ending]
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
        is_compressed = ending == ".csv.gz" and head.startswith(signature)
        content = _decompressed_head(path) if is_compressed else head
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {reason(error)}.") from None
    if not content.strip():
        raise ValueError(f"{path} is empty.")
    if not head.startswith(signature) or (table_class is Csv and _is_binary(content)):
        raise ValueError(
            f"{path} is not {table_class.format}, as its name says: it {_describe(content)}."
        )
    return table_class(path, memory)


def matching_ending(path: Path, endings: list[str]) -> str:
    """Return the longest of the endings that the name has; raise a `ValueError` for none."""
    found = [ending for ending in endings if path.name.lower().endswith(ending)]
    if not found:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise ValueError(f"{path}: the name must end in {known}.")
    return max(found, key=len)


def _decompressed_head(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read(HEAD)
    except (OSError, EOFError, zlib.error):
        raise ValueError(f"{path} is damaged: it cannot be decompressed.") from None


def _is_binary(head: bytes) -> bool:
    """Return whether there are control characters, such as NUL in UTF-16, unknown in CSV."""
    return any(byte < 9 or 13 < byte < 32 for byte in head)


def _describe(head: bytes) -> str:
    for signature, name in SIGNATURES.items():
        if head.startswith(signature):
            return f"is {name}"
    return f"begins with {head[:12]!r}"
