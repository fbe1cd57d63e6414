"""Time: the least of a few runs, and runs that end when theirs is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

REPEATS = 20
TOGETHER = 1.0  # seconds that repeating may take


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns and its seconds, compiling apart: it is made once before.

    The least of a few: whatever else a machine does makes a call longer and never shorter.
    """
    found = call()
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < TOGETHER:
        began = time.perf_counter()
        found = call()
        times.append(time.perf_counter() - began)
    return found, min(times)


def timed_together(*calls: Callable[[], Any]) -> list[tuple[Any, float]]:
    """The same of several calls in turns, so that what else is going on hits all alike."""
    found = [call() for call in calls]
    times: list[list[float]] = [[] for _ in calls]
    while len(times[0]) < REPEATS and sum(map(sum, times)) < len(calls) * TOGETHER:
        for j, call in enumerate(calls):
            began = time.perf_counter()
            found[j] = call()
            times[j].append(time.perf_counter() - began)
    return list(zip(found, map(min, times), strict=True))


class TimeOverError(Exception):
    """Ends a solver that has no clock of its own."""


class Clock:
    """The least value seen within some seconds, and when a reference value was reached."""

    def __init__(self, seconds: float, reference: float) -> None:
        self.seconds, self.reference = seconds, reference
        self.least, self.reached = float("inf"), float("nan")
        self.x: Any = None
        self.began = time.perf_counter()

    def look(self, value: float, x: Any) -> None:
        """Told of every value and where it is; ends the run if it comes too late."""
        now = time.perf_counter() - self.began
        if now > self.seconds:
            raise TimeOverError
        if value <= self.reference and not self.reached <= now:
            self.reached = now
        if value < self.least:
            self.least, self.x = value, x.copy()
