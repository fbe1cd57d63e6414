"""The core against plain NumPy loops of the same iteration."""

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
from cfgd.apps.bench.speed.measure import Row, at_least, at_most, in_turns
from cfgd.apps.data.random_least_squares import random_least_squares

GAMMA = -0.25


def bare_loop(A: Any, b: Any, x: Any, iterations: int) -> Any:
    """The adaptive terminal with the exact step and nothing else."""
    D, c = np.diag(A).copy(), x
    for _ in range(iterations):
        g = A @ x + b
        d = g + GAMMA * D * (x - c)
        eta = (g @ d) / (d @ (A @ d))
        x, c = x - eta * d, x
    return x


def same_loop(A: Any, b: Any, x: Any, iterations: int) -> Any:
    """The same iteration as `minimize` makes it: with its history and its tests."""
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


def rows() -> Iterator[Row]:
    yield from _start()
    yield from _one_run(20, 100_000, 10.0)
    yield from _one_run(128, 40_000, 5.0)
    yield from _sweep()


def _one_run(d: int, iterations: int, bound: float) -> Iterator[Row]:
    X, y, *_ = random_least_squares(0, d)
    A, b, x0 = X.T @ X, -X.T @ y, np.ones(d)
    objective, method = cfgd.Quadratic(A, b), cfgd.AdaptiveTerminal(gamma=GAMMA)

    def ours() -> Any:
        return cfgd.minimize(objective, x0, method, max_iterations=iterations, tolerance=0.0)

    seconds = in_turns(
        {
            "ours": ours,
            "same": lambda: same_loop(A, b, x0, iterations // 20),
            "bare": lambda: bare_loop(A, b, x0, iterations // 20),
        }
    )
    # beyond rounding a run ends by itself
    counts = {"ours": ours().iterations, "same": iterations // 20, "bare": iterations // 20}
    each = {name: 1e6 * s / counts[name] for name, s in seconds.items()}
    yield Row(f"d = {d}: an iteration of minimize", f"{each['ours']:.2f} us")
    yield at_least(
        f"d = {d}: NumPy loop of the same iteration / minimize", each["same"] / each["ours"], bound
    )
    bare = each["bare"] / each["ours"]
    yield Row(f"d = {d}: NumPy loop without history and tests / minimize", f"{bare:.1f} x")


def _sweep() -> Iterator[Row]:
    d, settings, iterations = 128, 81, 10_000
    X, y, *_ = random_least_squares(0, d)
    objective = cfgd.LeastSquares(X, y)
    methods = cfgd.AdaptiveTerminal(gamma=-np.linspace(20.0, 100.0, settings))
    x0 = np.ones(d)
    orthogonal = np.linalg.qr(X)[0]  # keeps the numbers of repeated products in range
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

    def ours() -> Any:
        return cfgd.sweep(
            objective, x0, methods, max_iterations=iterations, tolerance=0.0, every=100
        )

    seconds = in_turns({"ours": ours, "jax": jax_products, "numpy": numpy_products})
    made = int(np.max(ours().iterations))
    each = {"ours": seconds["ours"] / made, "jax": seconds["jax"] / iterations}
    each["numpy"] = seconds["numpy"] / iterations
    what = f"sweep of {settings} gammas, d = {d}: an iteration / a product in"
    yield Row("sweep: an iteration", f"{1e6 * each['ours']:.1f} us")
    yield at_most(f"{what} JAX", each["ours"] / each["jax"], 1.5)
    yield Row(f"{what} NumPy", f"{each['ours'] / each['numpy']:.2f} x")


def _start() -> Iterator[Row]:
    def fresh(code: str) -> float:
        tick = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - tick

    fresh("import cfgd")  # so that bytecode is there
    bare = min(fresh("pass") for _ in range(3))
    imported = min(fresh("import cfgd") for _ in range(3))
    yield at_most("import cfgd", imported - bare, 1.5, "s")
    solve = (
        "import cfgd, numpy as np; r = np.random.default_rng(0); X = r.normal(size=(20, 20));"
        "cfgd.minimize(cfgd.LeastSquares(X, np.ones(20)), np.zeros(20),"
        "cfgd.AdaptiveTerminal(gamma=-0.25))"
    )
    solved = min(fresh(solve) for _ in range(3))
    # `import cfgd` leaves JAX, which takes a second, to the first name that needs it
    yield at_most("first solve at d = 20, JAX and compilation included", solved - bare, 3.0, "s")
