"""A series of measurements against a size, and the exponent with which they grow."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cfgd.apps.bench.speed.measure import ReportRow

# Exponents are fitted to the sizes from this part of the largest on: constant costs dominate below.
UPPER = 0.1
SYMBOLS = {"rows": "m", "columns": "d", "nodes": "s", "settings": "n", "processes": "p"}
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def exponent(sizes: Sequence[float], values: Sequence[float | None]) -> float:
    """Return a of values = b size^a, by least squares in logarithms over the upper decade.

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
    """Time of an iteration of a method, and memory of its process, against sizes."""

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
        """Return the exponent of the least times, which noise affects least."""
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
        """Return by how many bytes memory grows for each entry of X, of which X itself takes 8."""
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
        """Return the rows of the console: time and memory."""
        symbol, last = SYMBOLS[self.against], f"{self.sizes[-1]:,.0f} {self.against}"
        fixed = f" ({self.fixed})" if self.fixed else ""
        measured = f"{symbol}^{self.time:.2f}, {format_seconds(self.least[-1])}"
        rows = [ReportRow(f"{self.name}{fixed}: time", measured, f"at {last}")]
        if self.bytes[-1] is not None:
            measured = f"{symbol}^{self.memory:.2f}, {self.bytes[-1] / 1e6:,.0f} MB"
            rows.append(ReportRow(f"{self.name}: memory", measured, f"at {last}"))
        return rows


def format_seconds(seconds: float) -> str:
    """Return a time with its unit, to three digits.

    >>> format_seconds(0.0123), format_seconds(4.5e-6)
    ('12.3 ms', '4.5 us')
    """
    size, unit = next((u for u in UNITS if seconds >= u[0]), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"
