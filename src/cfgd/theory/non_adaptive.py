"""The non-adaptive method: its limit and its rate (Theorem 3, thm:fLSQ)."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from cfgd.theory.inputs import (
    Array,
    ArrayInput,
    Numbers,
    gamma_times_D,
    number,
    require,
    shaped,
    symmetric,
)


def extremes(owner: str, A: Array, gamma: Numbers, field: str = "gamma") -> tuple[float, float]:
    """Return the extreme eigenvalues of A + gamma D, which must be positive definite."""
    eigenvalues = np.linalg.eigvalsh(A + gamma_times_D(owner, A, gamma))
    low, high = float(eigenvalues[0]), float(eigenvalues[-1])
    definite = low > len(A) * np.finfo(np.float64).eps * high
    wanted = "make A + gamma diag(A) positive definite"
    require(definite, owner, field, wanted, f"a smallest eigenvalue of {low:.3g}")
    return low, high


def tilde_A(A: ArrayInput, gamma: Numbers) -> Array:
    """Return A + gamma D, the matrix of Theorem 3 (thm:fLSQ).

    The theorem writes beta + 1/(2-alpha) on the diagonal, which is 1 + gamma.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    gamma : float or array
        gamma: one number, or one for each coordinate.

    Returns
    -------
    array
        The matrix, of shape (d, d).

    Raises
    ------
    ValueError
        If `A` is not square or not symmetric, or `gamma` has another shape than () or (d,).

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), theorem 3.

    Examples
    --------
    >>> tilde_A([[2.0, 1.0], [1.0, 4.0]], 0.5)
    array([[3., 1.],
           [1., 6.]])
    """
    A = symmetric("tilde_A", A)
    return A + gamma_times_D("tilde_A", A, gamma)


def tikhonov_solution(A: ArrayInput, b: ArrayInput, terminal: ArrayInput, gamma: Numbers) -> Array:
    """Return the limit of the non-adaptive method, c - (A + gamma D)^-1 (A c + b), c = terminal.

    This is x_gamma of Theorem 3 (thm:fLSQ). It minimises f(x) + (gamma/2) |x - c|_D^2 if
    A + gamma D is positive definite; gamma = 0 gives the minimiser of f.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    b : array
        The linear part of the quadratic, of shape (d,).
    terminal : array
        The terminal c, of shape (d,).
    gamma : float or array
        gamma: one number, or one for each coordinate.

    Returns
    -------
    array
        The limit x_gamma, of shape (d,).

    Raises
    ------
    ValueError
        If `A` is not square or not symmetric, `b` or `terminal` has another shape than (d,), or
        `gamma` another than () or (d,).
    numpy.linalg.LinAlgError
        If A + gamma D is singular.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), theorem 3.

    Examples
    --------
    >>> tikhonov_solution([[2.0, 0.0], [0.0, 4.0]], [-2.0, -8.0], [0.0, 0.0], 1.0)
    array([0.5, 1. ])
    """
    owner = "tikhonov_solution"
    A = symmetric(owner, A)
    c, b = shaped(owner, "terminal", terminal, A.shape[:1]), shaped(owner, "b", b, A.shape[:1])
    # SciPy's solve warns of a matrix that is singular to working precision, NumPy's does not
    step: Array = scipy.linalg.solve(A + gamma_times_D(owner, A, gamma), A @ c + b, assume_a="sym")
    return c - step


def non_adaptive_rate(A: ArrayInput, gamma: Numbers, eta: float) -> float:
    """Return the factor by which |x_k - x_gamma| falls in one iteration of the non-adaptive method.

    For the step eta / sigma_max(A + gamma D), 0 < eta < 2, it is max(|1 - eta|, |1 - eta/kappa|)
    with the condition number kappa of A + gamma D. This is Theorem 3 (thm:fLSQ) with erratum 5:
    the paper leaves out |1 - eta|, so that its bound fails for eta near 2.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    gamma : float or array
        gamma: one number, or one for each coordinate.
    eta : float
        The step in units of 1 / sigma_max(A + gamma D), in (0, 2).

    Returns
    -------
    float
        The factor.

    Raises
    ------
    ValueError
        If `A` is not square or not symmetric, `gamma` has another shape than () or (d,), A + gamma
        D is not positive definite, or `eta` is not in (0, 2).

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), theorem 3; corrected
    by erratum 5 of docs/errata.md.

    Examples
    --------
    >>> non_adaptive_rate([[2.0, 0.0], [0.0, 1.0]], 0.0, 1.75)
    0.75
    """
    eta = number("non_adaptive_rate", "eta", eta)
    require(0 < eta < 2, "non_adaptive_rate", "eta", "lie in (0, 2)", eta)
    low, high = extremes("non_adaptive_rate", symmetric("non_adaptive_rate", A), gamma)
    return float(max(abs(1 - eta), abs(1 - eta * low / high)))
