"""What `cfgd bench` shows on the console: progress, the table, and where it was written."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from cfgd.bench.field.cases import makers
from cfgd.bench.field.runner import FILES, run
from cfgd.bench.field.standing import OURS, Standing
from cfgd.bench.field.verdicts import verdicts
from cfgd.data import gas
from cfgd.output import INTERRUPTED, check_writable

# columns of a console that has room for the spread
WIDE = 100


def show(console: Console, out: Path, seeds: int, quick: bool, data: Path | None) -> int:
    """Run with progress, print the table and where it was written; the exit code."""
    for name in ("optax", "optimistix"):
        if importlib.util.find_spec(name) is None:
            raise ValueError(f"The rivals need {name}: pip install 'cfgd[bench]'.")
    check_writable(out, FILES)
    problems = list(makers(quick, gas.read(data) if data is not None else gas.cached()))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    # an instance may take minutes: longer than what the estimate looks back on by itself
    with Progress(*columns, console=console, speed_estimate_period=3600) as progress:
        task = progress.add_task("", total=len(problems) * seeds)
        report = run(
            out,
            problems,
            seeds,
            say=lambda what: progress.update(task, description=what),
            advance=lambda: progress.advance(task),
        )
    console.print(render(report.standings, console.width))
    for verdict in verdicts(report.standings):
        console.print(verdict, highlight=False)
    if report.unwritten is not None:
        raise report.unwritten
    where = out.resolve()
    console.print(f"{where / 'bench.json'} and {where / 'bench.png'}", soft_wrap=True)
    if report.interrupted:
        console.print("Interrupted: the table has what was finished.")
    return INTERRUPTED if report.interrupted else 0


def render(standings: list[Standing], width: int) -> Table:
    """The table; a ratio above one is a loss of cfgd and is marked so."""
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


def _words(number: float) -> str:
    if not np.isfinite(number):
        return "never"
    return f"{number:.0f}" if 10 <= number < 1e6 else f"{number:.2g}"


def _factor(ratio: float) -> str:
    if ratio == 0:
        return "-  "
    return f"[red]{ratio:.2g} ✗[/]" if ratio > 1 else f"{ratio:.2g}  "
