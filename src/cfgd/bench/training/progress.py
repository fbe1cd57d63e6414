"""What is seen of a run: progress, the tables, and where they were written."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cfgd.bench.training.report import tables
from cfgd.bench.training.runner import FILES, Plan, Report, check_files, run
from cfgd.bench.training.verdicts import verdicts
from cfgd.output import INTERRUPTED, printable


def show(console: Console, out: Path, plan: Plan, resume: bool) -> int:
    """The exit code; what could not be written is raised after the tables."""
    check_files(out, plan)
    report = _run(console, out, plan, resume)
    for shown in tables(plan.problems, report.standings):
        console.print(shown)
    for verdict in verdicts(report.standings):
        console.print(verdict, highlight=False)
    on = "the same command with --resume goes on."
    if report.unwritten is not None:
        console.print(f"Not all could be written: what was is kept; {on}", highlight=False)
        raise report.unwritten
    where = out.resolve()
    console.print(f"{where / FILES[0]} and {where / FILES[1]}", soft_wrap=True)
    if report.interrupted:
        console.print(f"Interrupted: what is finished is kept; {on}", highlight=False)
    return INTERRUPTED if report.interrupted else 0


def _run(console: Console, out: Path, plan: Plan, resume: bool) -> Report:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, speed_estimate_period=600) as progress:
        task = progress.add_task("", total=plan.runs)

        def finished(what: str, reused: bool) -> None:
            progress.advance(task)
            if not console.is_terminal:
                before = " (from the run before)" if reused else ""
                console.print(f"{what}{before}", highlight=False, soft_wrap=True)

        def warn(said: str) -> None:
            words = f"[yellow]{escape(printable(said))}[/]"
            console.print(words, highlight=False, soft_wrap=True)

        return run(
            out,
            plan,
            resume=resume,
            say=lambda what: progress.update(task, description=what),
            finished=finished,
            warn=warn,
        )
