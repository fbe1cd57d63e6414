"""The command line: `cfgd reproduce` and what comes after it, one function each."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from cfgd.output import NotWrittenError, printable, reason

app = typer.Typer(
    name="cfgd",
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool | None) -> None:
    if asked:
        typer.echo(f"cfgd {importlib.metadata.version('cfgd')}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = None,
) -> None:
    """Caputo fractional gradient descent: gradient descent with a memory.

    cfgd is a Python library (import cfgd; cfgd.minimize(f, x0)). This command runs the paper's
    experiments with it and shows what holds.

    **Start here:**

    - `cfgd reproduce --list` shows what can be reproduced;
    - `cfgd reproduce fig1` makes one figure, in a few seconds;
    - `cfgd reproduce` makes all of them, in about two minutes;
    - `cfgd bench` shows where cfgd stands among the solvers of the field.
    """


def _fail(message: str) -> typer.Exit:
    said = f"[bold red]cfgd:[/] {escape(printable(message))}"
    Console(stderr=True).print(said, highlight=False, soft_wrap=True)
    return typer.Exit(2)


@contextlib.contextmanager
def _one_sentence() -> Iterator[None]:
    """What is wrong with the input, or with the disk, is no traceback."""
    try:
        yield
    except (ValueError, NotWrittenError) as error:
        raise _fail(str(error)) from None
    except BrokenPipeError:  # `| head` has seen enough
        raise
    except OSError as error:
        if error.filename is not None:
            raise _fail(f"{error.filename}: {reason(error)}.") from None
        # what could not be said is not to be said again at the end of the program
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise _fail(f"The output could not be written: {reason(error)}.") from None


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help="Which experiments, e.g. fig1 uci networks; all if none is named.",
            show_default=False,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="The paper's iteration counts and all its parameter values."),
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many seeds (0, 1, ...) each experiment is repeated with.",
            show_default="each experiment's own",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the report.")] = Path(
        "report"
    ),
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The gas data of uci: CSV (or .csv.gz), or UCI's batch*.dat files as a folder or"
            " zip. Without it: a cached copy, a download, or a synthetic stand-in.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Do not repeat what an interrupted run finished.")
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments and stop.")] = False,
) -> None:
    """Run the paper's experiments and hold its claims against them.

    Ends with a table of all claims and with a page, DIR/index.html, that shows each figure beside
    what the paper says about it. Ctrl-C keeps what is finished, of the networks each run; --resume
    goes on from there.
    What earlier runs left in DIR stays on the page.
    """
    from cfgd.reproduce.console import show_list, show_run
    from cfgd.reproduce.experiments.catalogue import chosen

    console = Console()
    with _one_sentence():
        experiments = chosen(names or [])
        if listing:
            show_list(console, experiments)
            return
        code = show_run(
            console,
            experiments,
            size="full" if full else "quick",
            seeds=seeds,
            folder=out,
            data=data,
            resume=resume,
        )
    raise typer.Exit(code)


@app.command()
def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer and smaller problems, in under three minutes.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP",
            help="Only these problems: nist, glm, estimators, networks, least-squares, smooth, "
            "cutest.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="How many seeds (0, 1, ...).", show_default="5, with --quick 1"),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of bench.json and of the figure.")
    ] = Path("bench"),
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The gas data as CSV (or .csv.gz).", show_default=False),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Do not repeat what an interrupted run finished.")
    ] = False,
) -> None:
    """Where cfgd stands: Auto against SciPy, scikit-learn, optax, optimistix and the paper.

    NIST's regressions, linear models, the estimators, networks, least squares, standard test
    problems, and CUTEst where sif2jax is installed. The tables have work and time to the same
    accuracy, for networks the loss with equal work and in equal time, and every loss of cfgd. All
    of it takes about an hour. Ctrl-C keeps what is finished; --resume goes on from there.
    """
    from cfgd.bench.field.console import show

    with _one_sentence():
        code = show(
            Console(),
            out,
            only=only or [],
            seeds=seeds,
            quick=quick,
            data=data,
            resume=resume,
        )
    raise typer.Exit(code)
