"""Timing of solvers: the shortest of several calls, and solvers that are stopped by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

REPEATS = 20
MAX_SECONDS = 1.0  # limit for all repeats of one call together


def time_shortest(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a call and the seconds of the shortest of up to `REPEATS` calls.

    The first call is not timed, because it may compile. The shortest time is reported, because
    other programs on the machine can only increase it.
    """
    return time_shortest_interleaved(call)[0]


def time_shortest_interleaved(
    *calls: Callable[[], Any], seconds: float | None = None
) -> list[tuple[Any, float]]:
    """Time several calls in turns, so that other load on the machine affects all of them.

    `seconds` limits the time of all repeats together; the default is `MAX_SECONDS` per call.
    """
    results = [call() for call in calls]
    times: list[list[float]] = [[] for _ in calls]
    limit = len(calls) * MAX_SECONDS if seconds is None else seconds
    while len(times[0]) < REPEATS and sum(map(sum, times)) < limit:
        for j, call in enumerate(calls):
            began = time.perf_counter()
            results[j] = call()
            times[j].append(time.perf_counter() - began)
    return list(zip(results, map(min, times), strict=True))


class TimeLimitError(Exception):
    """Raised inside the objective to stop a solver that has no time limit."""


class TimedBest:
    """The lowest value within a time limit, and the time at which a reference value was reached."""

    def __init__(self, seconds: float, reference: float) -> None:
        self.seconds, self.reference = seconds, reference
        self.least, self.reached = float("inf"), float("nan")
        self.x: Any = None
        self.began = time.perf_counter()

    def record(self, value: float, x: Any) -> None:
        """Record an evaluation; raise TimeLimitError if the time limit has passed."""
        now = time.perf_counter() - self.began
        if now > self.seconds:
            raise TimeLimitError
        if value <= self.reference and not self.reached <= now:
            self.reached = now
        if value < self.least:
            self.least, self.x = value, x.copy()
