"""What is measured: an iteration of a method on data of some size.

Each job makes its data, compiles, and returns runs that can be timed.
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

ENOUGH = 0.15  # seconds of a run that is timed
STREAMED = 16e6  # bytes, the memory of a stream


class Timed(NamedTuple):
    """Runs to be timed: `whole` makes so many `iterations` more than `start` does."""

    whole: Callable[[], Any]
    start: Callable[[], Any]
    iterations: int


class Job(NamedTuple):
    """`sizes` are of what `against` names, over two decades; `numbers` those of X at a size."""

    make: Callable[[int], Timed]
    against: str
    sizes: tuple[int, ...]
    fixed: str  # what else there is
    numbers: Callable[[int], float] | None = None


def decades(least: int) -> tuple[int, ...]:
    """Two of them, by factors of the root of ten.

    >>> decades(100)
    (100, 320, 1000, 3200, 10000)
    """
    return tuple(round(least * factor) for factor in (1, 3.2, 10, 32, 100))


def looped(objective: Any, x0: np.ndarray, method: Any, solve: Any = cfgd.minimize) -> Timed:
    """A long and a short run: what every run takes does not count."""

    def run(most: int) -> int:
        ends = solve(objective, x0, method, max_iterations=most, tolerance=0.0, every=1_000_000)
        return int(np.max(ends.iterations))

    def timed(most: int) -> tuple[int, float]:
        gc.collect()
        began = time.process_time()
        return run(most), time.process_time() - began

    run(8)  # compiles
    _, least = timed(8)
    for most in (32, 128, 512, 2048, 8192, 32768, 131072):
        made, taken = timed(most)
        if taken - least > ENOUGH or made < most:
            break
    few = made // 4
    return Timed(lambda: run(made), lambda: run(few), made - few)


def solved(objective: Any) -> Timed:
    """All of a run by the matrix."""

    def run() -> int:
        ends = cfgd.minimize(objective, np.zeros(objective.dimension), cfgd.Auto("tikhonov"))
        return ends.iterations

    return Timed(run, lambda: None, run())


def rows(m: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels that follow columns of one scale."""
    random = np.random.default_rng(0)
    X = random.standard_normal((m, d))
    score = X @ random.standard_normal(d) * (2 / np.sqrt(d))
    return X, (score + random.logistic(size=m) > 0).astype(float)


def gradient_step(m: int, d: int) -> Timed:
    """Never so long that the end is near."""
    method = cfgd.GradientDescent(step=cfgd.FixedStep(1e-4 / m))
    return looped(cfgd.LinearModel(*rows(m, d)), np.zeros(d), method)


def quadratic(d: int) -> Timed:
    random, S = np.random.default_rng(0), np.geomspace(1, 1e3, d)  # so that there is no end
    U = random.standard_normal((d, d)) / np.sqrt(d)
    f = cfgd.Quadratic((U @ U.T + 1e-3 * np.eye(d)) * S * S[:, None], random.standard_normal(d))
    return looped(f, np.ones(d), cfgd.AdaptiveTerminal(gamma=-0.25))


def least_squares(m: int, d: int) -> Timed:
    X, y = rows(m, d)
    f = cfgd.LeastSquares(X * np.geomspace(1, 1e3, d), y)
    return looped(f, np.ones(d), cfgd.AdaptiveTerminal(gamma=-0.25))


def network(nodes: int) -> Timed:
    z = np.linspace(-1, 1, 100)
    f = cfgd.ShallowNetwork(z, FUNCTIONS["h1"](z), 50)
    method = cfgd.AdaptiveTerminal(alpha=0.5, beta=0.3, nodes=nodes, step=cfgd.NetworkStep())
    return looped(f, f.init(0), method)


def settings(count: int) -> Timed:
    X, y = rows(128, 128)
    method = cfgd.AdaptiveTerminal(gamma=-np.linspace(0.05, 0.4, count))
    f = cfgd.LeastSquares(X * np.geomspace(1, 1e3, 128), y)
    return looped(f, np.ones(128), method, cfgd.sweep)


def streamed(m: int, d: int) -> Timed:
    """A pass of a run by the matrix, from a file."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "X.npy"
    y, size = np.empty(m), 10_000
    header = {"descr": "<f8", "fortran_order": False, "shape": (m, d)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, m, size):
            X, y[start : start + size] = rows(min(size, m - start), d)
            X.tofile(file)
    f = cfgd.Blocks(np.load(path, mmap_mode="r"), y, memory=STREAMED)

    def run(_: Any = folder) -> float:  # the file is there as long as this function
        return cfgd.minimize(f, np.zeros(d)).evaluations

    return Timed(run, lambda: None, int(run()))


TERMINAL = "adaptive terminal"
JOBS = {
    f"{TERMINAL}, LeastSquares": Job(
        lambda m: least_squares(m, 50), "rows", decades(3000), "50 columns", lambda m: 50 * m
    ),
    "gradient step, logistic": Job(
        lambda m: gradient_step(m, 100), "rows", decades(3000), "100 columns", lambda m: 100 * m
    ),
    "Tikhonov step, logistic": Job(
        lambda m: solved(cfgd.LinearModel(*rows(m, 30))),
        "rows", decades(10_000), "30 columns", lambda m: 30 * m,
    ),
    "Tikhonov step, logistic, Blocks": Job(
        lambda m: streamed(m, 30), "rows", decades(10_000), "30 columns", lambda m: 30 * m
    ),
    f"{TERMINAL}, Quadratic": Job(
        quadratic, "columns", decades(40), "", lambda d: float(d) ** 2
    ),
    "gradient step, logistic, wide": Job(
        lambda d: gradient_step(3000, d), "columns", decades(40), "3,000 rows", lambda d: 3000 * d
    ),
    "Tikhonov step, logistic, wide": Job(
        lambda d: solved(cfgd.LinearModel(*rows(10_000, d))),
        "columns", decades(5), "10,000 rows", lambda d: 10_000 * d,
    ),
    f"{TERMINAL}, network": Job(network, "nodes", decades(2), "50 neurons, 100 samples"),
    f"{TERMINAL}, sweep": Job(settings, "settings", decades(5), "LeastSquares, 128 columns"),
}  # fmt: skip
