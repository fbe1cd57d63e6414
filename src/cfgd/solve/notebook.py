"""What IPython and Jupyter show for a solution: its numbers, and its values as a sparkline."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfgd._core.notebook import line, table
from cfgd._core.representation import text_of
from cfgd.solve.plot import finite, positive, spans_a_decade
from cfgd.status import Status

MOST_ROWS = 10  # settings of a sweep that are shown, as in the legend of a plot


def of_one(solution: Any) -> str:
    """Return the table of the solution of one setting."""
    rows = [
        ["status", solution.status.name],
        ["value", f"{solution.value:.6g}"],
        ["gradient norm", f"{solution.gradient_norm:.3g}"],
        ["iterations", f"{solution.iterations:,}"],
        ["cost", f"{solution.evaluations:g} gradients, {solution.seconds:.3g} s"],
        ["x", text_of(solution.x)],
        *(["values", figure] for figure in values_of(solution)),
        ["message", solution.message],
    ]
    return table(f"Solution: {solution.how}", [], rows)


def of_sweep(solution: Any) -> str:
    """Return the table of a sweep, with a row for each of its first settings."""
    count = len(solution)
    converged = sum(status is Status.converged for status in solution.status)
    header = ["setting", "status", "value", "gradient norm", "iterations", "values"]
    rows = [
        [
            *(str(i), one.status.name, f"{one.value:.6g}", f"{one.gradient_norm:.3g}"),
            *(f"{one.iterations:,}", *(values_of(one) or [""])),
        ]
        for i, one in ((i, solution[i]) for i in range(min(count, MOST_ROWS)))
    ]
    if count > MOST_ROWS:
        rows.append([f"{count - MOST_ROWS:,} more", ""])
    caption = f"Solution of a sweep of {count:,} settings: {converged:,} converged"
    return table(caption, header, rows)


def values_of(solution: Any) -> list[Any]:
    """Return the sparkline of the values in the history; none where there are none."""
    if "value" not in solution.history or "iteration" not in solution.history:
        return []
    running = np.asarray(solution.history["iteration"]) <= solution.iterations
    label, values = positive(finite(solution.history["value"])[running])
    return [line(values, f"{label} by iteration", log=spans_a_decade(values))]
