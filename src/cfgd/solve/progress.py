"""A live line on the terminal: iteration, value, norm and rate."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Progress:
    """Writes at most ten times a second, so that watching costs nothing; to be told if `shown`."""

    def __init__(self, total: int, shown: bool, stream: TextIO | None = None) -> None:
        self.total, self.shown = total, shown
        self.stream = stream or sys.stderr
        self.began = time.perf_counter()
        self.written = -1.0

    def update(self, iteration: int, value: float, norm: float, note: str = "") -> None:
        now = time.perf_counter() - self.began
        if now - self.written >= 0.1:
            self._write(now, iteration, value, norm, note)

    def close(self, iteration: int, value: float, norm: float, note: str = "") -> None:
        self._write(time.perf_counter() - self.began, iteration, value, norm, note)
        self.stream.write("\n")
        self.stream.flush()

    def _write(self, now: float, iteration: int, value: float, norm: float, note: str) -> None:
        self.written = now
        done = round(20 * min(1.0, iteration / self.total))
        bar = "#" * done + "-" * (20 - done)
        rate = iteration / now if now > 0 else 0.0
        left = (self.total - iteration) / rate if rate > 0 else float("inf")
        self.stream.write(
            f"\r[{bar}] {iteration}/{self.total}  value {value:.6g}  norm {norm:.3g}  "
            f"{rate:.3g} it/s  {now:.1f} s, at most {left:.1f} s left{note}\x1b[K"
        )
        self.stream.flush()
