"""`cfgd reproduce` on the console: progress, the table of claims, and the path of the page."""

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

from cfgd.apps.data import gas
from cfgd.apps.page.document import duration
from cfgd.apps.reproduce.experiment import Experiment, Setting, Size
from cfgd.apps.reproduce.report.claim import FAILS, HOLDS, HOLDS_FOR, NOT_COMPARABLE, Outcome
from cfgd.apps.reproduce.report.conclusions import conclusions
from cfgd.apps.reproduce.report.page import PLURAL
from cfgd.apps.reproduce.report.report import count_verdicts
from cfgd.apps.reproduce.report.result import ExperimentResult
from cfgd.apps.reproduce.runner import ReproduceReport, check_files, reproduce
from cfgd.apps.resumable import print_warning

STYLES = {HOLDS: "green", HOLDS_FOR: "yellow", FAILS: "bold red", NOT_COMPARABLE: "dim"}


class ProgressMeter:
    """A meter that is one line of the progress display."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task, self.stopped = progress, task, False

    def start(self, total: float) -> None:
        self.progress.reset(self.task, total=total)

    def advance(self, amount: float) -> None:
        self.progress.advance(self.task, amount)


def show_list(console: Console, experiments: Sequence[Experiment]) -> None:
    """Print the experiments as a table."""
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
    """Run the experiments with progress, print claims and path, and return the exit code."""
    check_files(folder, [experiment.name for experiment in experiments])
    setting = Setting(size, seeds)
    need_gas = [experiment.name for experiment in experiments if experiment.needs_gas]
    if need_gas:
        setting = Setting(size, seeds, find_gas(console, data, " and ".join(need_gas)))
    elif data is not None:
        gas.read(data)  # an unreadable file is an error even if no experiment needs it
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

        def on_finished(result: ExperimentResult, reused: bool) -> None:
            task, suffix = tasks[result.name], " [dim](from the previous run)[/]" if reused else ""
            progress.start_task(task)
            progress.update(task, total=1, completed=1, description=f"{result.name}{suffix}")
            progress.stop_task(task)
            if not console.is_terminal:
                console.print(f"{result.name}: {duration(result.seconds)}", highlight=False)

        report = reproduce(
            experiments,
            setting,
            folder,
            resume=resume,
            meter_for=lambda one: ProgressMeter(progress, tasks[one.name]),
            on_finished=on_finished,
            warn=lambda text: print_warning(console, text),
        )
    show_report(console, report)
    return report.end.exit_code()


def find_gas(console: Console, data: Path | None, names: str) -> gas.Gas:
    """Return the gas data: the given file, a cached copy, a download, or a synthetic stand-in."""
    if data is not None:
        return gas.read(data)
    try:
        return gas.cached() or gas.download(console)
    except gas.NotDownloadedError as error:
        console.print(
            f"[yellow]The gas data could not be downloaded[/] ({error}); {names} runs on a "
            "synthetic stand-in. Give the file with --data to reproduce the paper.",
            highlight=False,
        )
        return gas.surrogate("it could not be downloaded and no file was given with --data")


def show_claims(console: Console, title: str, report: ReproduceReport, ours: bool) -> None:
    """Print the table of the paper's claims, or of ours."""
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    table.add_column(title, ratio=1)
    table.add_column("expected", max_width=11)
    table.add_column("measured", max_width=18)
    table.add_column("verdict", max_width=16)
    for result in report.results:
        outcomes = [outcome for outcome in result.outcomes if outcome.ours == ours]
        if outcomes:
            table.add_row(f"\n[bold]{result.name}[/] [dim]{escape(result.where)}[/]")
        for outcome in outcomes:
            table.add_row(*claim_cells(outcome))
    if table.row_count:
        console.print(table)


def claim_cells(outcome: Outcome) -> tuple[str, str, str, str]:
    """Return the cells of a row of the table of claims."""
    why = f"\n[dim]{escape(outcome.why)}[/]" if outcome.verdict == NOT_COMPARABLE else ""
    measured = escape(outcome.measured)
    return (
        escape(outcome.says) + why,
        escape(outcome.wanted),
        measured.replace("; ", "\n") if outcome.cases else measured.replace(", ", ",\n"),
        f"[{STYLES[outcome.verdict]}]{escape(outcome.verdict_text)}[/]",
    )


def show_report(console: Console, report: ReproduceReport) -> None:
    """Print claims, notes, conclusions and the path of the page."""
    show_claims(console, "the paper claims", report, ours=False)
    show_claims(console, "additional claims, not in the paper", report, ours=True)
    for result in report.results:
        for note in result.notes:
            console.print(f"[yellow]{result.name}:[/] {escape(note)}", highlight=False)
    counts = count_verdicts([o for result in report.results for o in result.outcomes if not o.ours])
    counted = ", ".join(f"{n} {PLURAL[verdict]}" for verdict, n in counts.items() if n)
    if report.page is not None:
        seconds = sum(result.seconds for result in report.results)
        for sentence in conclusions(report.results):
            console.print(escape(sentence), highlight=False)
        console.print(f"\n{counted}, in {duration(seconds)}. The page:", highlight=False)
        console.print(f"[bold]{report.page.resolve()}[/]", highlight=False, soft_wrap=True)
    report.end.show(console)
