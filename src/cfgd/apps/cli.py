"""The command line: one function for each command."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cfgd.apps.command import one_sentence

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

    cfgd is a Python library (import cfgd; cfgd.minimize(f, x0)). This command fits linear models
    to tables with it, runs the paper's experiments, and shows what holds.

    **Start here:**

    - `cfgd explore` opens a page on which the methods run while you drag their points;
    - `cfgd fit data.csv --target y` fits a model to a table in a file;
    - `cfgd reproduce` draws the paper's figures and checks its claims (`cfgd reproduce --list`);
    - `cfgd bench` shows where cfgd stands among the solvers of the field.

    **Documentation:** guides, pictures, the reference and every message are pages in the source of
    cfgd, in docs/. There, `make docs` builds the site build/site/index.html, which opens from disk.
    """


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
    goes on from there. What earlier runs left in DIR stays on the page.
    """
    from cfgd.apps.reproduce.console import show_list, show_run
    from cfgd.apps.reproduce.experiments.catalogue import chosen

    console = Console()
    with one_sentence():
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
    training: Annotated[
        bool,
        typer.Option(
            "--training",
            help="Does the fractional direction help in training? Optimizers of optax beside ours.",
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP",
            help="Only these problems: nist, glm, estimators, networks, least-squares, smooth, "
            "cutest; with --training moons, digits, characters, convolution, boundary-layer.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many seeds (0, 1, ...).",
            show_default="5, with --quick 1 or 2",
        ),
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
    --training trains small networks instead, in about ten minutes (--quick in one), and writes
    DIR/training.json and DIR/training.md.
    """
    with one_sentence():
        if training:
            from cfgd.apps.bench.training.console import show_training as show
        else:
            from cfgd.apps.bench.field.console import show
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


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def launch(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="A Python script.")],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENT]...", help="What it is given.")
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", "-n", min=1, help="How many processes.")
    ] = 2,
) -> None:
    """Start several processes of a script on this machine, to try it before a cluster does.

    The script calls `cfgd.distributed.start()` first. Process 0 has the terminal, lines of the
    others come with their number before them; Ctrl-C goes to all. When one fails, the others end
    within 15 seconds, and the exit code is its own.
    """
    with one_sentence():
        from cfgd.apps.launch import launch as start

        if not script.is_file():
            raise ValueError(f"{script} is no file: `cfgd launch` starts a Python script.")
        code = start([sys.executable, str(script), *(args or [])], processes)
    raise typer.Exit(code)


@app.command()
def explore(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("explorer.html"),
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Open it in a browser.")] = True,
) -> None:
    """See what a fractional gradient does: one page with contours, points to drag and sliders."""
    with one_sentence():
        from cfgd.apps.explore.console import show_explorer

        code = show_explorer(Console(), out, opens)
    raise typer.Exit(code)


@app.command()
def fit(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A table: .csv, .csv.gz, .parquet, .feather or .npz (vectors are columns, a"
            " matrix X is X_0, X_1, ...).",
        ),
    ],
    target: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column that is to be predicted.")
    ],
    loss: Annotated[
        str | None,
        typer.Option(
            help="squared, huber, poisson, gamma, logistic or multinomial.",
            show_default="logistic for two values, multinomial for texts, else squared",
        ),
    ] = None,
    l2: Annotated[
        float | None,
        typer.Option(
            help="The penalty l2/2 |w|^2 beside the sum of losses, w of standardised columns.",
            show_default="0",
        ),
    ] = None,
    cross_validate: Annotated[
        bool, typer.Option("--cross-validate", help="Choose the penalty in five folds.")
    ] = False,
    method: Annotated[
        str, typer.Option(help="auto, adaptive_terminal or gradient_descent.")
    ] = "auto",
    missing: Annotated[
        str,
        typer.Option(
            help="What to do with a row in which a value is missing: refuse the file, drop the"
            " row, or put in the mean of the column."
        ),
    ] = "refuse",
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave a column out.", show_default=False),
    ] = None,
    test: Annotated[
        float, typer.Option(metavar="SHARE", help="Of the rows, how many are held out.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(min=0, help="Which rows are held out.")] = 0,
    memory: Annotated[
        float | None,
        typer.Option(
            metavar="MB",
            help="Rows that take more than this as numbers are read from the file for each"
            " gradient.",
            show_default="a quarter of what is free",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Written every minute: the same command goes on from it.",
            show_default=False,
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="How many processes share the rows, on this machine.")
    ] = 1,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of model.json and report.html.")
    ] = Path("fit"),
) -> None:
    """Fit a linear model to a table: coefficients with standard errors, quality, a report.

    Texts are categories, compared with the most frequent; columns are standardised for the fit, and
    coefficients are in their own units. Writes DIR/model.json, for `cfgd predict`, and
    DIR/report.html. Ends with code 1 where the fit did not converge.
    """
    with one_sentence():
        from cfgd.apps.fit.console import launched, show_fit
        from cfgd.apps.fit.run import Asked

        asked = Asked(
            data,
            target,
            loss=loss,
            l2=l2,
            cross_validate=cross_validate,
            method=method,
            missing=missing,
            drop=tuple(drop or ()),
            test=test,
            seed=seed,
            memory=None if memory is None else 1e6 * memory,
            checkpoint=checkpoint,
        )
        several = processes > 1
        code = launched(asked, out, processes) if several else show_fit(Console(), asked, out)
    raise typer.Exit(code)


@app.command()
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The model.json that `cfgd fit` has written.")
    ],
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A table with the columns of the model.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="OUT", help="The file: .csv, .csv.gz, .parquet or .feather."
        ),
    ],
) -> None:
    """Predict the target for every row of a table, with probabilities where it has labels.

    OUT has the rows of DATA in their order. Of a model that was fitted with --missing drop, a row
    in which a value is missing has no prediction; with --missing mean the mean is put in.
    """
    with one_sentence():
        from cfgd.apps.fit.console import show_predict

        code = show_predict(Console(), model, data, out)
    raise typer.Exit(code)
