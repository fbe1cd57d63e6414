"""One measurement in a new process: `python -m ...growth.fresh_process NAME SIZE REPEATS`.

The process runs on one core. Time is the CPU time of an iteration, minimum and median over the
repeats. Memory is the peak of the process minus its memory after the imports: data, copies and
compiled programs.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cfgd.apps.bench.growth.jobs import JOBS

STATUS = Path("/proc/self/status")
TIMEOUT = 300.0  # seconds


def resident_bytes(field: str) -> float | None:
    """Return the memory now (VmRSS) or at its peak (VmHWM); None if the system has no /proc."""
    found = re.search(rf"{field}:\s+(\d+)", STATUS.read_text()) if STATUS.exists() else None
    return None if found is None else 1024.0 * int(found[1])


def measure(name: str, size: int, repeats: int) -> dict[str, Any]:
    """Return seconds and bytes of a job at a size."""
    before = resident_bytes("VmRSS")
    runs = JOBS[name].make(size)
    times = [(seconds(runs.long), seconds(runs.short)) for _ in range(repeats)]
    peak = resident_bytes("VmHWM")
    added = None if peak is None or before is None else peak - before

    def per_iteration(average: Callable[[list[float]], float]) -> float:
        long, short = (average(list(column)) for column in zip(*times, strict=True))
        return (long - short) / runs.iterations

    return {
        "least": per_iteration(min),
        "median": per_iteration(statistics.median),
        "bytes": added,
    }


def seconds(run: Callable[[], Any]) -> float:
    """Return the CPU seconds of a run: on one core, its wall time without other load."""
    gc.collect()  # frees the data of the previous run, so that the peak is that of one run
    began = time.process_time()
    run()
    return time.process_time() - began


def measure_in_fresh_process(name: str, size: int, repeats: int) -> dict[str, Any]:
    """Return what `measure` returns in a new process on one core."""
    command = [
        sys.executable,
        "-m",
        "cfgd.apps.bench.growth.fresh_process",
        name,
        str(size),
        str(repeats),
    ]
    with one_core():
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT)
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Pin processes that are started inside to one core, if the system supports it.

    With several cores, threads would wait for each other whenever other programs run.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(all_cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cores)


if __name__ == "__main__":
    import jax

    jax.numpy.zeros(1).block_until_ready()  # the memory of the JAX runtime is not part of a job
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
