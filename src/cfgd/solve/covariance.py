"""The information matrix at the end of a fit, where its inverse is a covariance."""

from __future__ import annotations

import numpy as np

from cfgd.objectives.curvature import Curvature
from cfgd.objectives.information import Information

UNKNOWN = (
    "`covariance` is known for a fit of Residuals with a squared loss by `Auto`, and for "
    "LeastSquares or a LinearModel without l2, if the matrix of the model can be computed and "
    "there are at least as many samples as parameters."
)


def information(curvature: Curvature) -> Information | None:
    """Return the information matrix of a curvature, or None where its inverse is no covariance."""
    if curvature.shape is None:
        return None
    if curvature.information is not None:
        return curvature.information()
    m, d = curvature.shape
    factor = curvature.dispersion() if m >= d and curvature.dispersion is not None else None
    if factor is None:
        return None
    if curvature.matrix is not None:
        H = np.asarray(curvature.matrix())
    else:
        assert curvature.rows is not None
        J = np.asarray(curvature.rows().jacobian)
        H = J.T @ J
    return Information.of(H, factor, np.inf if curvature.dof is None else curvature.dof())
