"""What two processes on two cores are worth: logistic regression, the time of an iteration.

Each process is pinned to a core of its own and has one thread; so has the one process that they are
compared with. The runs are in turns, so that all meet the same noise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cfgd.apps.bench.speed.measure import Row, at_least
from cfgd.apps.launch import launch

M, D = 2_000_000, 100
TURNS = 3
CPU = "CPU time of "
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
# first and last count of iterations: the difference has neither compilation nor the start in it
COUNTS = {"auto": (1, 3), "gradient descent": (4, 16), "adaptive terminal": (1, 3)}


def rows(m: int = M) -> Iterator[Row]:
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        yield Row("two processes on two cores", "there is one core, or no pinning")
        return
    load = os.getloadavg()[0]
    yield Row(f"m = {m:,}, d = {D}, logistic: load of the machine at the start", f"{load:.1f}")
    best: dict[int, dict[str, float]] = {1: {}, 2: {}}
    for _ in range(TURNS):
        for count in (1, 2):
            for name, seconds in _measured(count, m).items():
                best[count][name] = min(seconds, best[count].get(name, seconds))
    for name in COUNTS:
        one, two = best[1][name], best[2][name]
        yield Row(f"an iteration of {name}: one process, two", f"{one:.2f} s, {two:.2f} s")
        yield at_least(f"... one process on one core / two on two: {name}", one / two, 1.6)
        ratio = best[1][CPU + name] / best[2][CPU + name]
        yield Row(
            "... the same of CPU time of a process, which other work does not touch",
            f"{ratio:.1f} x",
        )


def _measured(count: int, m: int) -> dict[str, float]:
    """Seconds of an iteration of each method, in so many processes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "seconds.json"
        before = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, "1"))
        try:
            code = launch(
                [sys.executable, "-m", __name__, str(out), str(m)], count, only_errors=True
            )
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
        if code:
            raise subprocess.CalledProcessError(code, __name__)
        return {name: float(seconds) for name, seconds in json.loads(out.read_text()).items()}


def _run(out: Path, m: int) -> None:
    """In one of the processes, pinned before anything has threads."""
    from cfgd.distributed import INDEX

    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(os.environ[INDEX])]})

    import numpy as np

    import cfgd

    me = cfgd.distributed.start()
    random = np.random.default_rng(me.index)
    X = random.normal(size=(m // me.count, D))
    y = random.random(len(X)) < 1 / (1 + np.exp(-X[:, 0]))
    data = cfgd.distributed.rows(X, y)
    del X
    f = cfgd.LinearModel(data.X, data.y, l2=1e-3)
    methods = {
        "auto": cfgd.Auto(),
        "gradient descent": cfgd.GradientDescent(step=cfgd.FixedStep(1e-7)),
        "adaptive terminal": cfgd.AdaptiveTerminal(gamma=-0.1, nodes=1, step=cfgd.FixedStep(1e-7)),
    }
    seconds: dict[str, float] = {}
    for name, method in methods.items():
        times, of_cpu = [], []
        for most in (COUNTS[name][0], *COUNTS[name]):  # the first one compiles
            tick, own = time.perf_counter(), time.process_time()
            ends = cfgd.minimize(f, np.zeros(D), method, max_iterations=most, tolerance=0.0)
            times.append(time.perf_counter() - tick)
            of_cpu.append(time.process_time() - own)
            assert ends.iterations == most, (name, ends.iterations)
        first, last = COUNTS[name]
        seconds[name] = (times[2] - times[1]) / (last - first)
        seconds[CPU + name] = (of_cpu[2] - of_cpu[1]) / (last - first)
    if me.index == 0:
        out.write_text(json.dumps(seconds))


if __name__ == "__main__":
    _run(Path(sys.argv[1]), int(sys.argv[2]))
