"""Parse the gas data; an invalid line raises a `ValueError` that names it."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cfgd.apps.data.gas_archive import Text, read_texts

COLUMNS = 129  # 128 features and the target
GASES = ("1", "2", "3", "4", "5", "6")  # their codes in UCI's files
ETHANOL = "1"  # the gas that the paper uses


def read(path: Path) -> np.ndarray:
    """Return the table in a CSV file, or in the batch*.dat files of a folder or zip."""
    texts, are_batches = read_texts(path)
    if are_batches:
        return _parse_batches(texts, str(path))
    [(name, content)] = texts
    return _parse_csv(content, name)


def _numbered_lines(content: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, with their numbers from 1 on."""
    for number, line in enumerate(io.StringIO(content, newline=None), 1):
        if line.strip():
            yield number, line


def _parse_csv(content: str, name: str) -> np.ndarray:
    """Parse rows of 129 numbers without a header."""
    rows = []
    for number, line in _numbered_lines(content):
        fields = line.split(",")
        if len(fields) != COLUMNS:
            raise ValueError(
                f"{name}: line {number} has {len(fields)} columns; {COLUMNS} are needed, "
                "128 features and then the target."
            )
        rows.append(_parse_numbers(fields, f"{name}: line {number}, column"))
    if not rows:
        raise ValueError(f"{name} has no rows.")
    return np.array(rows)


def _parse_numbers(fields: list[str], place: str) -> np.ndarray:
    """Parse all fields at once and, if that fails, one by one to name the invalid one."""
    try:
        values = np.array([float(field) for field in fields])
        if np.isfinite(values).all() and not any("_" in field for field in fields):
            return values
    except ValueError:
        pass
    return np.array([_parse_number(field, place, column) for column, field in enumerate(fields, 1)])


def _parse_number(field: str, place: str, column: int) -> float:
    shown = field.strip()
    try:
        value = float("" if "_" in field else field)  # Python reads 1_0 as 10
    except ValueError:
        raise ValueError(f"{place} {column} is the text {shown[:20]!r}, not a number.") from None
    if not math.isfinite(value):
        raise ValueError(f"{place} {column} is {shown[:20]}, not a finite number.")
    return value


def _parse_batches(batches: list[Text], name: str) -> np.ndarray:
    """Parse the rows of Ethanol in lines `gas;concentration 1:value ... 128:value`."""
    if not batches:
        raise ValueError(f"{name} holds no batch*.dat files.")
    rows = []
    for batch, content in batches:
        for number, line in _numbered_lines(content):
            place = f"{batch}: line {number}"
            gas, _, rest = (piece.strip() for piece in line.partition(";"))
            if not rest:
                raise ValueError(
                    f"{place} has no concentration ('gas;concentration 1:value ...'); UCI's "
                    "dataset 270 has it, dataset 224 does not."
                )
            if gas not in GASES:
                raise ValueError(f"{place} is of gas {gas[:20]!r}; the gases are 1 to 6.")
            if gas == ETHANOL:
                rows.append(_parse_line(rest, place))
    if not rows:
        raise ValueError(f"{name} has no rows of Ethanol (gas 1).")
    return np.array(rows)


def _parse_line(rest: str, place: str) -> np.ndarray:
    """Return the features and the target of `concentration 1:value ... 128:value`."""
    target, *pairs = rest.split()
    if len(pairs) != COLUMNS - 1:
        raise ValueError(f"{place} has {len(pairs)} features; 128 are needed.")
    values = []
    for column, pair in enumerate(pairs, 1):
        index, _, value = pair.partition(":")
        if index != str(column):
            raise ValueError(f"{place} has {pair[:20]!r} where feature {column} belongs.")
        values.append(value)
    features = _parse_numbers(values, f"{place}, feature")
    return np.append(features, _parse_number(target, f"{place}, column", COLUMNS))
