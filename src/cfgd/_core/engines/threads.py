"""Passes in several threads of this process: NumPy and the readers of files release the GIL."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from cfgd._core.blas_threads import one_blas_thread
from cfgd._core.engines.base import Engine, Part, Pass
from cfgd._core.interruptible import interruptible


class ThreadsEngine(Engine):
    """Computes `threads` parts at a time; at most so many results wait for the next one."""

    def __init__(self, parts: Sequence[Part], threads: int) -> None:
        self.parts, self.threads = parts, threads

    def map(self, function: Pass, *args: Any) -> Iterator[Any]:
        parts, running = iter(self.parts), collections.deque[Future[Any]]()
        with one_blas_thread(), ThreadPoolExecutor(self.threads) as pool:
            try:
                for part in parts:
                    running.append(pool.submit(_apply, function, part, args))
                    if len(running) > self.threads:
                        yield _result(running.popleft())
                while running:
                    yield _result(running.popleft())
            finally:  # after an error or Ctrl-C, too
                for future in running:
                    future.cancel()


def _apply(function: Pass, part: Part, args: tuple[Any, ...]) -> Any:
    return function(iter(part()), *args)


def _result(future: Future[Any]) -> Any:
    """Wait for a result, in short waits: a Ctrl-C does not end a long one on every platform."""
    while True:
        try:
            return interruptible(future.result, 0.1)
        except TimeoutError:
            if future.done():
                return future.result()
