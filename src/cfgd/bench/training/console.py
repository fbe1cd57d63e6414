"""What `cfgd bench --training` shows: progress, the tables, and where they were written."""

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

from cfgd.extras import needed
from cfgd.output import INTERRUPTED, check_writable, printable

SEEDS = {True: 2, False: 5}  # where none are asked for, quick or not
WHO = "`cfgd bench --training`"


def show_training(
    console: Console,
    out: Path,
    *,
    only: list[str],
    seeds: int | None,
    quick: bool,
    data: Path | None,
    resume: bool,
) -> int:
    """Run with progress, print the tables and where they were written; the exit code."""
    if data is not None:
        raise ValueError("--data is the gas data of `cfgd bench`: --training has no use for it.")
    for module in ("optax", "sklearn"):
        needed(module, WHO, "bench")
    # they need optax
    from cfgd.bench.training.catalogue import chosen
    from cfgd.bench.training.optimizers import RATES, optimizers
    from cfgd.bench.training.runner import FILES, Plan, check_files

    check_writable(out, FILES)
    found = chosen(only, quick)
    plan = Plan(found, optimizers(quick), RATES, seeds or SEEDS[quick], quick)
    check_files(out, plan)
    if quick:
        left = "three of five problems, half of the steps" if not only else "half of the steps"
        console.print(f"--quick leaves out {left}, the longer lag and cfadamw.", highlight=False)
    return _show(console, out, plan, resume)


def _show(console: Console, out: Path, plan: object, resume: bool) -> int:
    from cfgd.bench.training.report import tables
    from cfgd.bench.training.runner import FILES, Plan, run
    from cfgd.bench.training.verdicts import verdicts

    assert isinstance(plan, Plan)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, speed_estimate_period=600) as progress:
        task = progress.add_task("", total=len(plan))

        def finished(what: str, reused: bool) -> None:
            progress.advance(task)
            if not console.is_terminal:
                before = " (from the run before)" if reused else ""
                console.print(f"{what}{before}", highlight=False, soft_wrap=True)

        def warn(said: str) -> None:
            words = f"[yellow]{escape(printable(said))}[/]"
            console.print(words, highlight=False, soft_wrap=True)

        report = run(
            out,
            plan,
            resume=resume,
            say=lambda what: progress.update(task, description=what),
            finished=finished,
            warn=warn,
        )
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
