"""Count the seconds that JAX spends on tracing and compiling.

JAX reports the duration of every trace, lowering and compilation when it ends (`jax.monitoring`).
The reports overlap: tracing a function includes tracing the jitted functions that it calls. What is
counted is therefore the union of the reported intervals, for each thread on its own.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator

import jax

# JAX's events of tracing, lowering and compiling. Others are no elapsed time, for example
# /jax/compilation_cache/compile_time_saved_sec.
EVENTS = "/jax/core/compile/"
# Intervals that a longer one may still turn out to include; a trace rarely includes a hundred.
MAX_INTERVALS = 10_000


class Compilations(threading.local):
    """The intervals in which a thread compiled, disjoint and in the order of time."""

    def __init__(self) -> None:
        self.intervals: deque[tuple[float, float]] = deque(maxlen=MAX_INTERVALS)
        self.seconds = 0.0

    def add(self, start: float, end: float) -> None:
        # Events of one thread are nested or disjoint, and an inner one is reported first. A start
        # is known up to the delay of its report, so an overlap means that the earlier one is inner.
        while self.intervals and self.intervals[-1][1] > start:
            inner_start, inner_end = self.intervals.pop()
            self.seconds -= inner_end - inner_start
        self.intervals.append((start, end))
        self.seconds += end - start


_compilations = Compilations()
_lock = threading.Lock()
_is_listening = False


def _record(event: str, duration_secs: float, **metadata: object) -> None:
    if event.startswith(EVENTS):
        end = time.perf_counter()
        _compilations.add(end - duration_secs, end)


def seconds_compiling() -> float:
    """Return the seconds that this thread has spent on compiling since the first call.

    The difference between two calls is the time spent on compiling in between.
    """
    global _is_listening
    with _lock:
        if not _is_listening:
            jax.monitoring.register_event_duration_secs_listener(_record)
            _is_listening = True
    return _compilations.seconds


@contextlib.contextmanager
def not_counted() -> Iterator[None]:
    """Do not count what is compiled inside `with`: code of the user's own, such as a callback."""
    before = _compilations.seconds
    try:
        yield
    finally:
        _compilations.seconds = before
