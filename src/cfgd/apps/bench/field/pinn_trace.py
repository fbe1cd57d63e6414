"""The time limit of a run of the group `pinn`, and the points that are recorded during the run."""

from __future__ import annotations

import time

import numpy as np

from cfgd.apps.bench.field.timing import TimeLimitError

# Points are recorded at the fractions 2^(-k/2) of the time limit, from one thousandth on.
SHARES = tuple(2.0 ** (-k / 2) for k in range(20, -1, -1))


class Trace:
    """The best point so far, and copies of it at fixed fractions of the time limit.

    Errors are computed from the copies after the run, so that they cost the run nothing.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.restart()

    def restart(self) -> None:
        """Discard all points and restart the clock, after a run that compiled."""
        self.least, self.x = float("inf"), np.zeros(0)
        self.kept: list[tuple[float, float, np.ndarray]] = []  # seconds, loss, x
        self._passed = 0  # number of these fractions that have passed
        self.began = time.perf_counter()

    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def record(self, value: float, x: np.ndarray) -> None:
        """Record an evaluation; raise TimeLimitError if it ended after the time limit."""
        now = self.elapsed()
        if now > self.seconds:
            raise TimeLimitError
        self.improve(value, x)
        passed = sum(share * self.seconds <= now for share in SHARES)
        if passed > self._passed:
            self.kept.append((now, self.least, self.x))
            self._passed = passed

    def improve(self, value: float, x: np.ndarray) -> None:
        """Keep the point if it is the best so far."""
        if value < self.least or not self.x.size:
            self.least, self.x = value, np.array(x)

    def points(self) -> list[tuple[float, float, np.ndarray]]:
        """Return the recorded points, and the best point at the end."""
        return [*self.kept, (self.seconds, self.least, self.x)]
