"""`minimize` and `sweep` compared with NumPy loops of the same iteration."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.apps.bench.speed.measure import ReportRow, at_least, at_most, time_in_turns
from cfgd.apps.data.random_least_squares import random_least_squares

GAMMA = -0.25


def bare_loop(A: Any, b: Any, x: Any, iterations: int) -> Any:
    """Iterate the adaptive terminal with the exact step, without history and convergence tests."""
    D, c = np.diag(A).copy(), x
    for _ in range(iterations):
        g = A @ x + b
        d = g + GAMMA * D * (x - c)
        eta = (g @ d) / (d @ (A @ d))
        x, c = x - eta * d, x
    return x


def same_loop(A: Any, b: Any, x: Any, iterations: int) -> Any:
    """Iterate as `minimize` does, with history and convergence tests."""
    D, c, values, best = np.diag(A).copy(), x, [], np.inf
    for _ in range(iterations):
        g = A @ x + b
        values.append(0.5 * (x @ (g + b)))
        best = min(best, values[-1])
        norm2 = g @ g
        if norm2 <= 0.0 or not np.isfinite(norm2):
            break
        d = g + GAMMA * D * (x - c)
        slope = g @ d
        if abs(slope) <= 1e-15 * norm2:
            d, slope = g, norm2
        eta = slope / (d @ (A @ d))
        x, c = x - eta * d, x
    return x


def rows() -> Iterator[ReportRow]:
    yield from _start()
    yield from _one_run(20, 100_000, 10.0)
    yield from _one_run(128, 40_000, 5.0)
    yield from _sweep()


def _one_run(d: int, iterations: int, bound: float) -> Iterator[ReportRow]:
    X, y, *_ = random_least_squares(0, d)
    A, b, x0 = X.T @ X, -X.T @ y, np.ones(d)
    objective, method = cfgd.Quadratic(A, b), cfgd.AdaptiveTerminal(gamma=GAMMA)

    def run() -> Any:
        return cfgd.minimize(objective, x0, method, max_iterations=iterations, tolerance=0.0)

    seconds = time_in_turns(
        {
            "cfgd": run,
            "same": lambda: same_loop(A, b, x0, iterations // 20),
            "bare": lambda: bare_loop(A, b, x0, iterations // 20),
        }
    )
    # `minimize` stops when rounding prevents further decrease, so its iterations are counted
    counts = {"cfgd": run().iterations, "same": iterations // 20, "bare": iterations // 20}
    each = {name: 1e6 * s / counts[name] for name, s in seconds.items()}
    yield ReportRow(f"d = {d}: time of an iteration of minimize", f"{each['cfgd']:.2f} us")
    yield at_least(
        f"d = {d}: time of a NumPy loop of the same iteration / minimize",
        each["same"] / each["cfgd"],
        bound,
    )
    bare = each["bare"] / each["cfgd"]
    yield ReportRow(f"d = {d}: the same for a loop without history and tests", f"{bare:.1f} x")


def _sweep() -> Iterator[ReportRow]:
    d, settings, iterations = 128, 81, 10_000
    X, y, *_ = random_least_squares(0, d)
    objective = cfgd.LeastSquares(X, y)
    methods = cfgd.AdaptiveTerminal(gamma=-np.linspace(20.0, 100.0, settings))
    x0 = np.ones(d)
    orthogonal = np.linalg.qr(X)[0]  # repeated products neither overflow nor underflow
    block = np.random.default_rng(1).normal(size=(settings, d))

    @jax.jit
    def products(Q: Any, V: Any) -> Any:
        return jax.lax.fori_loop(0, iterations, lambda _, V: V @ Q, V)

    def numpy_products() -> Any:
        V = block
        for _ in range(iterations):
            V = V @ orthogonal
        return V

    def jax_products() -> Any:
        with jax.enable_x64(True):
            return jax.block_until_ready(products(jnp.asarray(orthogonal), jnp.asarray(block)))

    def run() -> Any:
        return cfgd.sweep(
            objective, x0, methods, max_iterations=iterations, tolerance=0.0, every=100
        )

    seconds = time_in_turns({"cfgd": run, "jax": jax_products, "numpy": numpy_products})
    iterations_made = int(np.max(run().iterations))
    each = {"cfgd": seconds["cfgd"] / iterations_made, "jax": seconds["jax"] / iterations}
    each["numpy"] = seconds["numpy"] / iterations
    what = f"sweep, {settings} gammas, d = {d}: time of an iteration / a product in"
    yield ReportRow("sweep: time of an iteration", f"{1e6 * each['cfgd']:.1f} us")
    yield at_most(f"{what} JAX", each["cfgd"] / each["jax"], 1.5)
    yield ReportRow(f"{what} NumPy", f"{each['cfgd'] / each['numpy']:.2f} x")


def _start() -> Iterator[ReportRow]:
    def fresh(code: str) -> float:
        """Return the seconds of a new Python process."""
        tick = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - tick

    fresh("import cfgd")  # writes the bytecode
    bare = min(fresh("pass") for _ in range(3))
    imported = min(fresh("import cfgd") for _ in range(3))
    yield at_most("time of `import cfgd`", imported - bare, 1.5, "s")
    solve = (
        "import cfgd, numpy as np; r = np.random.default_rng(0); X = r.normal(size=(20, 20));"
        "cfgd.minimize(cfgd.LeastSquares(X, np.ones(20)), np.zeros(20),"
        "cfgd.AdaptiveTerminal(gamma=-0.25))"
    )
    solved = min(fresh(solve) for _ in range(3))
    # `import cfgd` does not import JAX, which takes a second; the first solve does
    yield at_most(
        "time of the first solve, d = 20, with JAX and compilation", solved - bare, 3.0, "s"
    )
