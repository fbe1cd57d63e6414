"""Print the errors that a user can cause as one sentence, without a traceback, and exit with 2."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import typer
from rich.console import Console
from rich.markup import escape

from cfgd._core.engines.lost_cluster import LostClusterError
from cfgd._core.extras import MissingExtraError
from cfgd._core.files import NotWrittenError, printable, reason

EXIT_CODE = 2
EXPECTED = (ValueError, NotWrittenError, MissingExtraError, LostClusterError)


@contextlib.contextmanager
def exit_on_expected_error() -> Iterator[None]:
    """Print expected errors to stderr and exit; let unexpected ones pass, with their traceback.

    Expected are invalid input (`ValueError`), files that cannot be read or written, and optional
    libraries that are not installed.
    """
    try:
        yield
    except EXPECTED as error:
        raise _exit(str(error)) from None
    except BrokenPipeError:  # the reader of a pipe, such as `| head`, has closed it
        raise
    except OSError as error:
        if error.filename is not None:
            raise _exit(f"{error.filename}: {reason(error)}.") from None
        # stdout cannot be written: flushing it at the end of the program must not fail once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise _exit(f"The output could not be written: {reason(error)}.") from None


def _exit(message: str) -> typer.Exit:
    text = f"[bold red]cfgd:[/] {escape(printable(message))}"
    Console(stderr=True).print(text, highlight=False, soft_wrap=True)
    return typer.Exit(EXIT_CODE)
