"""Performance profiles (Dolan and Moré, 2002): fraction of runs within a factor of the best."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from cfgd._core.files import write
from cfgd.apps.bench.field import cutest
from cfgd.apps.bench.field.instance import AUTO, SolverRun

PROFILED_GROUPS = (
    "least-squares",
    "smooth",
    "nist",
    "fits",
    "bounds",
    *cutest.KINDS,
)  # those that count work


def write_figure(runs: list[SolverRun], out: Path) -> None:
    """Write the profiles of work and time of each group to bench.png and bench.svg."""
    from matplotlib.figure import Figure

    groups = [group for group in PROFILED_GROUPS if any(run.group == group for run in runs)]
    if not groups:  # interrupted before any instance was finished
        return
    canvas = Figure(figsize=(6 * len(groups), 8), layout="constrained")
    axes = canvas.subplots(2, len(groups), squeeze=False)
    for column, group in enumerate(groups):
        for row, measure in enumerate(("work", "seconds")):
            ax = axes[row][column]
            for solver, unsorted in profile(runs, group, measure).items():
                factors = np.sort(unsorted)
                share = np.arange(1, len(factors) + 1) / len(factors)
                solved = factors < float("inf")
                ax.step(
                    np.concatenate([[1.0], factors[solved], [1e3]]),
                    np.concatenate([[0.0], share[solved], [np.mean(solved)]]),
                    where="post",
                    label=solver,
                    linewidth=2.5 if solver == AUTO else 1.2,
                )
            ax.set(xscale="log", xlim=(1, 1e3), ylim=(0, 1.02))
            unit = next(run.unit for run in runs if run.group == group)
            label = unit if measure == "work" else "time"
            ax.set(title=f"{group}: {label}", ylabel="fraction of runs solved")
            ax.set(xlabel=f"{label} / {label} of the best solver")
        axes[0][column].legend(fontsize="small")
    save_figure(canvas, out, "bench")


def save_figure(canvas: Any, out: Path, name: str) -> None:
    """Write a figure of matplotlib as PNG and SVG."""
    for ending in ("png", "svg"):
        buffer = io.BytesIO()
        canvas.savefig(buffer, format=ending, dpi=150)
        write(out / f"{name}.{ending}", buffer.getvalue())


def profile(runs: list[SolverRun], group: str, measure: str) -> dict[str, list[float]]:
    """Return the ratios to the best solver, one for each instance, of each solver."""
    factors: dict[str, list[float]] = {}
    best: dict[tuple[str, int], float] = {}
    some = [run for run in runs if run.group == group]
    for run in some:
        key = (run.problem, run.seed)
        best[key] = min(best.get(key, float("inf")), getattr(run, measure))
    for run in some:
        least = best[(run.problem, run.seed)]
        factor = getattr(run, measure) / least if least < float("inf") else float("inf")
        factors.setdefault(run.solver, []).append(factor)
    return factors
