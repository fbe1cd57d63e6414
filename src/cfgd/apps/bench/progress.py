"""The progress display of the benchmarks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cfgd.apps.resumable import print_warning

# Period in seconds for the estimate of the remaining time. It is longer than rich's default of 30
# seconds, because one item may take minutes.
ESTIMATE_PERIOD = 3600.0


@runtime_checkable
class ProgressDisplay(Protocol):
    """The progress display of a benchmark."""

    def describe(self, text: str) -> None:
        """Show what is being measured now."""

    def finish(self, text: str, reused: bool) -> None:
        """Count one item as finished; `reused` if an earlier run has measured it."""

    def warn(self, text: str) -> None:
        """Print a warning."""


class NoProgress:
    """A progress display without output."""

    def describe(self, text: str) -> None:
        pass

    def finish(self, text: str, reused: bool) -> None:
        pass

    def warn(self, text: str) -> None:
        pass


class ProgressBar:
    """A progress bar on a terminal, or a line for each finished item if there is no terminal."""

    def __init__(self, console: Console, bar: Progress, task: TaskID) -> None:
        self.console, self.bar, self.task = console, bar, task

    def describe(self, text: str) -> None:
        self.bar.update(self.task, description=text)

    def finish(self, text: str, reused: bool) -> None:
        self.bar.advance(self.task)
        if not self.console.is_terminal:
            suffix = " (from the previous run)" if reused else ""
            self.console.print(f"{text}{suffix}", highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        print_warning(self.console, text)


@contextlib.contextmanager
def progress_bar(console: Console, total: int) -> Iterator[ProgressBar]:
    """Show a progress bar for `total` items."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, speed_estimate_period=ESTIMATE_PERIOD) as bar:
        yield ProgressBar(console, bar, bar.add_task("", total=total))
