"""The best constants of the adaptive terminal of lag 1, which is then Polyak's heavy ball."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfgd.theory.inputs import (
    ArrayInput,
    real,
    require,
    symmetric,
)


class BestConstants(NamedTuple):
    """The result of `best_constants`.

    Attributes
    ----------
    gamma, eta : float
        The best constants; eta is the step for the direction scaled by D^-1.
    rate : float
        The factor by which the error falls per iteration asymptotically.

    Examples
    --------
    >>> gamma, eta, rate = best_constants([1.0, 9.0])
    >>> print(gamma, eta, rate)
    -1.0 0.25 0.5
    """

    gamma: float
    eta: float
    rate: float


def best_constants(A: ArrayInput) -> BestConstants:
    """Return gamma and eta of the fastest adaptive terminal of lag 1, and its rate.

    The direction is scaled by D^-1. The iteration x+ = x - eta D^-1 (A x + b) - eta gamma
    (x - x_prev) is then Polyak's heavy ball with momentum -eta gamma. If l and h are the least and
    the largest eigenvalue of D^-1 A, the best constants are eta = 4/(sqrt h + sqrt l)^2 and gamma =
    -(sqrt h - sqrt l)^2/4. The rate, the spectral radius of the iteration, is
    (sqrt k - 1)/(sqrt k + 1) with k = h/l. If D = delta I, the direction without the scaling takes
    the same gamma and the step eta / delta.

    This is not in the paper, which finds gamma by hand.

    Parameters
    ----------
    A : matrix or array
        The symmetric matrix of the quadratic, of shape (d, d). Or a vector of eigenvalues of
        D^-1 A, D = diag(A), of which only the least and the largest are used.

    Returns
    -------
    BestConstants
        A named tuple of gamma, eta and rate.

    Raises
    ------
    ValueError
        If a matrix `A` is not square, not symmetric, or has a diagonal entry that is not positive,
        or if an eigenvalue of D^-1 A is not positive.

    References
    ----------
    Polyak, Some methods of speeding up the convergence of iteration methods, USSR Computational
    Mathematics and Mathematical Physics 4 (1964).

    Examples
    --------
    >>> best_constants([1.0, 9.0])
    BestConstants(gamma=-1.0, eta=0.25, rate=0.5)
    """
    eigenvalues = real("best_constants", "A", A)
    if eigenvalues.ndim > 1:
        matrix = symmetric("best_constants", A)
        D = np.diag(matrix)
        require((D > 0).all(), "best_constants", "A", "have a positive diagonal", D.min())
        scaled = np.linalg.eigvalsh(matrix / np.sqrt(np.outer(D, D)))
        eigenvalues = np.asarray(scaled, np.float64)
    least = eigenvalues.min(initial=np.inf)  # inf if there are none, NaN if one is NaN
    require(0 < least < np.inf, "best_constants", "A", "have positive eigenvalues", least)
    low, high = float(np.sqrt(least)), float(np.sqrt(eigenvalues.max()))
    gamma, eta = -((high - low) ** 2) / 4, 4 / (high + low) ** 2
    return BestConstants(gamma, eta, (high - low) / (high + low))
