"""How far a solution is known: the inverse of the model's matrix, where that means something."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd._core import checks
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import is_wide
from cfgd.objectives.evaluation import Evaluation

UNKNOWN = (
    "`covariance` is known of a fit of Residuals with a squared loss by `Auto`, and of "
    "LeastSquares or a LinearModel without l2 whose loss is squared or the negative logarithm of a "
    "likelihood, where the matrix of the model can be had and there are as many samples as "
    "parameters."
)


class Information(NamedTuple):
    """H = diag(root) matrix diag(root), and the factor before its inverse."""

    matrix: np.ndarray
    root: np.ndarray
    factor: float

    def covariance(self) -> np.ndarray:
        inverse = inverse_if_definite(self.matrix) if np.isfinite(self.factor) else None
        if inverse is None:
            checks.warn("The data do not determine the parameters: their covariance is infinite.")
            return np.full_like(self.matrix, np.inf)
        return self.factor * inverse / self.root / self.root[:, None]


def inverse_if_definite(matrix: np.ndarray) -> np.ndarray | None:
    """Return the inverse of a symmetric matrix, or None if it is not positive definite to rounding.

    The matrix is scaled to a unit diagonal first: the units of the parameters do not matter.
    """
    diagonal = np.diagonal(matrix)
    if not np.all(diagonal > 0) or not np.all(np.isfinite(matrix)):
        return None
    scale = np.sqrt(diagonal)
    eigenvalues, eigenvectors = np.linalg.eigh(matrix / scale / scale[:, None])
    if eigenvalues[0] <= len(matrix) * np.finfo(matrix.dtype).eps * eigenvalues[-1]:
        return None
    return (eigenvectors / eigenvalues) @ eigenvectors.T / scale / scale[:, None]


def information(objective: Objective, point: Evaluation, normal: Any) -> Information | None:
    """What the matrix at a point says of how far it is known; `normal` gives that matrix."""
    shape = objective.model_shape(point)
    if shape is None or not objective.affords(shape) or is_wide(shape):
        return None
    factor = objective.dispersion(float(point.value), shape[0] - shape[1])
    if factor is None:
        return None
    D, matrix, _, _ = normal(point, 0 * point.x)
    return Information(np.asarray(matrix), np.sqrt(D), factor)
