"""How well a curve describes the data: R^2, the criteria of Akaike and Schwarz, exact fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np

from cfgd.fitting.datasets import DataSet
from cfgd.fitting.model import residuals

if TYPE_CHECKING:
    from cfgd.fitting.fit import Fit

# Residuals this many times the rounding errors of y are rounding errors of the model: exponentials
# and powers lose a digit or two.
ROUNDING = 1000


def is_exact(data: list[DataSet], chi_square: float, eps: float) -> bool:
    """Return whether the residuals are nothing but rounding errors."""
    size = sum(float(np.sum(_weighted(each, 0.0) ** 2)) for each in data)
    return chi_square <= (ROUNDING * eps) ** 2 * size or size == 0


def r_squared(data: list[DataSet], chi_square: float) -> float:
    """Return 1 - chi-square / total; the total is the chi-square of one constant per data set."""
    total = sum(map(_about_mean, data))
    return 1 - chi_square / total if total > 0 else np.nan


def _about_mean(data: DataSet) -> float:
    """Return the weighted sum of squares of y about the constant that fits it best."""
    origin = _weighted(data, 0.0)
    if not np.iscomplexobj(data.y):
        column = _weighted(data, 1.0) - origin
        square = float(column @ column)
        left = origin - (float(column @ origin) / square if square > 0 else 0.0) * column
        return float(left @ left)
    columns = np.stack([_weighted(data, unit) - origin for unit in (1.0, 1j)], 1)
    left = origin - columns @ np.linalg.lstsq(columns, origin)[0]
    return float(left @ left)


def _weighted(data: DataSet, constant: complex) -> np.ndarray:
    """Return the weighted residuals of a constant."""
    kind = complex if np.iscomplexobj(data.y) else float
    measured = jax.tree.map(np.asarray, data.measured)
    return np.ravel(residuals(np.full(np.shape(data.y), constant, kind), measured))


def criterion(fit: Fit, per_parameter: float) -> float:
    """Return minus twice the log-likelihood without constants, plus a penalty for parameters."""
    if fit.covariance_kind == "sandwich":
        return np.nan
    penalty = per_parameter * len(fit.names)
    if fit.absolute_sigma:
        return fit.chi_square + penalty
    with np.errstate(divide="ignore"):
        return float(fit.n_points * np.log(fit.chi_square / fit.n_points)) + penalty
