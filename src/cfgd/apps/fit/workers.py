"""Where the passes over the parts of a table are computed: here, in processes, or by Dask workers.

A pass is a function of a part of the rows: a file, a range of its bytes or some of its row groups.
Its results are added, or merged, in the order of the parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from cfgd._core.engines.base import Engine, Part
from cfgd._core.engines.local import SerialEngine
from cfgd.apps.fit.memory import MEMORY_SHARE, free_memory
from cfgd.apps.fit.processes import process

T = TypeVar("T")
Report = Callable[[int], None]  # called with the number of rows that were read


def ignore_rows(rows: int) -> None:
    """Report nothing."""


class Workers:
    """This process, which computes one part after the other.

    `count` is the number of parts into which a table should be divided, and `processes` that of the
    processes that have rows in memory; `is_alone` says that there are no others. `of_blocks` are
    the arguments by which `Blocks` computes its passes alike.
    """

    count = processes = 1
    is_alone = True
    of_blocks: dict[str, Any]

    def __init__(self) -> None:
        self.of_blocks = {}

    def share(self, parts: Sequence[T]) -> Sequence[T]:
        """Return those of all parts that an engine of this process is made of."""
        return parts

    def engine(self, parts: Sequence[Part]) -> Engine:
        """Return the engine of the `share` of this process, and of those of the others."""
        return SerialEngine(parts)

    def items(
        self, parts: Sequence[T], function: Callable[..., Iterable[Any]], *args: Any
    ) -> Iterator[Any]:
        """Iterate over the items of function(part, *args) of all parts, in their order."""
        return (item for part in parts for item in function(part, *args))

    def together(self) -> AbstractContextManager[Any]:
        """Return a context in which an error of one process is raised on all."""
        return contextlib.nullcontext()

    def memory_budget(self, given: float | None) -> float:
        """Return the bytes for the rows of one: given ones, or a share of those that are free."""
        return MEMORY_SHARE * free_memory() if given is None else given

    def reporting(self, report: Report) -> Report:
        """Return what a pass calls with the rows that it has read."""
        return report


THIS_PROCESS = Workers()


@contextlib.contextmanager
def workers_of(dask: str | None) -> Iterator[Workers]:
    """Connect to the Dask cluster, if one is given; else to the processes of which this is one."""
    if dask is not None:
        from cfgd.apps.fit.dask_workers import dask_workers

        with dask_workers(dask) as workers:
            yield workers
        return
    index, count = process()
    if count == 1:
        yield THIS_PROCESS
        return
    from cfgd.apps.fit.process_workers import ProcessWorkers  # which needs JAX

    yield ProcessWorkers(index, count)
