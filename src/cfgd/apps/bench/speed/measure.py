"""Time things in turns."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Row:
    """A measured number and what it should be: `wanted` is the sentence, `holds` its verdict."""

    what: str
    measured: str
    wanted: str = ""
    holds: bool | None = None

    def line(self) -> str:
        mark = {True: "holds", False: "DOES NOT HOLD", None: ""}[self.holds]
        return f"{self.what:<66} {self.measured:>22}  {self.wanted:<20} {mark}"


def in_turns(jobs: Mapping[str, Callable[[], Any]], repeats: int = 7) -> dict[str, float]:
    """Median seconds of each job, taken in turns so that all meet the same noise."""
    for job in jobs.values():  # compile
        job()
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            tick = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - tick)
    return {name: statistics.median(times) for name, times in seconds.items()}


def at_least(what: str, ratio: float, bound: float) -> Row:
    return Row(what, f"{ratio:.1f} x", f"at least {bound:g} x", ratio >= bound)


def at_most(what: str, ratio: float, bound: float, unit: str = "x") -> Row:
    return Row(what, f"{ratio:.2f} {unit}", f"at most {bound:g} {unit}", ratio <= bound)
