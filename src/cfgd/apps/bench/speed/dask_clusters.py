"""Passes of `Blocks` on Dask clusters of one and two workers, and the same pass in one process.

All processes have one thread. The passes take turns. The CPU time of the slowest process is
reported in addition to the wall time, because load on the machine hardly affects it.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cfgd
from cfgd._core.blas_threads import one_blas_thread
from cfgd._core.engines.local import SerialEngine
from cfgd.apps.bench.speed.measure import ReportRow, at_least, at_most
from cfgd.objectives.linear.block_source import Block
from cfgd.objectives.linear.blocks import MEMORY
from cfgd.objectives.linear.dask_rows import parts_of_dask

D = 100
CHUNK = 50_000  # rows, 40 MB
SMALL_BLOCKS = 100
ROUNDS = 50


def rows(gigabytes: float = 2.0, parquet: float = 4.0, turns: int = 5) -> Iterator[ReportRow]:
    """Measure passes over generated rows and over Parquet files, of these sizes in GB."""
    yield ReportRow("load average at the start", f"{os.getloadavg()[0]:.1f}")
    with one_blas_thread(), _cluster(1) as one, _cluster(2) as two:
        yield from _rounds(two)
        yield from _passes(one, two, gigabytes, turns)
    yield from _files(parquet)


@contextlib.contextmanager
def _cluster(workers: int, memory: str | None = None) -> Iterator[Any]:
    """Return the client of a cluster of workers with one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit=memory or "auto",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _rounds(client: Any) -> Iterator[ReportRow]:
    """Measure the overhead of a round, with almost no computation."""
    import dask.array as da

    X = np.random.default_rng(0).normal(size=(10 * SMALL_BLOCKS, 10))
    y = (X[:, 0] > np.random.default_rng(1).normal(size=len(X))).astype(float)
    f = cfgd.Blocks(da.from_array(X, chunks=(10, 10)), y, l2=1.0, client=client)
    w = np.zeros(10)
    parts = range(len(f.stream.engine.parts))  # type: ignore[attr-defined]
    seconds = _in_turns(
        {
            "round": lambda: f.stream.engine.sum(f.stream.model.evaluate, w),
            "tasks": lambda: client.gather(client.map(abs, parts, pure=False)),
        },
        ROUNDS,
    )
    what = f"round of {SMALL_BLOCKS} blocks of ten rows, two workers: time"
    yield at_most(f"{what}, minimum", 1e3 * min(seconds["round"]), 20, "ms")
    yield ReportRow("... median", f"{1e3 * statistics.median(seconds['round']):.1f} ms")
    least, median = 1e3 * min(seconds["tasks"]), 1e3 * statistics.median(seconds["tasks"])
    yield ReportRow(
        f"... {len(parts)} empty tasks alone: minimum, median",
        f"{least:.1f}, {median:.1f} ms",
    )


def made_rows(count: int) -> tuple[Any, Any]:
    """Return Dask arrays of rows and labels that are generated at each read."""
    import dask.array as da

    X = da.random.default_rng(0).standard_normal((count, D), chunks=(CHUNK, D))
    return X, X.map_blocks(_labels, drop_axis=1, dtype=float)


def _labels(X: np.ndarray, block_id: tuple[int, ...] = (0,)) -> np.ndarray:
    random = np.random.default_rng(block_id[0])
    return (X @ _truth() + random.logistic(size=len(X)) > 0).astype(float)


def _truth() -> np.ndarray:
    return np.sin(np.arange(D)) / 3


