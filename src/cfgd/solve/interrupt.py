"""Ctrl-C asks a run to end: the compiled loop is never torn, and what was computed is kept."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupt:
    """Inside `with`, the first Ctrl-C is remembered as `asked`; a second one raises as usual.

    Only where Python's own handler is in place, and in the main thread: what a user has installed
    stays.
    """

    def __init__(self) -> None:
        self.asked = False
        self.before: Any = None

    def __enter__(self) -> Interrupt:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *error: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)
            self.before = None

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            signal.default_int_handler(number, frame)
        self.asked = True
