"""What the lines of the gas data mean, and one sentence for each line that is wrong."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cfgd.apps.data.gas_archive import Text, texts

COLUMNS = 129  # 128 features and the target
GASES = ("1", "2", "3", "4", "5", "6")  # by their numbers in UCI's files
ETHANOL = "1"  # the gas of the paper


def read(path: Path) -> Any:
    """The table of a CSV file, or of the batch*.dat files in a folder or zip."""
    found, batches = texts(path)
    if batches:
        return from_batches(found, str(path))
    [(name, content)] = found
    return from_csv(content, name)


def lines(content: str) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, numbered as an editor does."""
    for number, line in enumerate(io.StringIO(content, newline=None), 1):
        if line.strip():
            yield number, line


def from_csv(content: str, name: str) -> Any:
    """Rows of 129 numbers; no header."""
    rows = []
    for number, line in lines(content):
        fields = line.split(",")
        if len(fields) != COLUMNS:
            raise ValueError(
                f"{name}: line {number} has {len(fields)} columns; {COLUMNS} are needed, "
                "128 features and then the target."
            )
        rows.append(as_numbers(fields, f"{name}: line {number}, column"))
    if not rows:
        raise ValueError(f"{name} has no rows.")
    return np.array(rows)


def as_numbers(fields: list[str], place: str) -> Any:
    """All of a line at once; one by one to say which of them is wrong."""
    try:
        values = np.array([float(field) for field in fields])
        if np.isfinite(values).all() and not any("_" in field for field in fields):
            return values
    except ValueError:
        pass
    return np.array([as_number(field, place, column) for column, field in enumerate(fields, 1)])


def as_number(field: str, place: str, column: int) -> float:
    shown = field.strip()
    try:
        value = float("" if "_" in field else field)  # Python reads 1_0 as 10
    except ValueError:
        raise ValueError(f"{place} {column} is the text {shown[:20]!r}, not a number.") from None
    if not math.isfinite(value):
        raise ValueError(f"{place} {column} is {shown[:20]}, not a finite number.")
    return value


def from_batches(batches: list[Text], name: str) -> Any:
    """The Ethanol rows of lines `gas;concentration 1:value ... 128:value`."""
    if not batches:
        raise ValueError(f"{name} holds no batch*.dat files.")
    rows = []
    for batch, content in batches:
        for number, line in lines(content):
            place = f"{batch}: line {number}"
            gas, _, rest = (piece.strip() for piece in line.partition(";"))
            if not rest:
                raise ValueError(
                    f"{place} has no concentration ('gas;concentration 1:value ...'); UCI's "
                    "dataset 270 has it, 224 has not."
                )
            if gas not in GASES:
                raise ValueError(f"{place} is of gas {gas[:20]!r}; the gases are 1 to 6.")
            if gas == ETHANOL:
                rows.append(from_line(rest, place))
    if not rows:
        raise ValueError(f"{name} has no rows of Ethanol (gas 1).")
    return np.array(rows)


def from_line(rest: str, place: str) -> Any:
    """Features and target of `concentration 1:value ... 128:value`."""
    target, *pairs = rest.split()
    if len(pairs) != COLUMNS - 1:
        raise ValueError(f"{place} has {len(pairs)} features; 128 are needed.")
    values = []
    for column, pair in enumerate(pairs, 1):
        index, _, value = pair.partition(":")
        if index != str(column):
            raise ValueError(f"{place} has {pair[:20]!r} where feature {column} belongs.")
        values.append(value)
    features = as_numbers(values, f"{place}, feature")
    return np.append(features, as_number(target, f"{place}, column", COLUMNS))
