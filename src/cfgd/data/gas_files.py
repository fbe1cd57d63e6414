"""Reading the gas data from files, and saying in one sentence what is wrong with a file."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = 129  # 128 features and the target
ETHANOL = "1"  # the gas of the paper, by its number in UCI's files


def read(path: Path) -> Any:
    """The table of a CSV file, or of the batch*.dat files in a folder or zip."""
    if not path.exists():
        raise ValueError(f"There is no file {path}.")
    if path.is_dir() or path.suffix == ".dat":
        files = [path] if path.is_file() else sorted(path.rglob("batch*.dat"))
        batches = [(file.name, file.read_text(encoding="utf-8")) for file in files]
        return from_batches(batches, str(path))
    raw = path.read_bytes()
    if raw[:2] == b"PK":
        return from_batches(list(in_zip(raw, str(path))), str(path))
    return from_csv(text(raw, str(path)), str(path))


def text(raw: bytes, name: str) -> str:
    try:
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError):
        raise ValueError(f"{name} is neither text nor whole gzipped text.") from None


def in_zip(raw: bytes, name: str) -> Iterator[tuple[str, str]]:
    """The batches of an archive, or of an archive inside it: UCI has packed it both ways."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for member in sorted(archive.namelist()):
                last = member.rsplit("/", 1)[-1]
                if last.startswith("batch") and last.endswith(".dat"):
                    yield last, text(archive.read(member), f"{name}, {last}")
                elif last.endswith(".zip"):
                    yield from in_zip(archive.read(member), f"{name}, {last}")
    except zipfile.BadZipFile:
        raise ValueError(f"{name} is a damaged zip file.") from None


def from_csv(content: str, name: str) -> Any:
    """Rows of 129 numbers; no header."""
    rows = []
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        fields = line.split(",")
        if len(fields) != COLUMNS:
            raise ValueError(
                f"{name}: row {number} has {len(fields)} columns; {COLUMNS} are needed, "
                "128 features and then the target."
            )
        rows.append(as_numbers(fields, name, number))
    if not rows:
        raise ValueError(f"{name} has no rows.")
    return np.array(rows)


def as_numbers(fields: list[str], name: str, row: int) -> list[float]:
    values = []
    for column, field in enumerate(fields, 1):
        try:
            values.append(float(field))
        except ValueError:
            shown = field.strip()[:20]
            raise ValueError(
                f"{name}: row {row}, column {column} is the text {shown!r}, not a number."
            ) from None
    return values


def from_batches(batches: list[tuple[str, str]], name: str) -> Any:
    """The Ethanol rows of lines `gas;concentration 1:value ... 128:value`."""
    if not batches:
        raise ValueError(f"{name} holds no batch*.dat files.")
    rows = []
    for batch, content in batches:
        for number, line in enumerate(content.splitlines(), 1):
            if line.split(";", 1)[0].strip() == ETHANOL:
                rows.append(from_line(line, f"{name}, {batch}", number))
            elif line.strip() and ";" not in line:
                raise ValueError(
                    f"{name}, {batch}: row {number} has no concentration ('gas;concentration "
                    "1:value ...'); UCI's dataset 270 has it, 224 has not."
                )
    if not rows:
        raise ValueError(f"{name} has no rows of Ethanol (gas 1).")
    return np.array(rows)


def from_line(line: str, name: str, row: int) -> list[float]:
    target, *pairs = line.split(";", 1)[1].split()
    if len(pairs) != COLUMNS - 1:
        raise ValueError(f"{name}: row {row} has {len(pairs)} features; 128 are needed.")
    values = []
    for column, pair in enumerate(pairs, 1):
        index, _, value = pair.partition(":")
        if index != str(column):
            raise ValueError(f"{name}: row {row} has {pair[:20]!r} where feature {column} belongs.")
        values.append(value)
    return as_numbers([*values, target], name, row)
