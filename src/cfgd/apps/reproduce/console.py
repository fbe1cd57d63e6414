"""What `cfgd reproduce` shows on the console: progress, the claims table, the page's path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from cfgd._core.files import INTERRUPTED, printable
from cfgd.apps.data import gas
from cfgd.apps.page.document import duration
from cfgd.apps.reproduce.experiment import Experiment, Setting, Size
from cfgd.apps.reproduce.report.claim import FAILS, HOLDS, HOLDS_FOR, NOT_COMPARABLE, Outcome
from cfgd.apps.reproduce.report.page import PLURAL
from cfgd.apps.reproduce.report.part import Part
from cfgd.apps.reproduce.report.report import count
from cfgd.apps.reproduce.report.story import story
from cfgd.apps.reproduce.runner import Result, check_files, reproduce

STYLES = {HOLDS: "green", HOLDS_FOR: "yellow", FAILS: "bold red", NOT_COMPARABLE: "dim"}


class Bar:
    """A meter that is one line of the display."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task, self.stopped = progress, task, False

    def start(self, total: float) -> None:
        self.progress.reset(self.task, total=total)

    def advance(self, amount: float) -> None:
        self.progress.advance(self.task, amount)


def show_list(console: Console, experiments: Sequence[Experiment]) -> None:
    table = Table("experiment", "in the paper", "what it runs", "claims", box=None, pad_edge=False)
    for one in experiments:
        table.add_row(f"[bold]{one.name}[/]", one.where, one.summary, str(len(one.claims)))
    console.print(table)


def show_run(
    console: Console,
    experiments: Sequence[Experiment],
    *,
    size: Size,
    seeds: int | None,
    folder: Path,
    data: Path | None,
    resume: bool,
) -> int:
    """Run with a live display, print the claims and the page's path; the exit code."""
    check_files(folder, [experiment.name for experiment in experiments])
    setting = Setting(size, seeds)
    needing = [experiment.name for experiment in experiments if experiment.needs_gas]
    if needing:
        setting = Setting(size, seeds, find_gas(console, data, " and ".join(needing)))
    elif data is not None:
        gas.read(data)  # a bad file is a mistake even where it is not needed
    with Progress(
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("[dim]left[/]"),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        tasks = {
            one.name: progress.add_task(one.name, total=None, start=False) for one in experiments
        }

        def finished(part: Part, reused: bool) -> None:
            task = tasks[part.name]
            said = f"{part.name} [dim](from the run before)[/]" if reused else part.name
            progress.start_task(task)
            progress.update(task, total=1, completed=1, description=said)
            progress.stop_task(task)
            if not console.is_terminal:
                console.print(f"{part.name}: {duration(part.seconds)}", highlight=False)

        result = reproduce(
            experiments,
            setting,
            folder,
            resume=resume,
            meter_of=lambda one: Bar(progress, tasks[one.name]),
            finished=finished,
            say=lambda said: console.print(
                f"[yellow]{escape(printable(said))}[/]", highlight=False, soft_wrap=True
            ),
        )
    show_result(console, result)
    if result.unwritten is not None:
        raise result.unwritten
    return INTERRUPTED if result.interrupted else 0


def find_gas(console: Console, data: Path | None, name: str) -> gas.Gas:
    """The file that was given, a cached copy, a download; failing all, a labelled stand-in."""
    if data is not None:
        return gas.read(data)
    try:
        return gas.cached() or gas.download(console)
    except gas.NotDownloadedError as error:
        console.print(
            f"[yellow]The gas data could not be downloaded[/] ({error}); {name} runs on a "
            "synthetic stand-in. Give the file with --data to reproduce the paper.",
            highlight=False,
        )
        return gas.surrogate("it could not be downloaded and no file was given with --data")


def show_claims(console: Console, title: str, result: Result, ours: bool) -> None:
    """The rows that are the paper's, or those that are not."""
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    table.add_column(title, ratio=1)
    table.add_column("wanted", max_width=11)
    table.add_column("measured", max_width=18)
    table.add_column("verdict", max_width=16)
    for part in result.parts:
        outcomes = [outcome for outcome in part.outcomes if outcome.ours == ours]
        if outcomes:
            table.add_row(f"\n[bold]{part.name}[/] [dim]{escape(part.where)}[/]")
        for outcome in outcomes:
            table.add_row(*cells(outcome))
    if table.row_count:
        console.print(table)


def cells(outcome: Outcome) -> tuple[str, str, str, str]:
    why = f"\n[dim]{escape(outcome.why)}[/]" if outcome.verdict == NOT_COMPARABLE else ""
    measured = escape(outcome.measured)
    return (
        escape(outcome.says) + why,
        escape(outcome.wanted),
        measured.replace("; ", "\n") if outcome.cases else measured.replace(", ", ",\n"),
        f"[{STYLES[outcome.verdict]}]{escape(outcome.said)}[/]",
    )


def show_result(console: Console, result: Result) -> None:
    show_claims(console, "the paper claims", result, ours=False)
    show_claims(console, "ours, not the paper's", result, ours=True)
    for part in result.parts:
        for note in part.notes:
            console.print(f"[yellow]{part.name}:[/] {escape(note)}", highlight=False)
    counts = count([o for part in result.parts for o in part.outcomes if not o.ours])
    said = ", ".join(f"{n} {PLURAL[verdict]}" for verdict, n in counts.items() if n)
    if result.page is not None:
        seconds = sum(part.seconds for part in result.parts)
        for sentence in story(result.parts):
            console.print(escape(sentence), highlight=False)
        console.print(f"\n{said}, in {duration(seconds)}. The page:", highlight=False)
        console.print(f"[bold]{result.page.resolve()}[/]", highlight=False, soft_wrap=True)
    on = "the same command with --resume goes on."
    if result.interrupted:
        console.print(f"Interrupted: what is finished is kept; {on}", highlight=False)
    if result.unwritten is not None:
        console.print(f"Not all could be written: what was is kept; {on}", highlight=False)
