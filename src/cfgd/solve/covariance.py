"""The covariance of fitted parameters, where the objective is a likelihood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfgd._core import checks
from cfgd.objectives.curvature import Curvature

UNKNOWN = (
    "`covariance` is known for a fit of Residuals with a squared loss by `Auto`, and for "
    "LeastSquares or a LinearModel without l2 whose loss is squared or a negative log-likelihood, "
    "if the matrix of the model can be computed and there are at least as many samples as "
    "parameters."
)


class Information(NamedTuple):
    """The information matrix H = diag(root) matrix diag(root), and the factor of its inverse.

    The covariance is `factor` times the inverse of H: `factor` is 1 for a negative log-likelihood
    and the estimated variance of the residuals for least squares.
    """

    matrix: np.ndarray
    root: np.ndarray
    factor: float

    def covariance(self) -> np.ndarray:
        """Return the covariance; warn and return infinities where H is singular."""
        inverse = inverse_if_definite(self.matrix) if np.isfinite(self.factor) else None
        if inverse is None:
            checks.warn("The data do not determine the parameters: their covariance is infinite.")
            return np.full_like(self.matrix, np.inf)
        return self.factor * inverse / self.root / self.root[:, None]


def inverse_if_definite(matrix: np.ndarray) -> np.ndarray | None:
    """Return the inverse of a symmetric positive definite matrix, or None if it is not one.

    The matrix is scaled to a unit diagonal first, so that the units of its rows and columns have no
    influence. It counts as singular where its smallest eigenvalue is below the rounding errors of
    its largest one: n eps times it, the criterion of `numpy.linalg.matrix_rank`.
    """
    diagonal = np.diagonal(matrix)
    if not np.all(np.isfinite(matrix)) or not np.all(diagonal > 0):
        return None
    scale = np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(matrix / scale / scale[:, None])
    if values[0] <= len(matrix) * np.finfo(values.dtype).eps * values[-1]:
        return None
    return (vectors / values) @ vectors.T / scale / scale[:, None]


def information(curvature: Curvature) -> Information | None:
    """Return the information matrix of a curvature, or None where its inverse is no covariance."""
    if curvature.shape is None or curvature.dispersion is None:
        return None
    m, d = curvature.shape
    factor = curvature.dispersion() if m >= d else None
    if factor is None:
        return None
    if curvature.matrix is not None:
        H = np.asarray(curvature.matrix())
    else:
        assert curvature.rows is not None
        J = np.asarray(curvature.rows().jacobian)
        H = J.T @ J
    diagonal = np.diagonal(H)
    root = np.sqrt(np.where(diagonal > 0, diagonal, 1))
    return Information(H / root / root[:, None], root, factor)
