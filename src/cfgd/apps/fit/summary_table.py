"""The table of `cfgd fit --summary`: coefficients with p-values, in the manner of statsmodels."""

from __future__ import annotations

import dataclasses

from cfgd._core.files import printable
from cfgd.apps.fit.result import FitResult
from cfgd.fitting.coefficient_table import CoefficientTable

TITLES = {
    "squared": "Linear regression by least squares",
    "huber": "Linear regression with the Huber loss",
    "poisson": "Poisson regression, log link",
    "gamma": "Gamma regression, log link",
    "logistic": "Logistic regression",
    "multinomial": "Multinomial logistic regression",
}
SHOWN_MEASURES = 3  # of the quality, the first ones


def coefficient_table(result: FitResult) -> CoefficientTable:
    """Return coefficients, standard errors, statistics, p-values and intervals of a fit."""
    table = result.coefficient_table
    facts = [
        ("Target", printable(result.target.name)),
        ("Rows", f"{result.statistics.training_count:,}"),
        ("Standard errors", printable(result.error_kind)),
    ]
    if table.distribution == "t":
        facts.append(("Degrees of freedom", f"{result.dof:.6g}"))
    facts += [
        (f"{name} ({'held out' if result.options.test else 'training'})", f"{value:.6g}")
        for name, value in list(result.quality.model.items())[:SHOWN_MEASURES]
    ]
    return dataclasses.replace(
        table,
        names=tuple(map(printable, table.names)),
        classes=tuple(map(printable, table.classes)),
        title=TITLES[result.target.loss],
        facts=tuple(facts),
    )
