"""Passes on the workers of a Dask cluster: `cfgd fit --dask`, a round of tasks for each pass."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from cfgd._core.engines.base import Engine, Part, Pass
from cfgd._core.engines.dask_cluster import DaskEngine, parts_for
from cfgd._core.extras import import_extra
from cfgd._core.version import __version__
from cfgd.apps.fit.memory import ASSUMED_MEMORY, MEMORY_SHARE
from cfgd.apps.fit.workers import Report, Workers, ignore_rows

T = TypeVar("T")
LOCAL = "local"
# Seconds to wait for the scheduler, and for the first worker: a job may be in a queue, but after
# five minutes the user should be told why nothing happens.
CONNECT, FIRST_WORKER = 30, 300


class DaskWorkers(Workers):
    """The workers of `client`, a `distributed.Client`, which read the parts anew in every pass."""

    is_alone = False
    processes = 0  # none has rows in memory

    def __init__(self, client: Any) -> None:
        super().__init__()
        self.client, self.count = client, parts_for(client)
        self.of_blocks = {"client": client}
        self.report: Report = ignore_rows

    def engine(self, parts: Sequence[Part]) -> Engine:
        return ReportingEngine(parts, self.client, self.report)

    def items(
        self, parts: Sequence[T], function: Callable[..., Iterable[Any]], *args: Any
    ) -> Iterator[Any]:
        """Iterate over the items of all parts; those of as many as there are threads are here."""
        window = sum(self.client.nthreads().values())
        for i in range(0, len(parts), window):
            items_of = [Items(part, function, args) for part in parts[i : i + window]]
            engine = DaskEngine(items_of, self.client)
            for items in engine.map(list):
                yield from items

    def reporting(self, report: Report) -> Report:
        """Return what the workers call: nothing; the engine reports the rows of a part."""
        self.report = report
        return ignore_rows

    def memory_budget(self, given: float | None) -> float:
        """Return the bytes for a thread of the smallest worker."""
        if given is not None:
            return given
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [one["memory_limit"] / one["nthreads"] for one in workers if one["memory_limit"]]
        return MEMORY_SHARE * min(limits, default=ASSUMED_MEMORY)


class Items:
    """The items of a part as the engines take it."""

    def __init__(self, part: Any, function: Callable[..., Iterable[Any]], args: Any) -> None:
        self.part, self.function, self.args = part, function, args

    def __call__(self) -> Iterable[Any]:
        return self.function(self.part, *self.args)


class ReportingEngine(DaskEngine):
    """An engine that reports the rows of a part when the pass over it is done."""

    def __init__(self, parts: Sequence[Part], client: Any, report: Report) -> None:
        super().__init__(parts, client)
        self.rows = [getattr(part, "rows", None) or 0 for part in parts]
        self.report = report

    @contextlib.contextmanager
    def _computing(self, function: Pass, args: tuple[Any, ...]) -> Iterator[list[Any]]:
        with super()._computing(function, args) as futures:
            for future, rows in zip(futures, self.rows, strict=True):
                future.add_done_callback(lambda _, rows=rows: self.report(rows))
            yield futures


@contextlib.contextmanager
def dask_workers(address: str) -> Iterator[DaskWorkers]:
    """Connect to the scheduler at an address; "local" starts a worker for each core here.

    Raises
    ------
    ValueError
        If no scheduler answers, no worker comes, or workers cannot import the same cfgd.
    """
    distributed = import_extra("distributed", "--dask", "dask")
    for name in ("distributed", "asyncio"):  # an error and Ctrl-C are said once, in a sentence
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as stack:
        if address == LOCAL:
            with _without_ctrl_c():
                cluster = distributed.LocalCluster(
                    n_workers=_cores(),
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
                client = stack.enter_context(distributed.Client(stack.enter_context(cluster)))
        else:
            try:
                client = stack.enter_context(distributed.Client(address, timeout=CONNECT))
            except (OSError, TimeoutError, ValueError) as error:
                raise ValueError(
                    f"--dask: no scheduler answers at {address}: give its address, such as "
                    f"tcp://host:8786, or {LOCAL} for the cores of this machine. ({error})"
                ) from None
        try:
            client.wait_for_workers(1, timeout=FIRST_WORKER)
        except TimeoutError:
            raise ValueError(
                f"--dask: the scheduler at {address} has had no worker for {FIRST_WORKER} seconds."
            ) from None
        _check_versions(client)
        yield DaskWorkers(client)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Start processes and threads that do not get Ctrl-C; for this one it waits until the end.

    A terminal sends it to all processes: the workers would print tracebacks, where this process is
    to cancel their tasks and to end them.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which unblocks the signal when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _check_versions(client: Any) -> None:
    for worker, version in client.run(_version, on_error="return").items():
        if isinstance(version, ImportError):
            raise ValueError(
                f"--dask: the worker {worker} cannot import cfgd: install cfgd {__version__} with "
                f"the extras fit and dask there. ({version})"
            )
        if isinstance(version, str) and version != __version__:
            raise ValueError(f"--dask: the worker {worker} has cfgd {version}, not {__version__}.")


def _version() -> str:
    from cfgd.apps.fit import run  # noqa: F401 - needs the extra fit

    return __version__
