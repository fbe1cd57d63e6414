"""One measurement, in its own process: `python -m cfgd.apps.bench.growth.one NAME SIZE REPEATS`.

It runs on one core. Time is the processor's for an iteration, the least and the median of some
repeats. Memory is what the process has taken at most beyond what it had when all was imported and
nothing made: data, copies, programs.
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
LIMIT = 300.0  # seconds


def resident(field: str) -> float | None:
    """Bytes, now (VmRSS) or at most (VmHWM); None where the system does not say."""
    found = re.search(rf"{field}:\s+(\d+)", STATUS.read_text()) if STATUS.exists() else None
    return None if found is None else 1024.0 * int(found[1])


def measure(name: str, size: int, repeats: int) -> dict[str, Any]:
    before = resident("VmRSS")
    whole, start, iterations = JOBS[name].make(size)
    times = [(seconds(whole), seconds(start)) for _ in range(repeats)]
    most = resident("VmHWM")
    grown = None if most is None or before is None else most - before

    def each(of: Callable[[list[float]], float]) -> float:
        long, short = (of(list(column)) for column in zip(*times, strict=True))
        return (long - short) / iterations

    return {"least": each(min), "median": each(statistics.median), "bytes": grown}


def seconds(run: Callable[[], Any]) -> float:
    """Of the processor: on one core those of the clock, without what others take of it."""
    gc.collect()  # a run lets go of its data when this comes by: memory is to be that of one
    began = time.process_time()
    run()
    return time.process_time() - began


def in_fresh_process(name: str, size: int, repeats: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "cfgd.apps.bench.growth.one", name, str(size), str(repeats)]
    with one_core():
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT)
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """What is started runs on one core, where the system can say so.

    Threads that wait for one another would measure who else is there.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(all_of_them)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


if __name__ == "__main__":
    import jax

    jax.numpy.zeros(1).block_until_ready()  # what the runtime takes is no part of a job
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
