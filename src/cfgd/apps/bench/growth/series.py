"""A series of measurements at several sizes, and the exponent of its growth."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cfgd.apps.bench.speed.measure import ReportRow

# Exponents are fitted to sizes of at least this times the largest: constant costs dominate below.
UPPER = 0.1
SYMBOLS = {"rows": "m", "columns": "d", "nodes": "s", "settings": "n", "processes": "p"}
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def exponent(sizes: Sequence[float], values: Sequence[float | None]) -> float:
    """Return the exponent a of values = b size^a, fitted in logarithms over the upper decade.

    NaN if there are fewer than two sizes, or a value is None or not positive.

    >>> round(exponent([1, 10, 100, 1000], [5.0, 5.0, 20.0, 200.0]), 9)
    1.0
    """
    upper = [k for k, size in enumerate(sizes) if size >= (1 - 1e-9) * UPPER * max(sizes)]
    points = [(sizes[k], values[k]) for k in upper]
    if len(points) < 2 or any(value is None or not value > 0 for _, value in points):
        return math.nan
    x, y = np.log(np.array(points, float)).T
    x = x - x.mean()
    return float(x @ y / (x @ x))


@dataclasses.dataclass(frozen=True)
class Series:
    """The time of an iteration and the memory of its process at several sizes."""

    name: str
    against: str
    fixed: str
    sizes: list[float]
    least: list[float]  # seconds
    median: list[float]
    bytes: list[float | None]
    numbers: list[float] | None = None  # entries of X at each size

    @property
    def time(self) -> float:
        """Return the exponent of the smallest times, which are affected least by other load."""
        return exponent(self.sizes, self.least)

    @property
    def memory(self) -> float:
        """Return the exponent of the memory."""
        return exponent(self.sizes, self.bytes)

    @property
    def per_number(self) -> float:
        """Return the seconds of an iteration for each entry of X, at the largest size."""
        return math.nan if self.numbers is None else self.least[-1] / self.numbers[-1]

    @property
    def bytes_per_number(self) -> float:
        """Return the bytes of memory for each entry of X, including the 8 bytes of X itself."""
        upper = next(k for k, n in enumerate(self.sizes) if n >= UPPER * self.sizes[-1] * 0.99)
        first, last = self.bytes[upper], self.bytes[-1]
        if self.numbers is None or first is None or last is None or upper == len(self.sizes) - 1:
            return math.nan
        return (last - first) / (self.numbers[-1] - self.numbers[upper])

    def as_dict(self) -> dict[str, Any]:
        """Return fields and derived numbers for the JSON file."""
        derived = ("time", "memory", "per_number", "bytes_per_number")
        return dataclasses.asdict(self) | {name: getattr(self, name) for name in derived}

    def rows(self) -> list[ReportRow]:
        """Return the rows of the report: growth of time and memory, and the largest values."""
        symbol, last = SYMBOLS[self.against], f"{self.sizes[-1]:,.0f} {self.against}"
        fixed = f" ({self.fixed})" if self.fixed else ""
        measured = f"{symbol}^{self.time:.2f}, {format_seconds(self.least[-1])}"
        rows = [ReportRow(f"{self.name}{fixed}: time at {last}", measured)]
        if self.bytes[-1] is not None:
            measured = f"{symbol}^{self.memory:.2f}, {self.bytes[-1] / 1e6:,.0f} MB"
            rows.append(ReportRow(f"{self.name}: memory at {last}", measured))
        return rows


def format_seconds(seconds: float) -> str:
    """Return a time with its unit, to three digits.

    >>> format_seconds(0.0123), format_seconds(4.5e-6)
    ('12.3 ms', '4.5 us')
    """
    size, unit = next((u for u in UNITS if seconds >= u[0]), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"
