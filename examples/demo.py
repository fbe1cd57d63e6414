"""Gradient descent and the adaptive terminal on two problems: a table and a picture.

The picture is the paper's first figure: trajectories on 10 x^2 + y^2 from (1, -10).
"""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import matplotlib
import numpy as np

import cfgd

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PICTURE = Path("trajectories.png")
SEED = 0


def figure1() -> dict[str, cfgd.Solution]:
    """The paper's figure 1: past = (-1, -1), gamma = -1, exact step."""
    f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    methods = {
        "gradient descent": cfgd.GradientDescent(),
        "adaptive terminal": cfgd.AdaptiveTerminal(gamma=-1.0, past=[[-1.0, -1.0]]),
    }
    record = {"x": lambda x: x, "error": jnp.linalg.norm}
    return {
        name: cfgd.minimize(f, [1.0, -10.0], method, tolerance=1e-13, record=record)
        for name, method in methods.items()
    }


def least_squares() -> dict[str, cfgd.Solution]:
    """The paper's ill-conditioned least squares: singular values from 10 down to 0.1, d = 20."""
    random = np.random.default_rng(SEED)
    U, s, V = np.linalg.svd(random.normal(size=(20, 20)) / np.sqrt(20))
    s[0], s[-1] = 10.0, 0.1
    X, y = (U * s) @ V, random.normal(size=20)
    x0, best = random.uniform(-1, 1, size=20), np.linalg.solve(X, y)
    methods = {
        "gradient descent": cfgd.GradientDescent(),
        "adaptive terminal": cfgd.AdaptiveTerminal(gamma=-0.25),
    }
    return {
        name: cfgd.minimize(
            cfgd.LeastSquares(X, y),
            x0,
            method,
            max_iterations=100_000,
            tolerance=1e-12,
            every=100,
            record={"error": lambda x: jnp.linalg.norm(x - best)},
        )
        for name, method in methods.items()
    }


def table(title: str, runs: dict[str, cfgd.Solution]) -> None:
    print(f"\n{title}")
    print(f"  {'method':<18} {'iterations':>10} {'value':>10} {'error':>10} {'seconds':>8}  status")
    for name, run in runs.items():
        error = run.history["error"][-1]
        print(
            f"  {name:<18} {run.iterations:>10} {run.value:>10.2e} {error:>10.2e}"
            f" {run.seconds:>8.2f}  {run.status.name}"
        )


def draw(runs: dict[str, cfgd.Solution], picture: Path) -> None:
    x, y = np.meshgrid(np.linspace(-4.5, 4.5, 200), np.linspace(-11, 5, 200))
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    colours = {"gradient descent": "#0072b2", "adaptive terminal": "#d55e00"}
    for axis, (name, run) in zip(axes, runs.items(), strict=False):
        axis.contour(x, y, 10 * x**2 + y**2, levels=12, colors="0.75", linewidths=0.8)
        axis.plot(*run.history["x"].T, "x-", color=colours[name])
        axis.plot(0, 0, "k*", markersize=10)
        axis.set(title=name, xlabel="x", ylabel="y", xlim=(-4.5, 4.5), ylim=(-11, 5))
    for name, run in runs.items():
        axes[2].semilogy(run.history["error"], "x-", color=colours[name], label=name)
    axes[2].set(title="distance to the minimiser", xlabel="iteration", xlim=(0, 30))
    axes[2].legend()
    figure.savefig(picture, dpi=120)


def main() -> None:
    runs = figure1()
    table("10 x^2 + y^2 from (1, -10)", runs)
    table(f"least squares, d = 20, condition number 10,000 (seed {SEED})", least_squares())
    draw(runs, PICTURE)
    print(f"\nThe trajectories are drawn in {PICTURE.resolve()}")


if __name__ == "__main__":
    main()
