"""A progress line on the terminal: iteration, value, gradient norm, rate and remaining time."""

from __future__ import annotations

import sys

from cfgd.solve import clock

# seconds between two updates: a reader follows ten in a second, and they cost next to nothing
INTERVAL = 0.1
BAR_WIDTH = 20  # characters


class Progress:
    """A line that is rewritten at most ten times a second; `shown` says whether to update it."""

    def __init__(self, total: int, shown: bool) -> None:
        self.total, self.shown = total, shown
        self.stream = sys.stderr
        self.began = clock.now()
        self.written = -INTERVAL  # seconds from `began` to the last update

    def update(self, iteration: int, value: float, norm: float, note: str = "") -> None:
        """Rewrite the line, unless that was done less than INTERVAL ago."""
        elapsed = clock.now() - self.began
        if elapsed - self.written >= INTERVAL:
            self._write(elapsed, iteration, value, norm, note)

    def close(self, iteration: int, value: float, norm: float, note: str = "") -> None:
        """Write the line for the last time and end it."""
        self._write(clock.now() - self.began, iteration, value, norm, note)
        self.stream.write("\n")
        self.stream.flush()

    def _write(self, elapsed: float, iteration: int, value: float, norm: float, note: str) -> None:
        self.written = elapsed
        done = round(BAR_WIDTH * min(1.0, iteration / self.total))
        bar = "#" * done + "-" * (BAR_WIDTH - done)
        rate = iteration / elapsed if elapsed > 0 else 0.0
        left = (self.total - iteration) / rate if rate > 0 else float("inf")
        self.stream.write(
            f"\r[{bar}] {iteration}/{self.total}  value {value:.6g}  norm {norm:.3g}  "
            f"{rate:.3g} it/s  {elapsed:.1f} s, at most {left:.1f} s left{note}\x1b[K"
        )
        self.stream.flush()