def _passes(one: Any, two: Any, gigabytes: float, turns: int) -> Iterator[ReportRow]:
    """Measure passes over generated rows, half of them for each of two workers."""
    X, y = made_rows(int(gigabytes * 1e9 / 8 / D))
    alone, both = (cfgd.Blocks(X, y, l2=1.0, client=client) for client in (one, two))
    parts = parts_of_dask(X, Block(None, y), None, MEMORY, len(alone.stream.engine.parts))  # type: ignore[attr-defined]
    here, model, w = SerialEngine(parts), alone.stream.model, np.zeros(D)
    cpu: dict[str, list[float]] = {"here": [], "one": [], "two": []}

    def on(name: str, client: Any, engine: Any) -> Callable[[], None]:
        def job() -> None:
            before = _cpu_seconds(client)
            engine.sum(model.evaluate, w)
            cpu[name].append(max(b - a for a, b in zip(before, _cpu_seconds(client), strict=True)))

        return job

    jobs = {
        "here": on("here", None, here),
        "one": on("one", one, alone.stream.engine),
        "two": on("two", two, both.stream.engine),
    }
    seconds = _in_turns(jobs, turns)
    for name, where in (("here", "in one process"), ("one", "one worker"), ("two", "two workers")):
        least, median = min(seconds[name]), statistics.median(seconds[name])
        yield ReportRow(
            f"pass over {gigabytes:g} GB, {where}: minimum, median, CPU time",
            f"{least:.2f}, {median:.2f}, {min(cpu[name]):.2f} s",
        )
    yield at_least(
        "time with one worker / two workers, minimum",
        min(seconds["one"]) / min(seconds["two"]),
        1.6,
    )
    turns_of = [a / b for a, b in zip(seconds["one"], seconds["two"], strict=True)]
    yield ReportRow("... median over the turns", f"{statistics.median(turns_of):.2f} x")
    yield ReportRow("... the same for CPU times", f"{min(cpu['one']) / min(cpu['two']):.2f} x")
    yield at_most(
        "time with one worker / in one process, minimum",
        min(seconds["one"]) / min(seconds["here"]),
        1.05,
    )
    turns_of = [a / b for a, b in zip(seconds["one"], seconds["here"], strict=True)]
    yield ReportRow("... median over the turns", f"{statistics.median(turns_of):.2f} x")
    yield ReportRow("... the same for CPU times", f"{min(cpu['one']) / min(cpu['here']):.2f} x")


def _files(gigabytes: float) -> Iterator[ReportRow]:
    """Fit Parquet files on two workers with 1 GB each."""
    import pyarrow as pa
    from pyarrow import parquet

    names = [f"x{j}" for j in range(D)]
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        for k in range(max(2, round(gigabytes * 1e9 / (8 * D * 5 * CHUNK)))):
            X = np.random.default_rng(k).standard_normal((5 * CHUNK, D))
            columns = {**dict(zip(names, X.T, strict=True)), "y": _labels(X, (k,))}
            path = Path(folder) / f"{k:03}.parquet"
            parquet.write_table(pa.table(columns), path, row_group_size=CHUNK, compression=None)
            count += len(X)
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e9
        with _cluster(2, "1GB") as client:
            tick = time.perf_counter()
            f = cfgd.Blocks(folder, target="y", client=client)
            solution = cfgd.minimize(f, np.zeros(D))
            seconds = time.perf_counter() - tick
            peaks = client.run(_peak)
        assert f.rows == count
    what = f"{size:.1f} GB of Parquet, two workers of 1 GB: passes, time"
    yield ReportRow(what, f"{f.passes}, {seconds:.0f} s", "converged", solution.success)
    yield at_most("... peak memory of a worker", max(peaks.values()) / 1e9, 1.0, "GB")
    # the standard error of a coefficient is 2 / sqrt(rows) at least
    error = float(np.abs(solution.x - _truth()).max()) * count**0.5
    yield at_most("... error of the coefficients times sqrt(number of rows)", error, 15, "")


def _in_turns(jobs: dict[str, Callable[[], Any]], turns: int) -> dict[str, list[float]]:
    """Return the times of all runs of the jobs except the first."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(turns + 1):
        for name, job in jobs.items():
            tick = time.perf_counter()
            job()
            if turn:
                seconds[name].append(time.perf_counter() - tick)
    return seconds


def _cpu_seconds(client: Any) -> list[float]:
    """Return the CPU seconds so far of each worker, or of this process."""
    if client is None:
        return [time.process_time()]
    found = client.run(time.process_time)
    return [found[address] for address in sorted(found)]


def _peak() -> float:
    """Return the peak memory of this process in bytes; getrusage would include its parent."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return 1024.0 * int(found[1]) if found else float("nan")
