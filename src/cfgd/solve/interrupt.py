"""Ctrl-C during a run: the first one ends the run, and the second one ends it at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from cfgd._core.interruptible import is_interruptible

# the module through which every run passes
RUNS = "cfgd.solve.api"


class Interrupt:
    """A context that counts how often Ctrl-C is pressed during a run.

    The first Ctrl-C raises KeyboardInterrupt if it arrives inside a function of the user, which may
    take long; otherwise it only sets `is_asked`, which is read between evaluations. A second one
    raises KeyboardInterrupt at once.

    The handler is installed only in the main thread, as Python requires, and only in place of
    Python's own handler or that of an outer run. A handler of the user is not replaced.

    Parameters
    ----------
    is_single
        Whether the run is that of one process.
    """

    def __init__(self, is_single: bool = True) -> None:
        self.count = 0
        self.is_asked = False
        self.is_single = is_single
        self._is_held = False
        self._previous_handler: Any = None

    @property
    def is_second(self) -> bool:
        """Whether Ctrl-C was pressed more than once."""
        return self.count > 1

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Count Ctrl-C without raising in this context, which is for short pieces of code."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if handler is signal.default_int_handler or _run_of(handler) is not None:
                self._previous_handler = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if self._previous_handler is None:
            return
        if _run_of(signal.getsignal(signal.SIGINT)) is self:  # else the user has set another one
            signal.signal(signal.SIGINT, self._previous_handler)
        outer = _run_of(self._previous_handler)
        if outer is not None and self.count:
            outer.count, outer.is_asked = outer.count + self.count, True
        self._previous_handler = None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count, self.is_asked = self.count + 1, True
        if self._is_held:
            return
        if self.is_second or is_interruptible(frame, RUNS, traces=self.is_single):
            signal.default_int_handler(number, frame)


def _run_of(handler: Any) -> Interrupt | None:
    """Return the `Interrupt` that has installed a handler, if one has."""
    owner = getattr(handler, "__self__", None)
    return owner if isinstance(owner, Interrupt) else None
