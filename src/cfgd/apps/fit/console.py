"""What `cfgd fit` and `cfgd predict` show on the console."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from cfgd import distributed
from cfgd._core.files import check_writable, printable, write
from cfgd.apps.fit.model import read_model
from cfgd.apps.fit.page import page
from cfgd.apps.fit.prediction import predict
from cfgd.apps.fit.run import SHARE, Asked, Fitted, Meter, fit, free_memory
from cfgd.apps.fit.words import ending, groups, measures, sentences, summary
from cfgd.apps.launch import as_words, launch

MODEL, PAGE = "model.json", "report.html"
MOST_ROWS = 60  # of coefficients: the page has more, the file of the model all


class Bar(Meter):
    """One line: the stage, and how far it is."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.task = progress, progress.add_task("", total=None)
        self.name, self.rows, self.seen, self.words = "", 0, 0, ""

    def stage(self, name: str, rows: int | None = None) -> None:
        self.name, self.seen, self.words = name, 0, ""
        self.rows = rows or self.rows
        self.of_rows = rows is not None
        self.progress.reset(self.task, total=rows, description=name)

    def advance(self, rows: int) -> None:
        self.seen += rows
        if self.of_rows:
            self.progress.update(self.task, completed=self.seen)
        else:
            # a pass of a streamed fit, or the first, of which the end is not known
            words = f": {self.seen:,} rows"
            if self.rows:
                words = f", {100 * (self.seen % self.rows) / self.rows:.0f} % of a pass"
            self.progress.update(self.task, description=f"{self.name}{self.words}{words}")

    def at(self, far: float, words: str) -> None:
        self.words = f": {words}"
        self.progress.update(
            self.task, total=1.0, completed=far, description=f"{self.name}{self.words}"
        )


@contextlib.contextmanager
def watched(console: Console) -> Iterator[Meter]:
    """A bar where somebody looks."""
    if not console.is_terminal:
        yield Meter()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bar(progress)


def show_fit(console: Console, asked: Asked, out: Path) -> int:
    """Fit with a live display, print what came out and where it was written; the exit code.

    Of several processes the first one does all that can be seen.
    """
    me = distributed.start()
    if me.index > 0:
        return 0 if fit(asked, Meter()).good else 1
    with watched(console) as meter:
        done = fit(asked, meter, lambda: check_writable(out, [MODEL, PAGE]))
        html = page(done)
    done.model.save(out / MODEL)
    write(out / PAGE, html)
    show(console, done)
    for file in (MODEL, PAGE):
        console.print(f"[bold]{_safe(str((out / file).resolve()))}[/]", soft_wrap=True)
    return 0 if done.good else 1


def launched(asked: Asked, out: Path, processes: int) -> int:
    """The same command in so many processes, which share the rows; the exit code."""
    given = {
        f"--{name.replace('_', '-')}": value
        for name, value in vars(asked).items()
        if name != "data"
    }
    given["--memory"] = None if asked.memory is None else asked.memory / 1e6
    words = [*as_words(given | {"--out": out}), "--", str(asked.data)]
    return launch([sys.executable, "-m", "cfgd", "fit", *words], processes, only_errors=True)


def show(console: Console, done: Fitted) -> None:
    console.print(_safe(summary(done)), highlight=False)
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    table.add_column("column", overflow="fold")
    for name in ("coefficient", "standard error", "95 % interval"):
        table.add_column(name, justify="right")
    left = MOST_ROWS
    for name, rows in groups(done):
        if name:
            table.add_row(f"[bold]{_safe(name)}[/]")
        for row in rows[: max(0, left)]:
            table.add_row(*map(_safe, row))
        left -= len(rows)
    console.print(table)
    if left < 0:
        console.print(f"{-left:,} more coefficients are in {MODEL}.", highlight=False)
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    table.add_column(f"on {done.measured_on}")
    for name in ("model", "baseline"):
        table.add_column(name, justify="right")
    for measure in measures(done):
        table.add_row(*measure)
    console.print(table)
    for sentence in sentences(done):
        console.print(_safe(sentence), highlight=False)
    style = "" if done.good else "yellow"
    console.print(_safe(ending(done)), highlight=False, style=style)


def show_predict(console: Console, model: Path, data: Path, out: Path) -> int:
    found = read_model(model)
    if out.exists() and out.samefile(model):
        raise ValueError(f"{out} is the model: give predictions another name.")
    with watched(console) as meter:
        meter.stage("predicting")
        count = predict(found, data, out, SHARE * free_memory(), meter.advance)
    said = f"{count:,} predictions of {found.target!r}:"
    console.print(_safe(said), highlight=False)
    console.print(f"[bold]{_safe(str(out.resolve()))}[/]", soft_wrap=True)
    return 0


def _safe(text: str) -> str:
    return escape(printable(text))
