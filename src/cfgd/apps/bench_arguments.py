"""Options of `cfgd bench`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

Quick = Annotated[
    bool,
    typer.Option("--quick", help="Run fewer and smaller problems, in under three minutes."),
]
Training = Annotated[
    bool,
    typer.Option(
        "--training",
        help="Compare the fractional direction with optimizers of optax in training networks.",
    ),
]
Fractional = Annotated[
    bool,
    typer.Option(
        "--fractional",
        help="Compare the published fractional rules of cfgd.zoo at equal gradients.",
    ),
]
Rule = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.py:CLASS",
        help="With --fractional: a rule of your own, a subclass of cfgd.zoo.UpdateRule. The file"
        " is run.",
        show_default=False,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP",
        help="Run only these problems: nist, fits, bounds, glm, estimators, networks, pinn, "
        "least-squares, smooth, cutest, cutest-bounds; with --training moons, digits, "
        "characters, convolution, boundary-layer; with --fractional quadratics, 'least squares', "
        "logistic, 'test functions', networks, minibatches.",
        show_default=False,
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="How many seeds (0, 1, ...).",
        show_default="5, with --quick 1 or 2, but 5 with --fractional",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(min=0.1, help="Seconds of each run of pinn.", show_default="30, with --quick 2"),
]
Out = Annotated[
    Path, typer.Option(metavar="DIR", help="The folder for bench.json and the figures.")
]
Data = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The gas data as CSV (or .csv.gz).", show_default=False),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Skip what an interrupted run has finished.")
]


def comparison(training: bool, fractional: bool, rule: str | None) -> Callable[..., int]:
    """Return the function that runs what the options ask for; its module is imported here."""
    if fractional and training:
        raise ValueError("--fractional and --training are two comparisons: give one of them.")
    if rule is not None and not fractional:
        raise ValueError("--rule is an option of --fractional: give both.")
    if fractional:
        from cfgd.apps.bench.fractional.console import show_fractional

        return functools.partial(show_fractional, rule=rule)
    if training:
        from cfgd.apps.bench.training.console import show_training

        return show_training
    from cfgd.apps.bench.field.console import show

    return show
