"""Rows of the report, and interleaved timing."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

HEADER = f"{'quantity':<66} {'measured':>22}  goal"


@dataclasses.dataclass(frozen=True)
class ReportRow:
    """A measured number, its goal, and whether the goal is met (None if there is none)."""

    what: str
    measured: str
    goal: str = ""
    holds: bool | None = None

    def line(self) -> str:
        """Return the row as a line of the console."""
        mark = {True: "met", False: "NOT MET", None: ""}[self.holds]
        return f"{self.what:<66} {self.measured:>22}  {self.goal:<20} {mark}"


def time_in_turns(jobs: Mapping[str, Callable[[], Any]], repeats: int = 7) -> dict[str, float]:
    """Return the median time of each job; they run in turns, so that load affects all of them."""
    for job in jobs.values():  # compiles
        job()
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            tick = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - tick)
    return {name: statistics.median(times) for name, times in seconds.items()}


def at_least(what: str, ratio: float, bound: float) -> ReportRow:
    return ReportRow(what, f"{ratio:.1f} x", f"at least {bound:g} x", ratio >= bound)


def at_most(what: str, ratio: float, bound: float, unit: str = "x") -> ReportRow:
    return ReportRow(what, f"{ratio:.2f} {unit}", f"at most {bound:g} {unit}", ratio <= bound)
