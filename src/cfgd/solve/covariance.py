"""The information matrix at the end of a fit, where its inverse is a covariance."""

from __future__ import annotations

import numpy as np

from cfgd.objectives.curvature import Curvature
from cfgd.objectives.information import Information

UNKNOWN = (
    "`covariance` is available for a fit of Residuals with a squared loss by `Auto`, and for "
    "LeastSquares or a LinearModel without l2, if the matrix of the model can be computed and "
    "there are at least as many samples as parameters. For a negative log-likelihood of your own "
    "it is the inverse of `jax.hessian(f)(x)`, computed with `jax.enable_x64(True)`."
)


def information(curvature: Curvature) -> Information | None:
    """Return the information matrix of a curvature, or None where its inverse is no covariance."""
    if curvature.shape is None or curvature.information is None:
        return None

    def matrix() -> np.ndarray:
        if curvature.matrix is not None:
            return np.asarray(curvature.matrix())
        assert curvature.rows is not None
        J = np.asarray(curvature.rows().jacobian)
        return J.T @ J

    m, d = curvature.shape
    return curvature.information(matrix) if m >= d else None
