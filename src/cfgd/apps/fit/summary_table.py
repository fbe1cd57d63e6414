"""The table of `cfgd fit --summary`: coefficients with p-values, in the manner of statsmodels."""

from __future__ import annotations

import numpy as np

from cfgd._core.files import printable
from cfgd.apps.fit.effects import MODEL_NAMES
from cfgd.apps.fit.result import FitResult
from cfgd.objectives.linear.coefficient_table import CoefficientTable


def coefficient_table(result: FitResult) -> CoefficientTable:
    """Return coefficients, standard errors, statistics, p-values and intervals of a fit."""
    w, errors, target = result.model.coefficients, result.model.errors, result.target
    facts = [
        ("Target", printable(target.name)),
        ("Rows", f"{result.statistics.training_count:,}"),
        ("Standard errors", printable(result.error_kind)),
    ]
    if np.isfinite(result.dof):
        facts.append(("Degrees of freedom", f"{result.dof:.6g}"))
    facts += [
        (f"{name} ({'held out' if result.options.test else 'training'})", f"{value:.6g}")
        for name, value in list(result.quality.model.items())[:3]
    ]
    return CoefficientTable(
        tuple(map(printable, result.model.terms)),
        w,
        np.full(w.shape, np.nan) if errors is None else errors,
        "t" if np.isfinite(result.dof) else "z",
        result.dof,
        tuple(printable(str(label)) for label in target.labels) if target.classes > 1 else (),
        is_penalised=bool(result.l2),
        title=MODEL_NAMES[target.loss],
        facts=tuple(facts),
    )
