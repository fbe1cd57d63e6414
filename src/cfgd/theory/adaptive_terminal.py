"""The adaptive terminal: its error and its rate (Theorem 4, thm:adapt-terminal)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from cfgd.theory.inputs import (
    Array,
    ArrayInput,
    Numbers,
    gamma_times_D,
    integer,
    number,
    real,
    require,
    symmetric,
)


def _blocks(owner: str, A: ArrayInput, gamma: Numbers, eta: float) -> tuple[Array, Array]:
    """Return A_{1,0} and A_{1,L} of Theorem 4, with the eta that the proof omits (erratum 6)."""
    A, eta = symmetric(owner, A), number(owner, "eta", eta)
    oldest = eta * gamma_times_D(owner, A, gamma)
    return np.eye(len(A)) - eta * A - oldest, oldest


def _decoupled(newest: Array, oldest: Array) -> tuple[Array, Array]:
    """Return a stack of independent iterations with the norms and eigenvalues of this one.

    If gamma D is a multiple of I (standardised features), the eigenvectors of A split the iteration
    into d scalar ones, a hundred times faster at d = 128; otherwise the stack has one member.
    """
    diagonal = np.diag(oldest)
    # 1e-13: the diagonal of X'X is constant up to rounding only
    if np.ptp(diagonal) <= 1e-13 * np.abs(diagonal).max():
        eigenvalues: Array = np.linalg.eigvalsh(newest).astype(np.float64)
        return eigenvalues[:, None, None], diagonal[:1, None, None]
    return newest[None], oldest[None]


def _rows(newest: Array, oldest: Array, lag: int) -> Iterator[Array]:
    """Iterate over the first block rows A_{k,0..L} of M^k for k = 0, 1, ..."""
    row = np.zeros((lag + 1, *newest.shape))
    row[0] = np.eye(newest.shape[-1])
    while True:
        yield row
        row = np.stack([row[0] @ newest + row[1], *row[2:], row[0] @ oldest])


def adaptive_terminal_matrices(
    A: ArrayInput, gamma: Numbers, eta: float, lag: int, iterations: int
) -> Array:
    """Return the matrices A_{k,0}, ..., A_{k,L} of Theorem 4 (thm:adapt-terminal).

    With a constant step eta, x_k - x* is the sum of A_{k,j} (x_{-j} - x*) over j = 0, ..., L, the
    lag. The matrices follow from A_{1,0} = I - eta (A + gamma D), A_{1,L} = eta gamma D and, for
    larger k, A_{k,0} = A_{k-1,0} A_{1,0} + A_{k-1,1}, A_{k,j} = A_{k-1,j+1} and A_{k,L} = A_{k-1,0}
    A_{1,L}.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    gamma : float or array
        gamma: one number, or one for each coordinate.
    eta : float
        The step size, the same in all iterations.
    lag : int
        The lag L: how many iterations back the terminal lies, at least 1.
    iterations : int
        The number k of iterations.

    Returns
    -------
    array
        The matrices, of shape (lag + 1, d, d).

    Raises
    ------
    ValueError
        If `A` is not square or not symmetric, `gamma` has another shape than () or (d,), `lag` is
        below 1, or `iterations` is below 0.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), theorem 4; corrected
    by erratum 6 of docs/errata.md.

    Examples
    --------
    >>> adaptive_terminal_matrices([[2.0]], -0.5, 0.25, lag=1, iterations=2).ravel()
    array([ 0.3125, -0.1875])
    """
    owner = "adaptive_terminal_matrices"
    lag = integer(owner, "lag", lag, 1)
    iterations = integer(owner, "iterations", iterations, 0)
    return next(islice(_rows(*_blocks(owner, A, gamma, eta), lag), iterations, None))


def adaptive_terminal_bound(
    A: ArrayInput, gamma: Numbers, eta: float, errors: ArrayInput, iterations: int
) -> Array:
    """Return a bound on |x_k - x*| of the adaptive terminal for k = 0, ..., iterations.

    The bound is sum_j |A_{k,j}| errors[j], with spectral norms of the matrices of Theorem 4
    (thm:adapt-terminal) and the errors |x_{-j} - x*| of the first points. It is inf where it
    overflows.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    gamma : float or array
        gamma: one number, or one for each coordinate.
    eta : float
        The step size, the same in all iterations.
    errors : array
        |x_{-j} - x*| for j = 0, ..., L: the lag L is one less than their number.
    iterations : int
        The last k, at least 0.

    Returns
    -------
    array
        The bounds, of shape (iterations + 1,).

    Raises
    ------
    ValueError
        If `A` is not square or not symmetric, `gamma` has another shape than () or (d,), `errors`
        has fewer than two numbers, or `iterations` is below 0.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), theorem 4; corrected
    by erratum 6 of docs/errata.md.

    Examples
    --------
    >>> adaptive_terminal_bound([[2.0]], -0.5, 0.25, [1.0, 2.0], iterations=2)
    array([1.    , 1.25  , 0.6875])
    """
    owner = "adaptive_terminal_bound"
    errors = real(owner, "errors", errors).ravel()
    lag = len(errors) - 1
    require(lag >= 1, owner, "errors", "hold at least two numbers", f"shape {errors.shape}")
    iterations = integer(owner, "iterations", iterations, 0)
    newest, oldest = _decoupled(*_blocks(owner, A, gamma, eta))
    norms, bounds = np.zeros(lag + 1), np.full(iterations + 1, np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        for k, row in enumerate(islice(_rows(newest, oldest, lag), iterations + 1)):
            if not np.isfinite(row).all():
                break  # the iteration diverges, and every later bound is inf too
            # the blocks in between only move by one position, and so do their norms
            norms = np.concatenate([[_norm(row[0])], norms[2:], [_norm(row[-1])]])
            bounds[k] = norms @ errors
    return bounds


def _norm(block: Array) -> float:
    """Return the spectral norm of a block diagonal matrix, given as the stack of its blocks."""
    # for 1 x 1 blocks the absolute value is twenty times faster than a singular value decomposition
    each = np.abs(block) if block.shape[-1] == 1 else np.linalg.norm(block, 2, axis=(-2, -1))
    return float(each.max())


def spectral_radius(A: ArrayInput, gamma: Numbers, eta: float, lag: int) -> float:
    """Return the factor by which the error of the adaptive terminal falls per iteration at last.

    It is the largest |z| for which z^(L+1) I - z^L (I - eta (A + gamma D)) - eta gamma D is
    singular: the spectral radius of M in the proof of Theorem 4 (thm:adapt-terminal). Below one the
    method converges from every start. A double eigenvalue, as at the best constants, is accurate to
    1e-8 only.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    gamma : float or array
        gamma: one number, or one for each coordinate.
    eta : float
        The step size, the same in all iterations.
    lag : int
        The lag L: how many iterations back the terminal lies, at least 1.

    Returns
    -------
    float
        The factor: the asymptotic rate.

    Raises
    ------
    ValueError
        If `A` is not square or not symmetric, `gamma` has another shape than () or (d,), or `lag`
        is below 1.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), theorem 4; corrected
    by erratum 6 of docs/errata.md.

    Examples
    --------
    >>> round(spectral_radius([[1.0, 0.8], [0.8, 1.0]], -0.2, 1.25, lag=1), 6)
    0.5
    """
    lag = integer("spectral_radius", "lag", lag, 1)
    newest, oldest = _decoupled(*_blocks("spectral_radius", A, gamma, eta))
    n, p, _ = newest.shape
    M = np.tile(np.eye((lag + 1) * p, k=-p), (n, 1, 1))
    M[:, :p, :p] = newest
    M[:, :p, -p:] = oldest
    return float(np.abs(np.linalg.eigvals(M)).max())
