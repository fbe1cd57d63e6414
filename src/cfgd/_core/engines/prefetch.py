"""Read the next block in a thread while the current one is used."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from cfgd._core.interruptible import interruptible

T = TypeVar("T")


def prefetch(blocks: Iterable[T]) -> Iterator[T]:
    """Iterate over `blocks`, reading the next one in a thread while the current one is used.

    Never more than these two blocks exist. An error of the thread is raised to the caller.
    """
    ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
    wanted, is_closed = threading.Semaphore(1), threading.Event()

    def read() -> None:
        try:
            for block in blocks:
                ready.put(("block", block))
                del block
                wanted.acquire()
                if is_closed.is_set():
                    return
            ready.put(("end", None))
        except BaseException as error:  # raised again in the thread of the caller
            ready.put(("error", error))

    wanted.acquire()
    threading.Thread(target=read, daemon=True).start()
    try:
        while True:
            kind, found = interruptible(_next_item, ready)
            if kind == "error":
                raise found
            if kind == "end":
                return
            wanted.release()
            yield found
            del found
    finally:  # after an error or Ctrl-C of the caller, too: the thread ends after its block
        is_closed.set()
        wanted.release()


def _next_item(ready: queue.SimpleQueue[Any]) -> Any:
    """Wait for an item of a queue.

    A signal that comes just before the thread sleeps does not wake it, so that the wait is made of
    short ones.
    """
    while True:
        with contextlib.suppress(queue.Empty):
            return ready.get(timeout=0.1)
