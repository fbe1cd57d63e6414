"""What IPython and Jupyter show for fits: the parameters, and residuals or distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfgd._core.notebook import bars, dots, table
from cfgd.fitting.report import relative

# Up to this many points the residuals are shown: they are computed again for the figure.
MOST_RESIDUALS = 10_000


def of_fit(fit: Any) -> str:
    """Return the table of the free parameters, with the weighted residuals as dots."""
    rows = [
        [
            name,
            f"{value:.8g}",
            *(["at its bound"] if name in fit.at_bound else error_of(value, error)),
        ]
        for name, value, error in zip(fit.names, fit.numbers, fit.standard_errors, strict=True)
    ]
    if fit.problem is not None and fit.n_points <= MOST_RESIDUALS:
        residuals = np.asarray(fit.problem.residuals(np.asarray(fit.solution.x)))
        rows.append(["residuals", dots(-residuals, "weighted residuals, data minus curve")])
    caption = (
        f"Fit: {fit.solution.status.name}, residual standard deviation {fit.residual_std:.6g} "
        f"with {fit.dof} degrees of freedom"
    )
    return table(caption, ["parameter", "value", "standard error", "relative"], rows)


def error_of(value: float, error: float) -> list[str]:
    """Return the cells of a standard error."""
    return [f"{error:.4g}", relative(error, value)]


def of_fits(fits: Any) -> str:
    """Return the table of many fits: the median and the distribution of each parameter."""
    if not isinstance(fits.table, np.ndarray):
        return table(repr(fits), [], [])
    n, failed = fits.inputs.n_fits, fits.failed
    good = np.asarray(fits.converged)
    rows = []
    for name in fits.names:
        value, error = (np.asarray(each[name])[good] for each in (fits.values, fits.errors))
        known = error[~np.isnan(error)]  # NaN is that of a parameter at its bound
        medians = (f"{np.median(each):.6g}" if each.size else "-" for each in (value, known))
        rows.append([name, *medians, bars(value, f"distribution of {name}")])
    rows += [[name, f"{count:,} fit{'' if count == 1 else 's'}"] for name, count in failed.items()]
    caption = f"Fits: {n - sum(failed.values()):,} of {n:,} converged"
    return table(caption, ["parameter", "median", "median error", "distribution"], rows)
