"""What the commands share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import typer
from rich.console import Console
from rich.markup import escape

from cfgd._core.extras import MissingExtraError
from cfgd._core.files import NotWrittenError, printable, reason


def _fail(message: str) -> typer.Exit:
    said = f"[bold red]cfgd:[/] {escape(printable(message))}"
    Console(stderr=True).print(said, highlight=False, soft_wrap=True)
    return typer.Exit(2)


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """What is wrong with the input, or with the disk, is no traceback."""
    try:
        yield
    except (ValueError, NotWrittenError, MissingExtraError) as error:
        raise _fail(str(error)) from None
    except BrokenPipeError:  # `| head` has seen enough
        raise
    except OSError as error:
        if error.filename is not None:
            raise _fail(f"{error.filename}: {reason(error)}.") from None
        # what could not be said is not to be said again at the end of the program
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise _fail(f"The output could not be written: {reason(error)}.") from None
