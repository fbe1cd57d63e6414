"""Performance profiles: how often a solver is how much slower than the best one."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from cfgd._core.files import write
from cfgd.apps.bench.field.standing import OURS, Run

# where work is counted
PROFILED = ("least-squares", "smooth", "nist", "cutest")


def figure(runs: list[Run], out: Path) -> None:
    """Performance profiles: the share of instances solved within a factor of the best solver."""
    from matplotlib.figure import Figure

    groups = [g for g in PROFILED if any(r.group == g for r in runs)]
    if not groups:  # interrupted before anything was finished
        return
    canvas = Figure(figsize=(6 * len(groups), 8), layout="constrained")
    axes = canvas.subplots(2, len(groups), squeeze=False)
    for column, group in enumerate(groups):
        for row, measure in enumerate(("work", "seconds")):
            ax = axes[row][column]
            for solver, factors in profile(runs, group, measure).items():
                at = np.sort(factors)
                share = np.arange(1, len(at) + 1) / len(at)
                inside = at < float("inf")
                thick = 2.5 if solver == OURS else 1.2
                ax.step(
                    np.concatenate([[1.0], at[inside], [1e3]]),
                    np.concatenate([[0.0], share[inside], [np.mean(inside)]]),
                    where="post",
                    label=solver,
                    linewidth=thick,
                )
            ax.set(xscale="log", xlim=(1, 1e3), ylim=(0, 1.02))
            ax.set(title=f"{group}: {measure}", xlabel="times the best", ylabel="share solved")
        axes[0][column].legend(fontsize="small")
    for ending in ("png", "svg"):
        buffer = io.BytesIO()
        canvas.savefig(buffer, format=ending, dpi=150)
        write(out / f"bench.{ending}", buffer.getvalue())


def profile(runs: list[Run], group: str, measure: str) -> dict[str, list[float]]:
    """For each solver its factors over the best, one for each instance on which it competes."""
    factors: dict[str, list[float]] = {}
    best: dict[tuple[str, int], float] = {}
    some = [r for r in runs if r.group == group]
    for r in some:
        key = (r.problem, r.seed)
        best[key] = min(best.get(key, float("inf")), getattr(r, measure))
    for r in some:
        least = best[(r.problem, r.seed)]
        factor = getattr(r, measure) / least if least < float("inf") else float("inf")
        factors.setdefault(r.solver, []).append(factor)
    return factors
