"""The command line of `cfgd`: one function for each command.

Libraries of a command are imported inside its function, so that `cfgd --help` is fast and a missing
extra concerns only the commands that need it.
"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cfgd.apps import bench_arguments, fit_arguments, reading_arguments
from cfgd.apps.errors import exit_on_expected_error

app = typer.Typer(
    name="cfgd",
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool | None) -> None:
    if requested:
        typer.echo(f"cfgd {importlib.metadata.version('cfgd')}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = None,
) -> None:
    """Caputo fractional gradient descent: gradient descent with a memory.

    cfgd is a Python library (import cfgd; cfgd.minimize(f, x0)). This command fits linear models
    to tables and reproduces the experiments of the paper.

    **Start here:**

    - `cfgd explore` opens an interactive page that runs the methods as you drag their points;
    - `cfgd fit data.csv --target y` fits a model to a table in a file;
    - `cfgd reproduce` draws the paper's figures and checks its claims (`cfgd reproduce --list`);
    - `cfgd bench` compares cfgd with other solvers.

    **Documentation:** guides, figures, the reference and an explanation of every message are in the
    folder docs/ of the source. `make docs` builds the site build/site/index.html from it.
    """


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help="The experiments to run, e.g. fig1 uci networks; all by default.",
            show_default=False,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Use the iteration counts and all parameter values of the paper."
        ),
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many seeds (0, 1, ...) to run each experiment with.",
            show_default="each experiment's own",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the report.")] = Path(
        "report"
    ),
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The gas data for uci: CSV (or .csv.gz), or UCI's batch*.dat files as a folder or"
            " zip. By default a cached copy, a download, or synthetic data.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Skip the experiments that an interrupted run has finished."),
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments and stop.")] = False,
) -> None:
    """Run the experiments of the paper and check its claims.

    Prints a table of all claims and writes the page DIR/index.html, with each figure next to what
    the paper says about it. Finished results are saved, so that --resume continues after Ctrl-C.
    Results of earlier runs in DIR stay on the page.
    """
    from cfgd.apps.reproduce.console import show_list, show_run
    from cfgd.apps.reproduce.experiments.catalogue import chosen

    console = Console()
    with exit_on_expected_error():
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
    quick: bench_arguments.Quick = False,
    training: bench_arguments.Training = False,
    fractional: bench_arguments.Fractional = False,
    rule: bench_arguments.Rule = None,
    only: bench_arguments.Only = None,
    seeds: bench_arguments.Seeds = None,
    seconds: bench_arguments.Seconds = None,
    out: bench_arguments.Out = Path("bench"),
    data: bench_arguments.Data = None,
    resume: bench_arguments.Resume = False,
    listing: bench_arguments.Listing = False,
) -> None:
    """Compare cfgd with SciPy, scikit-learn, optax and optimistix.

    Without --training and --fractional, the solver Auto is compared on curve fits, linear models,
    networks, physics-informed networks, least squares and standard test problems (--list shows the
    groups). The tables have the cost and the time to the same accuracy, for networks the loss at
    equal cost and equal time, and mark every problem on which cfgd is worse. A full run takes about
    four hours, more than two of them for pinn. It writes DIR/bench.json and figures.

    --training trains five small networks with the optimizers of cfgd and of optax: ten minutes (one
    with --quick). It writes DIR/training.json and DIR/training.md.

    --fractional compares the published fractional rules of cfgd.zoo with gradient descent, heavy
    ball, Nesterov's method, Adam and L-BFGS, each with tuned hyperparameters: less than an hour
    (three minutes with --quick). It writes DIR/fractional.html, .md, .csv and .json.
    """
    with exit_on_expected_error():
        show = bench_arguments.comparison(training, fractional, rule)
        if listing:
            bench_arguments.show_groups(Console(), training, fractional)
            return
        code = show(
            Console(),
            out,
            only=only or [],
            seeds=seeds,
            quick=quick,
            data=data,
            resume=resume,
            seconds=seconds,
        )
    raise typer.Exit(code)


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def launch(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="A Python script.")],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENT]...", help="Arguments of the script.")
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", "-n", min=1, help="The number of processes.")
    ] = 2,
) -> None:
    """Run a script in several processes on this machine, to test it before using a cluster.

    The script must call `cfgd.distributed.start()` first. Process 0 prints to the terminal; output
    lines of the others begin with their number. Ctrl-C is sent to all. When one process fails, the
    others are ended within 15 seconds, and its exit code is returned.
    """
    with exit_on_expected_error():
        from cfgd.apps.launch import launch as launch_processes

        if not script.is_file():
            raise ValueError(f"{script} is not a file: `cfgd launch` runs a Python script.")
        code = launch_processes([sys.executable, str(script), *(args or [])], processes)
    raise typer.Exit(code)


@app.command()
def explore(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")] = Path(
        "explorer.html"
    ),
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open it in a browser.")
    ] = True,
) -> None:
    """Explore fractional gradients on an interactive page: contours, points to drag, sliders."""
    with exit_on_expected_error():
        from cfgd.apps.explore.console import show_explorer

        code = show_explorer(out, open_browser)
    raise typer.Exit(code)


@app.command()
def fit(
    data: reading_arguments.Data,
    target: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="The column to predict.",
            show_default="the left-hand side of --formula",
        ),
    ] = "",
    loss: Annotated[
        str | None,
        typer.Option(
            help="The loss function: squared, huber (robust), poisson (counts), gamma (positive"
            " numbers), logistic (two classes) or multinomial (several classes).",
            show_default="logistic for two different values, multinomial for more different texts,"
            " else squared",
        ),
    ] = None,
    l2: Annotated[
        float | None,
        typer.Option(
            help="The strength of the ridge penalty l2/2 |w|^2 that is added to the sum of losses;"
            " w are the coefficients of the standardised columns.",
            show_default="0",
        ),
    ] = None,
    cross_validate: Annotated[
        bool,
        typer.Option(
            "--cross-validate", help="Choose the penalty by cross-validation in five folds."
        ),
    ] = False,
    method: Annotated[
        str, typer.Option(help="The solver: auto, adaptive_terminal or gradient_descent.")
    ] = "auto",
    missing: Annotated[
        str,
        typer.Option(
            help="What to do about missing values: refuse (stop with an error), drop (leave the row"
            " out), or mean (impute the mean of the column; missing texts become a level)."
        ),
    ] = "refuse",
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Leave a column out; may be given several times.",
            show_default=False,
        ),
    ] = None,
    test: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="The share of rows to hold out for measuring the quality, from 0 to 0.9.",
        ),
    ] = 0.2,
    seed: Annotated[int, typer.Option(min=0, help="The seed that selects the held-out rows.")] = 0,
    memory: Annotated[
        float | None,
        typer.Option(
            metavar="MB",
            help="If the rows need more memory than this, they are streamed from the file: it is"
            " read once for each evaluation.",
            show_default="a quarter of the free memory",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file with the state of the solver, written every minute; the same command"
            " resumes from it.",
            show_default=False,
        ),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(min=1, help="The number of processes on this machine that share the rows."),
    ] = 1,
    dask: fit_arguments.Dask = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for model.json and report.html.")
    ] = Path("fit"),
    weights: fit_arguments.Weights = None,
    offset: fit_arguments.Offset = None,
    class_weight: fit_arguments.ClassWeight = None,
    positive: fit_arguments.Positive = None,
    formula: fit_arguments.FormulaText = None,
    summary: fit_arguments.Summary = False,
    errors: fit_arguments.Errors = "classical",
    cluster: fit_arguments.Cluster = None,
    na: reading_arguments.Na = None,
    decimal: reading_arguments.Decimal = None,
    bad_values: reading_arguments.BadValues = "refuse",
    dates: reading_arguments.Dates = "days",
    date_order: reading_arguments.DateOrder = None,
    id: reading_arguments.Id = None,
    keep: reading_arguments.Keep = None,
    category: reading_arguments.Category = None,
    number: reading_arguments.Number = None,
    sheet: reading_arguments.Sheet = None,
    reference: reading_arguments.Reference = None,
    rare: reading_arguments.Rare = None,
) -> None:
    """Fit a linear model to a table: coefficients with standard errors, quality, a report.

    Separator, encoding, decimal commas, dates and id columns are detected; detections that could be
    wrong are printed. A column of texts is categorical: each level has a coefficient relative to
    the most frequent level. Columns are standardised for the fit; the coefficients are in original
    units. Writes DIR/model.json (for `cfgd predict`), DIR/report.html and DIR/coefficients.csv. The
    exit code is 1 if the fit did not converge.
    """
    with exit_on_expected_error():
        from cfgd.apps.fit.console import run_fit, run_fit_in_processes
        from cfgd.apps.fit.options import FitOptions

        options = FitOptions(
            tuple(data) if len(data) > 1 else data[0],
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
            weights=weights,
            offset=offset,
            class_weight=class_weight,
            positive=positive,
            formula=formula,
            summary=summary,
            errors=errors,
            cluster=cluster,
            dask=dask,
            na=tuple(na or ()),
            decimal=decimal,
            bad_values=bad_values,
            dates=dates,
            date_order=date_order,
            id=tuple(id or ()),
            keep=tuple(keep or ()),
            category=tuple(category or ()),
            number=tuple(number or ()),
            sheet=sheet,
            reference=tuple(reference or ()),
            rare=rare,
        )
        if processes > 1 and dask is not None:
            raise ValueError("--processes and --dask: give one of them.")
        if processes > 1:
            code = run_fit_in_processes(options, out, processes)
        else:
            code = run_fit(Console(), options, out)
    raise typer.Exit(code)


@app.command()
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The file model.json that `cfgd fit` wrote.")
    ],
    data: reading_arguments.DataOfPrediction,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="OUT",
            help="The file to write: .csv, .csv.gz, .parquet or .feather.",
        ),
    ],
    id: reading_arguments.IdOfPrediction = None,
    dask: fit_arguments.Dask = None,
) -> None:
    """Predict the target for every row of a table, with the probability of each class label.

    OUT has a row for each row of DATA, in the same order. Missing values are treated as in the fit:
    with --missing drop their rows have no prediction, with --missing mean the mean of the training
    rows is imputed.
    """
    with exit_on_expected_error():
        from cfgd.apps.fit.console import run_predict

        found = tuple(data) if len(data) > 1 else data[0]
        code = run_predict(Console(), model, found, out, id or [], dask)
    raise typer.Exit(code)
