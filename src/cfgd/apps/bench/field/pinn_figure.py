"""The figure of the group `pinn`: relative error and loss against time, medians over seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cfgd.apps.bench.field.instance import AUTO, SolverRun, TracePoint
from cfgd.apps.bench.field.profiles import save_figure

TIMES = 40  # points of a curve


def write_error_figure(runs: list[SolverRun], out: Path) -> None:
    """Write pinn.png and pinn.svg, a column for each equation, if there are such runs."""
    from matplotlib.figure import Figure

    some = [run for run in runs if run.history]
    if not some:
        return
    problems = list(dict.fromkeys(run.problem for run in some))
    canvas = Figure(figsize=(4.5 * len(problems), 7), layout="constrained")
    axes = canvas.subplots(2, len(problems), squeeze=False, sharex="col")
    for column, problem in enumerate(problems):
        of_problem = [run for run in some if run.problem == problem]
        for solver in dict.fromkeys(run.solver for run in of_problem):
            histories = [run.history for run in of_problem if run.solver == solver]
            width = 2.5 if solver == AUTO else 1.2
            for row, measure in enumerate(("error", "value")):
                t, y = median_curve(histories, measure)
                axes[row][column].loglog(t, y, label=solver, linewidth=width)
        axes[0][column].set(title=problem, ylabel="relative error")
        axes[1][column].set(xlabel="time (s)", ylabel="loss")
    axes[0][0].legend(fontsize="small")
    save_figure(canvas, out, "pinn")


def median_curve(
    histories: list[tuple[TracePoint, ...]], measure: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and the medians of the last recorded numbers at these times."""
    first = max(history[0].seconds for history in histories)
    last = min(history[-1].seconds for history in histories)
    times = np.geomspace(first, last, TIMES)
    times[-1] = last  # without rounding, so that the last point is found
    curves = []
    for history in histories:
        seconds = np.array([point.seconds for point in history])
        numbers = np.array([getattr(point, measure) for point in history])
        curves.append(numbers[np.maximum(np.searchsorted(seconds, times, "right") - 1, 0)])
    return times, np.median(curves, axis=0)
