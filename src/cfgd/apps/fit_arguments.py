"""Command-line options of `cfgd fit`: weights, classes, formulas and standard errors."""

from __future__ import annotations

from typing import Annotated

import typer

Weights = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="A column of weights: the variance of a row is divided by its weight, as in"
        " statsmodels' WLS and var_weights; for counts and classes a row of weight 2 counts"
        " twice.",
        show_default=False,
    ),
]
Offset = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="A column that is added to the linear predictor with coefficient 1, such as the"
        " logarithm of the exposure of counts.",
        show_default=False,
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        metavar="WEIGHTS",
        help="Weights of the classes in the fit: balanced (equal total weight), or numbers such as"
        " yes=2,no=1.",
        show_default=False,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="The positive class of a logistic model, whose odds are modelled.",
        show_default="yes or true, else the second label in alphabetical or numerical order",
    ),
]
FormulaText = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help='The model as a formula, as in R, such as "y ~ a*b + poly(c, 2) + log(d)".',
        show_default="all columns as they are",
    ),
]
Summary = Annotated[
    bool,
    typer.Option(
        "--summary",
        help="Print the coefficients with p-values in a table like that of statsmodels.",
    ),
]
Errors = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="The kind of the standard errors: classical, hc3 (valid for unequal variances) or"
        " cluster (valid for dependent rows within each cluster).",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column that says which cluster a row belongs to, for --errors cluster.",
        show_default=False,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="The scheduler of a Dask cluster whose workers read the files and compute, such as"
        " tcp://scheduler:8786; local starts a worker for each core.",
        show_default=False,
    ),
]
