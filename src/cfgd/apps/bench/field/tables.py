"""The tables of `cfgd bench`: for each problem a section with all solvers, or one line."""

from __future__ import annotations

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from cfgd.apps.bench.field.instance import AUTO, AUTO_CONVERGED, SolverRun
from cfgd.apps.bench.field.summary import SolverSummary, auto_loses

WIDE = 100  # width of a console, in characters, that has room for the range over seeds
# groups with many problems and few solvers, and the titles of their tables
LINE_GROUPS = {
    "nist": "NIST regressions: Jacobians to six digits, and correct digits of the parameters",
    "fits": "Curve fits: cost in gradients to the best known sum of squares",
    "bounds": "NIST regressions with an active bound: Jacobians to the lowest sum of squares",
    "cutest": "CUTEst: gradients until the gradient norm is 1e-8 of its initial value",
    "cutest-bounds": "CUTEst with bounds: gradients until the norm of the projected gradient is "
    "1e-8 of its initial value",
}
# the first line of a section: the unit of its first column
MEASURES = {"products": "matrix products", "timed loss": "loss"}


def section_table(summaries: list[SolverSummary], width: int) -> Table:
    """Return a table of medians over seeds; ratios above one are marked."""
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        title=f"{AUTO} and other solvers: medians over seeds",
        caption=f"ratio: {AUTO} / this solver (✗: cfgd is worse); *: lowest of the problem; loss:"
        " at equal time if the problem has a time in its name, otherwise at equal cost",
    )
    table.add_column("solver", no_wrap=True)
    wide = width >= WIDE
    for name in (
        "cost or loss",
        *(["range"] if wide else []),
        "ratio",
        "time (s)",
        "ratio",
        "solved",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    last = ""
    for one in summaries:
        if one.problem != last:
            table.add_section()
            table.add_row(f"[bold]{one.problem}[/]", MEASURES.get(one.measure, one.measure))
        last = one.problem
        table.add_row(
            f"  {one.solver}",
            _format(one.score[0]) + ("*" if one.winner else " "),
            *([f"{_format(one.score[1])} to {_format(one.score[2])}"] if wide else []),
            _factor(one.ratio),
            f"{one.seconds[0]:.2g}" if np.isfinite(one.seconds[0]) else "-",
            _factor(one.seconds_ratio),
            f"{one.solved}/{one.seeds}",
            style="bold" if one.solver == AUTO else None,
        )
    return table


def line_table(runs: list[SolverRun], group: str) -> Table:
    """Return a table with a line for each instance and a column for each solver.

    Instances on which cfgd is worse than another solver are marked.
    """
    some = [run for run in runs if run.group == group]
    solvers = list(dict.fromkeys(run.solver for run in some))
    caption = (
        f"ratio: {AUTO} / best other solver (✗: cfgd is worse); lost: another solver reaches the"
        " target, cfgd does not"
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"\n{LINE_GROUPS[group]}", caption=caption)
    table.add_column("problem", no_wrap=True)
    for name in ("variables", *solvers, "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    has_starts = max((run.seed for run in some), default=0) > 0
    for problem, seed in dict.fromkeys((run.problem, run.seed) for run in some):
        by_solver = {run.solver: run for run in some if (run.problem, run.seed) == (problem, seed)}
        auto, converged = by_solver[AUTO], by_solver.get(AUTO_CONVERGED)
        others = [run for run in by_solver.values() if run.solver not in (AUTO, AUTO_CONVERGED)]
        least = min(run.work for run in others)
        lost = any(auto_loses(auto, run, converged) for run in others)
        ratio = auto.work / least if np.isfinite(least) else 0.0
        table.add_row(
            f"{problem}, start {seed + 1}" if has_starts else problem,
            str(auto.dimension),
            *(_work_and_digits(by_solver[solver]) for solver in solvers),
            "[red]lost ✗[/]" if lost else _factor(ratio),
        )
    return table


def error_table(summaries: list[SolverSummary], width: int) -> Table:
    """Return a table of relative errors and losses after equal time, medians over seeds."""
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        title="\nPhysics-informed networks: relative error after equal time, medians over seeds",
        caption=f"ratio: {AUTO} / this solver (✗: cfgd is worse); *: lowest of the equation",
    )
    table.add_column("solver", no_wrap=True)
    wide = width >= WIDE
    for name in ("relative error", *(["range"] if wide else []), "ratio", "loss"):
        table.add_column(name, justify="right", no_wrap=True)
    last = ""
    for one in summaries:
        if one.problem != last:
            table.add_section()
            table.add_row(f"[bold]{one.problem}[/]")
        last = one.problem
        table.add_row(
            f"  {one.solver}",
            f"{one.score[0]:.1e}" + ("*" if one.winner else " "),
            *([f"{one.score[1]:.1e} to {one.score[2]:.1e}"] if wide else []),
            _factor(one.ratio),
            f"{one.value:.1e}",
            style="bold" if one.solver == AUTO else None,
        )
    return table


def _work_and_digits(run: SolverRun) -> str:
    digits = f"  {run.digits:4.1f}" if np.isfinite(run.digits) else ""
    return _format(run.work) + digits


def _format(number: float) -> str:
    if not np.isfinite(number):
        return "failed"
    return f"{number:.0f}" if 10 <= number < 1e6 else f"{number:.2g}"


def _factor(ratio: float) -> str:
    if ratio == 0:
        return "-  "
    return f"[red]{ratio:.2g} ✗[/]" if ratio > 1 else f"{ratio:.2g}  "
