"""Which table a file is, by its name and by how it begins."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from cfgd._core.files import reason
from cfgd.apps.fit.arrow_table import Feather, Parquet
from cfgd.apps.fit.csv_table import Csv
from cfgd.apps.fit.npz_table import Npz
from cfgd.apps.fit.table import Table

# how names end, and how such files begin
FORMATS: dict[str, tuple[type[Csv | Parquet | Feather | Npz], bytes]] = {
    ".csv": (Csv, b""),
    ".csv.gz": (Csv, b"\x1f\x8b"),
    ".parquet": (Parquet, b"PAR1"),
    ".feather": (Feather, b"ARROW1"),
    ".npz": (Npz, b"PK"),
}
SIGNS = {
    b"\x1f\x8b": "gzip",
    b"PAR1": "Parquet",
    b"ARROW1": "Feather",
    b"FEA1": "Feather of version 1",
    b"PK\x03\x04": "a zip archive, as NPZ is",
}
HEAD = 64  # bytes


def open_table(path: Path) -> Table:
    """The table, or one sentence."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; a file is wanted.")
    if not path.exists():
        raise ValueError(f"There is no file {path}.")
    ending = ending_of(path, list(FORMATS))
    kind, sign = FORMATS[ending]
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
        inside = head if ending != ".csv.gz" or not head.startswith(sign) else _unpacked(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {reason(error)}.") from None
    if not inside.strip():
        raise ValueError(f"{path} is empty.")
    if not head.startswith(sign) or (kind is Csv and _is_binary(inside)):
        raise ValueError(f"{path} is not {kind.format}, as its name says: it {_begins(inside)}.")
    return kind(path)


def ending_of(path: Path, endings: list[str]) -> str:
    """The longest of the endings that the name has."""
    found = [ending for ending in endings if path.name.lower().endswith(ending)]
    if not found:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise ValueError(f"{path}: the name must end in {known}.")
    return max(found, key=len)


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read(HEAD)
    except (OSError, EOFError, zlib.error):
        raise ValueError(f"{path} is damaged: it cannot be unpacked.") from None


def _is_binary(head: bytes) -> bool:
    """Whether there is what no text has; NUL in one of two bytes is UTF-16."""
    return any(byte < 9 or 13 < byte < 32 for byte in head)


def _begins(head: bytes) -> str:
    for sign, name in SIGNS.items():
        if head.startswith(sign):
            return f"is {name}"
    return f"begins with {head[:12]!r}"
