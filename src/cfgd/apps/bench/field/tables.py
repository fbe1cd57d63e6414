"""The tables of `cfgd bench`: problems with a section of solvers, or with a line each."""

from __future__ import annotations

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from cfgd.apps.bench.field.standing import ENDED, OURS, Run, Standing, is_lost

# columns of a console that has room for the spread
WIDE = 100
# groups of many problems and few solvers
BY_LINE = {
    "nist": "NIST: Jacobians, and digits of the parameters, for six digits or more",
    "cutest": "CUTEst: gradients to 1e-8 of that at the start",
}


def by_section(standings: list[Standing], width: int) -> Table:
    """Medians over seeds; a ratio above one is a loss of cfgd and is marked so."""
    shown = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        title="Where cfgd stands: medians over seeds",
        caption=f"x is {OURS} over the solver; ✗ where cfgd loses; * the least of a problem",
    )
    shown.add_column("solver", no_wrap=True)
    wide = width >= WIDE
    for name in ("score", *(["least to most"] if wide else []), "x", "seconds", "x", "solved"):
        shown.add_column(name, justify="right", no_wrap=True)
    last = ""
    for one in standings:
        if one.problem != last:
            shown.add_section()
            shown.add_row(f"[bold]{one.problem}[/]", one.measure)
        last = one.problem
        shown.add_row(
            f"  {one.solver}",
            _words(one.score[0]) + ("*" if one.winner else " "),
            *([f"{_words(one.score[1])} to {_words(one.score[2])}"] if wide else []),
            _factor(one.ratio),
            f"{one.seconds[0]:.2g}" if np.isfinite(one.seconds[0]) else "-",
            _factor(one.seconds_ratio),
            f"{one.solved}/{one.seeds}",
            style="bold" if one.solver == OURS else None,
        )
    return shown


def by_line(runs: list[Run], group: str) -> Table:
    """A line for each problem and start, a column for each solver; losses of cfgd are marked."""
    some = [run for run in runs if run.group == group]
    solvers = list(dict.fromkeys(run.solver for run in some))
    caption = f"x is {OURS} over the best of the others; ✗ where cfgd loses"
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"\n{BY_LINE[group]}", caption=caption)
    shown.add_column("problem", no_wrap=True)
    for name in ("variables", *solvers, "x"):
        shown.add_column(name, justify="right", no_wrap=True)
    starts = max((run.seed for run in some), default=0) > 0
    for problem, seed in dict.fromkeys((run.problem, run.seed) for run in some):
        of = {run.solver: run for run in some if (run.problem, run.seed) == (problem, seed)}
        others = [run for run in of.values() if run.solver not in (OURS, ENDED)]
        theirs = min(run.work for run in others)
        lost = any(is_lost(of[OURS], run, of.get(ENDED)) for run in others)
        shown.add_row(
            f"{problem}, start {seed + 1}" if starts else problem,
            str(of[OURS].dimension),
            *(_line(of[solver]) for solver in solvers),
            "[red]lost ✗[/]" if lost else _factor(_over(of[OURS].work, theirs)),
        )
    return shown


def _line(run: Run) -> str:
    digits = f"  {run.digits:4.1f}" if np.isfinite(run.digits) else ""
    return _words(run.work) + digits


def _over(ours: float, theirs: float) -> float:
    return ours / theirs if np.isfinite(theirs) else 0.0


def _words(number: float) -> str:
    if not np.isfinite(number):
        return "never"
    return f"{number:.0f}" if 10 <= number < 1e6 else f"{number:.2g}"


def _factor(ratio: float) -> str:
    if ratio == 0:
        return "-  "
    return f"[red]{ratio:.2g} ✗[/]" if ratio > 1 else f"{ratio:.2g}  "
