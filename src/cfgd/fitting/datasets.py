"""The data of a fit: x, y and the uncertainty of y."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from cfgd._core import checks
from cfgd.fitting.model import Measured


@dataclasses.dataclass(frozen=True, eq=False)
class DataSet:
    """One data set as the user gave it, with arrays in place of lists.

    Attributes
    ----------
    name : str
        Its name in a fit of several data sets, "" if it is the only one.
    x, y, sigma : array
        The data; x may be a dict or tuple of arrays, sigma None, a number, an array or a matrix.
    measured : Measured
        The same as numbers for the residuals.
    n_points : int
        How many numbers of y count.
    """

    name: str
    x: Any
    y: Any
    sigma: Any
    measured: Measured
    n_points: int


def read_data_set(owner: str, name: str, x: Any, y: Any, sigma: Any) -> DataSet:
    """Check the data of one data set."""
    if isinstance(x, dict | tuple):
        x = jax.tree.map(lambda leaf: checks.array(owner, "x", leaf), x)
    else:
        x = checks.array(owner, "x", x)
    y = checks.array(owner, "y", y)
    sigma = None if sigma is None else checks.array(owner, "sigma", sigma)
    deviations = whitening = None
    if sigma is not None and sigma.ndim == 2:
        whitening = _whitening(owner, sigma, y)
    elif sigma is not None:
        if sigma.shape not in ((), y.shape):
            checks.fail(owner, "sigma", f"have shape {y.shape}", f"shape {sigma.shape}")
        deviations = np.asarray(checks.positive(owner, "sigma", sigma))
    return DataSet(name, x, y, sigma, Measured(x, y, deviations, whitening), int(y.size))


def _whitening(owner: str, sigma: Any, y: Any) -> np.ndarray:
    """Return the inverse Cholesky factor of a covariance matrix."""
    checks.shape(owner, "sigma", sigma, (y.size, y.size))
    try:
        lower = np.linalg.cholesky(np.asarray(sigma, float))
    except np.linalg.LinAlgError:
        checks.fail(owner, "sigma", "be positive definite", "a matrix that is not")
    return np.linalg.inv(lower)
