"""Ctrl-C as a request: the run ends between two chunks and returns what it has computed."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupt:
    """A context in which the first Ctrl-C sets `asked` and a second one raises KeyboardInterrupt.

    The handler is installed in the main thread only, where Python allows it, and only in place of
    Python's own handler: a handler of the user's is left alone.
    """

    def __init__(self) -> None:
        self.asked = False
        self.previous_handler: Any = None

    def __enter__(self) -> Interrupt:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.previous_handler = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if self.previous_handler is not None:
            signal.signal(signal.SIGINT, self.previous_handler)
            self.previous_handler = None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            signal.default_int_handler(number, frame)
        self.asked = True
