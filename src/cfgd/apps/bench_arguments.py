"""Options of `cfgd bench`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

Quick = Annotated[
    bool,
    typer.Option("--quick", help="Run fewer and smaller problems (under three minutes)."),
]
Training = Annotated[
    bool,
    typer.Option(
        "--training",
        help="Compare the optimizers of cfgd with those of optax in network training.",
    ),
]
Fractional = Annotated[
    bool,
    typer.Option(
        "--fractional",
        help="Compare the published fractional rules of cfgd.zoo with standard optimizers.",
    ),
]
Rule = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.py:CLASS",
        help="With --fractional: also compare a custom rule, a subclass of cfgd.zoo.UpdateRule. "
        "The file is executed.",
        show_default=False,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP",
        help="Run only this group of problems; may be repeated. --list shows the groups.",
        show_default=False,
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of random seeds (0, 1, ...).",
        show_default="5; with --quick 1, or 2 for --training, 5 for --fractional",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        help="Time limit in seconds for each solver of the group pinn.",
        show_default="30, with --quick 2",
    ),
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="The folder for the results.")]
Data = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The gas data of the paper, as CSV or .csv.gz.", show_default=False
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted run: reuse its finished results.")
]
Listing = Annotated[bool, typer.Option("--list", help="List the groups of problems and stop.")]

# The groups of each comparison, in the order in which they run.
GROUPS = {
    "nist": "NIST's 27 certified regressions, two starts each: Jacobians to six digits",
    "fits": "99 curve fits, given and perturbed starts: success rate, gradients, time",
    "bounds": "NIST's regressions with an active bound: Jacobians",
    "glm": "logistic and Poisson regression, scikit-learn's data sets: time",
    "estimators": "the scikit-learn estimators of cfgd and those of scikit-learn: time",
    "networks": "the paper's networks: loss after equal time and equal work",
    "pinn": "physics-informed networks, seven equations: relative error after equal time",
    "least-squares": "linear least squares: matrix products to a relative error of 1e-8",
    "smooth": "test functions and linear models: gradients to 1e-8 of the initial norm",
    "cutest": "unconstrained problems of CUTEst: gradients to 1e-8 of the initial norm",
    "cutest-bounds": "problems of CUTEst with bounds: gradients to 1e-8 of the initial norm",
}
TRAINING_GROUPS = {
    "moons": "classification of two moons, network 2-16-16-1",
    "digits": "classification of digits, dense network 64-32-10",
    "characters": "next character of a text, embedding and dense network",
    "convolution": "classification of digits, convolutional network",
    "boundary-layer": "physics-informed network for -0.05 u'' + u' = 1",
}
FRACTIONAL_GROUPS = {
    "quadratics": "condition numbers 10 to 1e8, aligned and rotated eigenvectors",
    "least squares": "the paper's random least squares, and its gas data",
    "logistic": "logistic regression with well and badly scaled columns",
    "test functions": "eleven functions of Moré, Garbow and Hillstrom",
    "networks": "the paper's networks for h1, h2 and h3",
    "minibatches": "networks for two moons and digits, trained on minibatches",
}


def show_groups(console: Console, training: bool, fractional: bool) -> None:
    """Print the groups of a comparison with their descriptions."""
    groups = FRACTIONAL_GROUPS if fractional else TRAINING_GROUPS if training else GROUPS
    table = Table("group", "problems, and what is measured", box=None, pad_edge=False)
    for name, description in groups.items():
        table.add_row(f"[bold]{name}[/]", description)
    console.print(table)


def comparison(training: bool, fractional: bool, rule: str | None) -> Callable[..., int]:
    """Return the function that runs the chosen comparison; its module is imported here."""
    if fractional and training:
        raise ValueError("--fractional and --training are different comparisons; use one of them.")
    if rule is not None and not fractional:
        raise ValueError("--rule can only be used with --fractional.")
    if fractional:
        from cfgd.apps.bench.fractional.console import show_fractional

        return functools.partial(show_fractional, rule=rule)
    if training:
        from cfgd.apps.bench.training.console import show_training

        return show_training
    from cfgd.apps.bench.field.console import show

    return show
