"""What long commands share: a file for each finished result, `--resume`, and how a run ends.

`cfgd bench`, `cfgd bench --training` and `cfgd reproduce` compute many independent results. Each is
written to a JSON file of its own as soon as it is finished, so that Ctrl-C or a full disk loses at
most the result that was being computed; `--resume` reads these files instead of computing again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from rich.console import Console
from rich.markup import escape

from cfgd._core.files import INTERRUPTED, NotWrittenError, printable, write
from cfgd.apps.json_schema import PARTS

MAX_SECONDS = 1e9  # a larger duration in a saved file is an error
RESUME_HINT = "run the same command with --resume to continue."


@runtime_checkable
class SavedResult(Protocol):
    """A result with the settings it was computed with; it is reused only if they are equal."""

    @property
    def key(self) -> dict[str, Any]: ...


Result = TypeVar("Result", bound=SavedResult)


def result_file(name: str) -> str:
    """Return the path of a saved result, relative to the folder of the report."""
    return f"{PARTS}/{name}.json"


def save_result(folder: Path, name: str, content: Mapping[str, Any]) -> None:
    """Write a finished result to its file."""
    write(folder / result_file(name), json.dumps(content))


def reuse_or_compute(
    saved: Mapping[str, Result], name: str, key: Mapping[str, Any], compute: Callable[[], Result]
) -> tuple[Result, bool]:
    """Return the saved result of this name and key, or compute it, and whether it was reused."""
    result = saved.get(name)
    if result is not None and result.key == key:
        return result, True
    return compute(), False


def machine() -> str:
    """Describe the machine: seconds of another one must not be reused."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


@dataclasses.dataclass
class RunEnd:
    """Why a run ended early, if it did: by Ctrl-C, or because a file could not be written."""

    interrupted: bool = False
    write_error: NotWrittenError | None = None

    @contextlib.contextmanager
    def catch_interrupt(self) -> Iterator[None]:
        """Record Ctrl-C instead of raising it."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

    @contextlib.contextmanager
    def catch_write_error(self) -> Iterator[None]:
        """Record a file that could not be written, so that the results can still be shown."""
        try:
            yield
        except NotWrittenError as error:
            self.write_error = error

    def show(self, console: Console) -> None:
        """Print what was saved if the run ended early."""
        if self.write_error is not None:
            saved = "Some files could not be written; the results finished before are saved"
            console.print(f"{saved}; {RESUME_HINT}", highlight=False)
        elif self.interrupted:
            console.print(
                f"Interrupted: finished results are saved; {RESUME_HINT}", highlight=False
            )

    def exit_code(self) -> int:
        """Return the exit code of the command.

        Raises
        ------
        NotWrittenError
            If a file could not be written; the command prints it as one sentence.
        """
        if self.write_error is not None:
            raise self.write_error
        return INTERRUPTED if self.interrupted else 0


def print_warning(console: Console, text: str) -> None:
    """Print a sentence in yellow; names of files in it may hold markup or control characters."""
    console.print(f"[yellow]{escape(printable(text))}[/]", highlight=False, soft_wrap=True)
