"""Passes over the processes of `cfgd launch` or a cluster: each reads its share of the parts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import jax

from cfgd._core.engines.base import Engine, Part
from cfgd._core.engines.local import SerialEngine
from cfgd._core.engines.processes import ProcessesEngine
from cfgd._core.process_group import ProcessGroup
from cfgd.apps.fit.memory import MEMORY_SHARE, free_memory
from cfgd.apps.fit.workers import Report, Workers

T = TypeVar("T")
# Parts for each process, so that files or row groups of unlike sizes make similar shares.
PARTS_PER_PROCESS = 4


class ProcessWorkers(Workers):
    """The processes that `cfgd.distributed.start` has joined; each has consecutive parts.

    All processes call the same passes in the same order, and have the same results.
    """

    is_alone = False

    def __init__(self, index: int, processes: int) -> None:
        super().__init__()
        self.index, self.processes = index, processes
        self.count = PARTS_PER_PROCESS * processes
        self.of_blocks = {"distributed": True}
        self.group = SameErrors(jax.devices())

    def share(self, parts: Sequence[T]) -> Sequence[T]:
        begin, end = (k * len(parts) // self.processes for k in (self.index, self.index + 1))
        return parts[begin:end]

    def engine(self, parts: Sequence[Part]) -> Engine:
        return ProcessesEngine(SerialEngine(parts), self.group)

    def together(self) -> AbstractContextManager[Any]:
        return self.group.propagate_errors()

    def memory_budget(self, given: float | None) -> float:
        """Return the bytes for the rows of each process, which all agree on."""
        own = MEMORY_SHARE * free_memory() / self.processes if given is None else given
        return float(self.group.gather([own]).min())

    def reporting(self, report: Report) -> Report:
        """Return what takes the rows of this process for as many of all others."""
        return lambda rows: report(rows * self.processes)


class SameErrors(ProcessGroup):
    """Processes that all raise the error of one of them, so that the first can print it."""

    @contextlib.contextmanager
    def propagate_errors(self) -> Iterator[None]:
        own: Exception | None = None
        try:
            yield
        except Exception as error:
            own = error
        errors = [error for error in self.gather_objects(own) if error is not None]
        if own is not None:
            raise own
        if errors:
            raise errors[0]
