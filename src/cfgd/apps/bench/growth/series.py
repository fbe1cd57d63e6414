"""Measurements against a size, and the exponent with which they grow."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cfgd.apps.bench.speed.measure import Row

# Of the sizes, those from this part of the largest on: below, what does not grow counts for more.
UPPER = 0.1
SYMBOLS = {"rows": "m", "columns": "d", "nodes": "s", "settings": "n", "processes": "p"}
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def exponent(sizes: Sequence[float], values: Sequence[float | None]) -> float:
    """a of values = b size^a, by least squares in logarithms over the upper decade.

    NaN where fewer than two sizes are there, or a value is none.

    >>> round(exponent([1, 10, 100, 1000], [5.0, 5.0, 20.0, 200.0]), 9)
    1.0
    """
    upper = [k for k, size in enumerate(sizes) if size >= (1 - 1e-9) * UPPER * max(sizes)]
    there = [(sizes[k], values[k]) for k in upper]
    if len(there) < 2 or any(value is None or not value > 0 for _, value in there):
        return math.nan
    x, y = np.log(np.array(there, float)).T
    x = x - x.mean()
    return float(x @ y / (x @ x))


@dataclasses.dataclass(frozen=True)
class Series:
    """Of a method: what an iteration takes against the sizes, and what the process takes."""

    name: str
    against: str
    fixed: str
    sizes: list[float]
    least: list[float]  # seconds
    median: list[float]
    bytes: list[float | None]
    numbers: list[float] | None = None  # of X, at each size

    @property
    def time(self) -> float:
        """The exponent of the least times: noise only adds to them."""
        return exponent(self.sizes, self.least)

    @property
    def memory(self) -> float:
        return exponent(self.sizes, self.bytes)

    @property
    def per_number(self) -> float:
        """Seconds of an iteration for each number of X, at the largest size."""
        return math.nan if self.numbers is None else self.least[-1] / self.numbers[-1]

    @property
    def bytes_per_number(self) -> float:
        """By which memory grows, over the upper decade: 8 are X itself."""
        upper = next(k for k, n in enumerate(self.sizes) if n >= UPPER * self.sizes[-1] * 0.99)
        first, last = self.bytes[upper], self.bytes[-1]
        if self.numbers is None or first is None or last is None or upper == len(self.sizes) - 1:
            return math.nan
        return (last - first) / (self.numbers[-1] - self.numbers[upper])

    def stored(self) -> dict[str, Any]:
        more = ("time", "memory", "per_number", "bytes_per_number")
        return dataclasses.asdict(self) | {name: getattr(self, name) for name in more}

    def rows(self) -> list[Row]:
        """For the console."""
        symbol, last = SYMBOLS[self.against], f"{self.sizes[-1]:,.0f} {self.against}"
        beside = f" ({self.fixed})" if self.fixed else ""
        words = f"{symbol}^{self.time:.2f}, {shown(self.least[-1])}"
        told = [Row(f"{self.name}{beside}: time", words, f"at {last}")]
        if self.bytes[-1] is not None:
            words = f"{symbol}^{self.memory:.2f}, {self.bytes[-1] / 1e6:,.0f} MB"
            told.append(Row(f"{self.name}: memory", words, f"at {last}"))
        return told


def shown(seconds: float) -> str:
    """With three digits.

    >>> shown(0.0123), shown(4.5e-6)
    ('12.3 ms', '4.5 us')
    """
    size, unit = next((u for u in UNITS if seconds >= u[0]), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"
