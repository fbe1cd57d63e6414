"""Passes on the workers of a Dask cluster: one round of a few tasks for each pass.

A task is a pass over a part, which may have many blocks, so that a round takes few tasks. A worker
holds only what its parts are made of, which the scheduler knows: if a worker dies, its parts are
computed by the others, and a worker that joins takes over some of their parts.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd._core.engines.base import FAN_IN, Arrays, Engine, Part, Pass, total
from cfgd._core.engines.dask_graph import GraphPart
from cfgd._core.engines.lost_cluster import LostClusterError
from cfgd._core.interruptible import interruptible

# The least number of parts, so that workers that join have something to do, and the number for each
# thread, so that a slow thread delays the round by less than half. A task costs a millisecond.
MIN_PARTS, PARTS_PER_THREAD = 8, 2
# Bytes of all results up to which they are added in this process: a second level of tasks costs
# 10 ms, in which a network of 1 Gbit/s transfers about as many bytes.
ADDED_HERE = 1e6
# Seconds of a pass after which it is checked whether there are workers: a new worker process needs
# a few seconds to start, and up to 20 on a busy machine.
PATIENCE = 30.0


def parts_for(client: Any) -> int:
    """Return into how many parts data should be split for the workers that there are now."""
    threads = sum(client.nthreads().values())
    return max(MIN_PARTS, PARTS_PER_THREAD * threads)


class DaskEngine(Engine):
    """Computes passes on the workers of `client`, a `distributed.Client`."""

    def __init__(self, parts: Sequence[Part], client: Any) -> None:
        self.client = client
        self.values = [list(getattr(part, "futures", {}).values()) for part in parts]
        bare = [part.without_futures() if isinstance(part, GraphPart) else part for part in parts]
        self.parts = client.map(_same, bare, pure=False)
        # bytes of the result of a function, once it is known
        self._sizes: dict[str, int] = {}

    def map(self, function: Pass, *args: Any) -> Iterator[Any]:
        with self._computing(function, args) as futures:
            results = interruptible(self._gather, futures)
        yield from results

    def sum(self, function: Pass, *args: Any) -> Arrays:
        size = self._sizes.get(function.__name__, np.inf)
        with self._computing(function, args) as futures:
            if size * len(futures) > ADDED_HERE:
                # as `total` does here, so that the result is the same
                while len(futures) > FAN_IN:
                    groups = [futures[i : i + FAN_IN] for i in range(0, len(futures), FAN_IN)]
                    futures = self.client.map(total, groups, pure=False)
            found = total(interruptible(self._gather, futures))
        self._sizes[function.__name__] = sum(array.nbytes for array in found)
        return found

    def _gather(self, futures: list[Any]) -> list[Any]:
        """Return the results of tasks; warn if there are no workers to compute them."""
        is_done = threading.Event()
        threading.Thread(target=self._watch, args=(is_done,), daemon=True).start()
        try:
            return list(self.client.gather(futures))
        finally:
            is_done.set()

    def _watch(self, is_done: threading.Event) -> None:
        while not is_done.wait(PATIENCE):
            if self.client.status == "running" and not self.client.nthreads():
                checks.warn(
                    "The Dask cluster has no workers. The run waits until one joins; Ctrl-C ends "
                    "it with the best point so far."
                )
                return

    @contextlib.contextmanager
    def _computing(self, function: Pass, args: tuple[Any, ...]) -> Iterator[list[Any]]:
        """Start the tasks of a pass; cancel them after an error or Ctrl-C."""
        from distributed import CancelledError, KilledWorker
        from distributed.comm.core import CommClosedError

        futures: list[Any] = []
        try:
            futures = self.client.map(
                _apply, self.parts, self.values, function=function, args=args, pure=False
            )
            yield futures
        except KilledWorker as error:
            raise LostClusterError(
                "Several workers of the Dask cluster died while they computed the same blocks, "
                "most often because a block takes more memory than they have: use smaller chunks, "
                f"or workers with more memory. ({error})"
            ) from error
        except (CancelledError, CommClosedError, OSError) as error:
            if not _is_lost(self.client, error):
                raise
            raise LostClusterError(
                "The scheduler of the Dask cluster cannot be reached any more, so the run ends. "
                "With `checkpoint=` the same call resumes from there on another cluster."
            ) from error
        except BaseException:
            with contextlib.suppress(Exception):
                self.client.cancel(futures)
            raise


def _is_lost(client: Any, error: BaseException) -> bool:
    """Return whether an error comes from the connection to the scheduler, not from a block."""
    return client.status != "running" or not isinstance(error, OSError)


def _same(part: Part) -> Part:
    return part


def _apply(part: Any, values: list[Any], *, function: Pass, args: tuple[Any, ...]) -> Any:
    """Compute a pass over a part, on a worker."""
    blocks: Iterable[Any] = part(values) if isinstance(part, GraphPart) else part()
    return function(iter(blocks), *args)
