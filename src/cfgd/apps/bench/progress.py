"""What is seen of a benchmark while it runs, and what is said where nobody watches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cfgd._core.files import printable

# one of many may take minutes: longer than what the estimate looks back on by itself
LOOKS_BACK = 3600.0
ON = "the same command with --resume goes on."


class Watch:
    """Of so many parts: which is being measured, which is done, and what is wrong."""

    def __init__(self, console: Console, bar: Progress, task: TaskID) -> None:
        self.console, self.bar, self.task = console, bar, task

    def say(self, what: str) -> None:
        self.bar.update(self.task, description=what)

    def finished(self, what: str, reused: bool) -> None:
        self.bar.advance(self.task)
        if not self.console.is_terminal:
            before = " (from the run before)" if reused else ""
            self.console.print(f"{what}{before}", highlight=False, soft_wrap=True)

    def warn(self, said: str) -> None:
        words = f"[yellow]{escape(printable(said))}[/]"
        self.console.print(words, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def watched(console: Console, parts: int) -> Iterator[Watch]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, speed_estimate_period=LOOKS_BACK) as bar:
        yield Watch(console, bar, bar.add_task("", total=parts))


def show_files(console: Console, files: list[str], interrupted: bool, unwritten: bool) -> None:
    """Where the report is, or why it is not."""
    if unwritten:
        console.print(f"Not all could be written: what was is kept; {ON}", highlight=False)
        return
    console.print(" and ".join(files), soft_wrap=True)
    if interrupted:
        console.print(f"Interrupted: what is finished is kept; {ON}", highlight=False)
