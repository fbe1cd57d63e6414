"""`cfgd fit` and `cfgd predict` on the console: progress, results, and the files they write."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from cfgd._core.files import check_writable, is_same_file, printable, write
from cfgd.apps.errors import EXIT_CODE, EXPECTED
from cfgd.apps.fit.coefficient_rows import (
    cells,
    coefficient_rows,
    coefficients_csv,
    headings,
)
from cfgd.apps.fit.model import read_model
from cfgd.apps.fit.options import FitOptions
from cfgd.apps.fit.prediction import predict
from cfgd.apps.fit.processes import process
from cfgd.apps.fit.progress import ProgressReporter
from cfgd.apps.fit.report_page import report_page
from cfgd.apps.fit.report_text import confusion_rows, outcome, quality_rows, remarks, summary
from cfgd.apps.fit.result import FitResult
from cfgd.apps.fit.run import fit
from cfgd.apps.fit.summary_table import coefficient_table
from cfgd.apps.fit.workers import workers_of

MODEL_FILE, REPORT_FILE = "model.json", "report.html"
COEFFICIENTS_FILE = "coefficients.csv"
MAX_ROWS = 60  # of coefficients; the report has more, coefficients.csv all of them


class ProgressLine(ProgressReporter):
    """Progress in one line of the terminal: the stage, a bar, and the rows read of a pass."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.task = progress, progress.add_task("", total=None)
        self.name = self.description = ""
        self.total_rows = self.read_rows = 0
        self.is_one_pass = False

    def start_stage(self, name: str, rows: int | None = None) -> None:
        self.name, self.read_rows, self.description = name, 0, ""
        self.total_rows = rows or self.total_rows
        self.is_one_pass = rows is not None
        self.progress.reset(self.task, total=rows, description=name)

    def rows_read(self, rows: int) -> None:
        self.read_rows += rows
        if self.is_one_pass:
            self.progress.update(self.task, completed=self.read_rows)
            return
        # the first pass, before the number of rows is known, or one of the passes of a streamed fit
        shown = f": {self.read_rows:,} rows"
        if self.total_rows:
            share = (self.read_rows % self.total_rows) / self.total_rows
            shown = f", {100 * share:.0f} % of a pass"
        self.progress.update(self.task, description=f"{self.name}{self.description}{shown}")

    def update(self, fraction: float, description: str) -> None:
        self.description = f": {description}"
        text = f"{self.name}{self.description}"
        self.progress.update(self.task, total=1.0, completed=fraction, description=text)


@contextlib.contextmanager
def progress_display(console: Console) -> Iterator[ProgressReporter]:
    """Show progress on a terminal, and none where the output is a file or a pipe."""
    if not console.is_terminal:
        yield ProgressReporter()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield ProgressLine(progress)


def run_fit(console: Console, options: FitOptions, out: Path) -> int:
    """Fit, print the results and write the files; return the exit code.

    Of several processes only the first one prints and writes.
    """
    if process()[0] > 0:
        try:
            return 0 if fit(options, ProgressReporter()).success else 1
        except EXPECTED:  # which the first process raises, too, and prints
            return EXIT_CODE
    with progress_display(console) as progress:
        files = [MODEL_FILE, REPORT_FILE, COEFFICIENTS_FILE]
        result = fit(options, progress, lambda: check_writable(out, files))
        html = report_page(result)
    result.model.save(out / MODEL_FILE)
    write(out / REPORT_FILE, html)
    write(out / COEFFICIENTS_FILE, coefficients_csv(result))
    print_result(console, result)
    console.print("Files written:", highlight=False)
    for file in files:
        console.print(f"[bold]{_safe(str((out / file).resolve()))}[/]", soft_wrap=True)
    return 0 if result.success else 1


def run_fit_in_processes(options: FitOptions, out: Path, processes: int) -> int:
    """Run the same command in several processes that share the rows; return the exit code."""
    from cfgd.apps.launch import as_words, launch

    arguments = {
        f"--{name.replace('_', '-')}": value
        for name, value in vars(options).items()
        if name != "data"
    }
    arguments["--memory"] = None if options.memory is None else options.memory / 1e6
    data = (options.data,) if isinstance(options.data, Path) else options.data
    words = [*as_words(arguments | {"--out": out}), "--", *map(str, data)]
    return launch([sys.executable, "-m", "cfgd", "fit", *words], processes, only_errors=True)


def print_result(console: Console, result: FitResult) -> None:
    """Print coefficients, quality and remarks."""
    console.print(_safe(summary(result)), highlight=False)
    if result.options.summary:
        console.print()
        console.print(escape(str(coefficient_table(result))), highlight=False, soft_wrap=True)
    else:
        _print_coefficients(console, result)
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    table.add_column(f"on {result.measured_on}")
    for name in ("model", "baseline"):
        table.add_column(name, justify="right")
    for measure in quality_rows(result):
        table.add_row(*measure)
    console.print(table)
    heads, rows = confusion_rows(result)
    if rows:
        table = Table(pad_edge=False, box=SIMPLE_HEAD)
        table.add_column(heads[0], overflow="fold")
        for head in heads[1:]:
            table.add_column(_safe(head), justify="right")
        for row in rows:
            table.add_row(*map(_safe, row))
        console.print(table)
    for sentence in remarks(result):
        console.print(_safe(sentence), highlight=False)
    style = "" if result.success else "yellow"
    console.print(_safe(outcome(result)), highlight=False, style=style)


def _print_coefficients(console: Console, result: FitResult) -> None:
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    table.add_column("column", overflow="fold")
    for name in headings(result, is_short=True):
        table.add_column(name, justify="right")
    rows = list(coefficient_rows(result))
    heading = ""
    for row in rows[:MAX_ROWS]:
        if row.class_label != heading:
            heading = row.class_label
            table.add_row(f"[bold]{_safe(heading)}[/]")
        table.add_row(_safe(row.term), *map(_safe, cells(result, row, is_short=True)))
    console.print(table)
    if len(rows) > MAX_ROWS:
        more = len(rows) - MAX_ROWS
        console.print(f"{more:,} more coefficients are in {COEFFICIENTS_FILE}.", highlight=False)


def run_predict(
    console: Console,
    model_path: Path,
    data: Path | Sequence[Path],
    out: Path,
    ids: Sequence[str] = (),
    dask: str | None = None,
) -> int:
    """Write predictions for a table, and print where they are; return the exit code."""
    model = read_model(model_path)
    if is_same_file(out, model_path):
        raise ValueError(f"{out} is the model file: choose another name for the predictions.")
    with progress_display(console) as progress, workers_of(dask) as workers:
        progress.start_stage("predicting")
        memory = workers.memory_budget(None)
        written = predict(model, data, out, memory, progress.rows_read, ids, workers)
    for sentence in written.sentences:
        style = "yellow" if sentence.startswith("Warning") else ""
        console.print(_safe(sentence), highlight=False, style=style)
    noun = "prediction" if written.rows == 1 else "predictions"
    console.print(
        _safe(f"{written.rows:,} {noun} of {model.target!r} written to:"), highlight=False
    )
    console.print(f"[bold]{_safe(str(out.resolve()))}[/]", soft_wrap=True)
    return 0


def _safe(text: str) -> str:
    """Return the text without control characters and markup, which the terminal would obey."""
    return escape(printable(text))
