"""The jobs of the growth measurements: an iteration of a method on data of a given size.

A job generates its data, compiles, and returns runs that can be timed.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import cfgd
from cfgd.apps.data.network_functions import FUNCTIONS

MIN_SECONDS = 0.15  # duration of a timed run, long compared with the resolution of the CPU clock
BLOCK_BYTES = 16e6  # memory of `Blocks`


class TimedRuns(NamedTuple):
    """Two runs to time; `long` makes `iterations` more iterations than `short`.

    Their difference excludes the fixed cost of a run.
    """

    long: Callable[[], Any]
    short: Callable[[], Any]
    iterations: int


class Job(NamedTuple):
    """A method on data; the quantity `against` (rows, columns, ...) takes the values `sizes`."""

    make: Callable[[int], TimedRuns]
    against: str
    sizes: tuple[int, ...]
    fixed: str  # the other sizes
    numbers: Callable[[int], float] | None = None  # entries of X at a size


def decades(least: int) -> tuple[int, ...]:
    """Return sizes over two decades, by factors of about the root of ten.

    >>> decades(100)
    (100, 320, 1000, 3200, 10000)
    """
    return tuple(round(least * factor) for factor in (1, 3.2, 10, 32, 100))


def iterate(objective: Any, x0: np.ndarray, method: Any, solve: Any = cfgd.minimize) -> TimedRuns:
    """Return runs with enough iterations to be timed."""

    def run(limit: int) -> int:
        solution = solve(
            objective, x0, method, max_iterations=limit, tolerance=0.0, every=1_000_000
        )
        return int(np.max(solution.iterations))

    def timed(limit: int) -> tuple[int, float]:
        gc.collect()
        began = time.process_time()
        return run(limit), time.process_time() - began

    run(8)  # compiles
    _, fixed_cost = timed(8)
    for limit in (32, 128, 512, 2048, 8192, 32768, 131072):
        iterations, seconds = timed(limit)
        if seconds - fixed_cost > MIN_SECONDS or iterations < limit:
            break
    few = iterations // 4
    return TimedRuns(lambda: run(iterations), lambda: run(few), iterations - few)


def levenberg_marquardt(objective: Any) -> TimedRuns:
    """Return whole runs of Levenberg-Marquardt to convergence."""

    def run() -> int:
        solution = cfgd.minimize(
            objective, np.zeros(objective.dimension), cfgd.Auto("levenberg_marquardt")
        )
        return solution.iterations

    return TimedRuns(run, lambda: None, run())


def classification(m: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return standard normal X and labels of a logistic model."""
    random = np.random.default_rng(0)
    X = random.standard_normal((m, d))
    score = X @ random.standard_normal(d) * (2 / np.sqrt(d))
    return X, (score + random.logistic(size=m) > 0).astype(float)


def gradient_step(m: int, d: int) -> TimedRuns:
    """Return gradient steps on a logistic model, so small that no run converges."""
    method = cfgd.GradientDescent(step=cfgd.FixedStep(1e-4 / m))
    return iterate(cfgd.LinearModel(*classification(m, d)), np.zeros(d), method)


def quadratic(d: int) -> TimedRuns:
    # badly scaled, so that no run converges while it is timed
    random, S = np.random.default_rng(0), np.geomspace(1, 1e3, d)
    U = random.standard_normal((d, d)) / np.sqrt(d)
    f = cfgd.Quadratic((U @ U.T + 1e-3 * np.eye(d)) * S * S[:, None], random.standard_normal(d))
    return iterate(f, np.ones(d), cfgd.AdaptiveTerminal(gamma=-0.25))


def least_squares(m: int, d: int) -> TimedRuns:
    X, y = classification(m, d)
    f = cfgd.LeastSquares(X * np.geomspace(1, 1e3, d), y)
    return iterate(f, np.ones(d), cfgd.AdaptiveTerminal(gamma=-0.25))


def network(nodes: int) -> TimedRuns:
    z = np.linspace(-1, 1, 100)
    f = cfgd.ShallowNetwork(z, FUNCTIONS["h1"](z), 50)
    method = cfgd.AdaptiveTerminal(alpha=0.5, beta=0.3, nodes=nodes, step=cfgd.NetworkStep())
    return iterate(f, f.init(0), method)


def sweep_settings(count: int) -> TimedRuns:
    X, y = classification(128, 128)
    method = cfgd.AdaptiveTerminal(gamma=-np.linspace(0.05, 0.4, count))
    f = cfgd.LeastSquares(X * np.geomspace(1, 1e3, 128), y)
    return iterate(f, np.ones(128), method, cfgd.sweep)


def streamed(m: int, d: int) -> TimedRuns:
    """Return whole runs of Levenberg-Marquardt over blocks of a file; a pass is an iteration."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "X.npy"
    y, size = np.empty(m), 10_000
    header = {"descr": "<f8", "fortran_order": False, "shape": (m, d)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, m, size):
            X, y[start : start + size] = classification(min(size, m - start), d)
            X.tofile(file)
    f = cfgd.Blocks(np.load(path, mmap_mode="r"), y, memory=BLOCK_BYTES)

    def run(_: Any = folder) -> float:  # holds the folder: the file is deleted with the function
        return cfgd.minimize(f, np.zeros(d)).evaluations

    return TimedRuns(run, lambda: None, int(run()))


TERMINAL = "adaptive terminal"
JOBS = {
    f"{TERMINAL}, LeastSquares": Job(
        lambda m: least_squares(m, 50), "rows", decades(3000), "50 columns", lambda m: 50 * m
    ),
    "gradient step, logistic": Job(
        lambda m: gradient_step(m, 100), "rows", decades(3000), "100 columns", lambda m: 100 * m
    ),
    "Levenberg-Marquardt step, logistic": Job(
        lambda m: levenberg_marquardt(cfgd.LinearModel(*classification(m, 30))),
        "rows", decades(10_000), "30 columns", lambda m: 30 * m,
    ),
    "Levenberg-Marquardt step, logistic, Blocks": Job(
        lambda m: streamed(m, 30), "rows", decades(10_000), "30 columns", lambda m: 30 * m
    ),
    f"{TERMINAL}, Quadratic": Job(
        quadratic, "columns", decades(40), "", lambda d: float(d) ** 2
    ),
    "gradient step, logistic, wide": Job(
        lambda d: gradient_step(3000, d), "columns", decades(40), "3,000 rows", lambda d: 3000 * d
    ),
    "Levenberg-Marquardt step, logistic, wide": Job(
        lambda d: levenberg_marquardt(cfgd.LinearModel(*classification(10_000, d))),
        "columns", decades(5), "10,000 rows", lambda d: 10_000 * d,
    ),
    f"{TERMINAL}, network": Job(network, "nodes", decades(2), "50 neurons, 100 samples"),
    f"{TERMINAL}, sweep": Job(sweep_settings, "settings", decades(5), "LeastSquares, 128 columns"),
}  # fmt: skip
