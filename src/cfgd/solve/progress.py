"""A progress line on the terminal: what is done, some numbers, rate and remaining time."""

from __future__ import annotations

import sys

from cfgd.solve import clock

# seconds between two updates: a reader follows ten in a second, and they cost next to nothing
INTERVAL = 0.1
BAR_WIDTH = 20  # characters


class Progress:
    """A line that is rewritten at most ten times a second; `shown` says whether to update it."""

    def __init__(self, total: int, shown: bool, unit: str = "it") -> None:
        self.total, self.shown, self.unit = total, shown, unit
        self.stream = sys.stderr
        self.began = clock.now()
        self.written = -INTERVAL  # seconds from `began` to the last update

    def update(self, done: int, numbers: str, note: str = "") -> None:
        """Rewrite the line, unless that was done less than INTERVAL ago."""
        elapsed = clock.now() - self.began
        if elapsed - self.written >= INTERVAL:
            self._write(elapsed, done, numbers, note)

    def close(self, done: int, numbers: str, note: str = "") -> None:
        """Write the line for the last time and end it."""
        self._write(clock.now() - self.began, done, numbers, note)
        self.stream.write("\n")
        self.stream.flush()

    def _write(self, elapsed: float, done: int, numbers: str, note: str) -> None:
        self.written = elapsed
        length = round(BAR_WIDTH * min(1.0, done / self.total))
        bar = "#" * length + "-" * (BAR_WIDTH - length)
        rate = done / elapsed if elapsed > 0 else 0.0
        left = (self.total - done) / rate if rate > 0 else float("inf")
        self.stream.write(
            f"\r[{bar}] {done}/{self.total}  {numbers}  "
            f"{rate:.3g} {self.unit}/s  {elapsed:.1f} s, at most {left:.1f} s left{note}\x1b[K"
        )
        self.stream.flush()
