"""The speedup of two processes on two cores: the time of an iteration of logistic regression.

Every process is pinned to a core of its own and has one thread; so has the single process of the
comparison. The runs take turns, so that other load affects all of them.
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

from cfgd.apps.bench.speed.measure import ReportRow, at_least
from cfgd.apps.launch import launch

M, D = 2_000_000, 100
TURNS = 3
CPU = "CPU time of "
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
# Iterations of a short and a long run: their difference excludes compilation and the start.
ITERATIONS = {"auto": (1, 3), "gradient descent": (4, 16), "adaptive terminal": (1, 3)}


def rows(m: int = M) -> Iterator[ReportRow]:
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        yield ReportRow(
            "two processes on two cores", "not measured: needs two cores and CPU affinity"
        )
        return
    load = os.getloadavg()[0]
    yield ReportRow(f"logistic regression, {m:,} x {D}: load average at the start", f"{load:.1f}")
    least: dict[int, dict[str, float]] = {1: {}, 2: {}}
    for _ in range(TURNS):
        for count in (1, 2):
            for name, seconds in _seconds_per_iteration(count, m).items():
                least[count][name] = min(seconds, least[count].get(name, seconds))
    for name in ITERATIONS:
        one, two = least[1][name], least[2][name]
        yield ReportRow(
            f"time of an iteration of {name}: one process, two", f"{one:.2f} s, {two:.2f} s"
        )
        yield at_least("... one process on one core / two processes on two cores", one / two, 1.6)
        ratio = least[1][CPU + name] / least[2][CPU + name]
        yield ReportRow(
            "... the same for CPU times",
            f"{ratio:.1f} x",
        )


def _seconds_per_iteration(count: int, m: int) -> dict[str, float]:
    """Return the seconds of an iteration of each method in `count` processes."""
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
    """Run in one of the processes; pin it to a core before any library starts threads."""
    from cfgd.distributed import INDEX

    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(os.environ[INDEX])]})

    import numpy as np

    import cfgd

    process = cfgd.distributed.start()
    random = np.random.default_rng(process.index)
    X = random.normal(size=(m // process.count, D))
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
        times, cpu_times = [], []
        for limit in (ITERATIONS[name][0], *ITERATIONS[name]):  # the first one compiles
            tick, own = time.perf_counter(), time.process_time()
            solution = cfgd.minimize(f, np.zeros(D), method, max_iterations=limit, tolerance=0.0)
            times.append(time.perf_counter() - tick)
            cpu_times.append(time.process_time() - own)
            assert solution.iterations == limit, (name, solution.iterations)
        first, last = ITERATIONS[name]
        seconds[name] = (times[2] - times[1]) / (last - first)
        seconds[CPU + name] = (cpu_times[2] - cpu_times[1]) / (last - first)
    if process.index == 0:
        out.write_text(json.dumps(seconds))


if __name__ == "__main__":
    _run(Path(sys.argv[1]), int(sys.argv[2]))
