"""The paper's theorems on quadratics, as pure functions of the problem.

The objective is f(x) = x'Ax/2 + b'x with a symmetric A, and D = diag(A). For least squares
A = X'X and b = -X'y. This module imports nothing of the solver: a bound must not depend on the code
that is tested against it. The paper's theorems are counted in order of appearance: Theorem 3 is
thm:fLSQ (non-adaptive), 4 is thm:adapt-terminal and 5 is thm:adapt-order.

>>> from cfgd import theory
>>> print(theory.tikhonov_solution([[2.0, 0.0], [0.0, 4.0]], [-2.0, -8.0], [0.0, 0.0], 1.0))
[0.5 1. ]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "BestConstants",
    "adaptive_order_bound",
    "adaptive_order_constant",
    "adaptive_terminal_bound",
    "adaptive_terminal_matrices",
    "best_constants",
    "non_adaptive_rate",
    "spectral_radius",
    "tikhonov_solution",
    "tilde_A",
]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__


Array = NDArray[np.float64]
# NumPy's ArrayLike contains tuples for static type checkers, but not for beartype
ArrayInput = ArrayLike | Sequence[Any]
Numbers = float | ArrayInput  # one number, or one for each coordinate or stage
Stages = Sequence[tuple[int, float]]


def _require(holds: bool | np.bool_, owner: str, field: str, wanted: str, got: object) -> None:
    """Raise the `ValueError` for a bad argument unless `holds`."""
    if not holds:
        raise ValueError(f"`{owner}({field}=...)` must {wanted}, got {got}.")


def _array(owner: str, field: str, value: Numbers, *shapes: tuple[int, ...]) -> Array:
    """Return `value` as a float64 array of one of the `shapes`."""
    value = np.asarray(value, dtype=np.float64)
    wanted = f"have shape {' or '.join(map(str, shapes))}"
    _require(value.shape in shapes, owner, field, wanted, value.shape)
    return value


def _symmetric(owner: str, A: ArrayInput) -> Array:
    """Return A as a float64 array, checked to be square and symmetric."""
    A = np.asarray(A, dtype=np.float64)
    square = A.ndim == 2 and A.shape[0] == A.shape[1] > 0
    _require(square, owner, "A", "be a square matrix", f"shape {A.shape}")
    gap = np.abs(A - A.T).max()  # NaN if an entry is NaN; then the comparison below is False
    # 1e-6: A may come from single precision
    _require(gap <= 1e-6 * np.abs(A).max(), owner, "A", "be symmetric", f"a gap of {gap:.3g}")
    return A


def _shift(owner: str, A: Array, gamma: Numbers) -> Array:
    """Return gamma D as a matrix."""
    return np.diag(_array(owner, "gamma", gamma, (), A.shape[:1]) * np.diag(A))


def _extremes(owner: str, A: Array, gamma: Numbers) -> tuple[float, float]:
    """Return the extreme eigenvalues of A + gamma D, which must be positive definite."""
    eigenvalues = np.linalg.eigvalsh(A + _shift(owner, A, gamma))
    low, high = float(eigenvalues[0]), float(eigenvalues[-1])
    definite = low > len(A) * np.finfo(np.float64).eps * high
    wanted = "make A + gamma diag(A) positive definite"
    _require(definite, owner, "gamma", wanted, f"a smallest eigenvalue of {low:.3g}")
    return low, high


def tilde_A(A: ArrayInput, gamma: Numbers) -> Array:
    """Return A + gamma D, the matrix of Theorem 3 (thm:fLSQ).

    `gamma` is one number, or one for each coordinate.

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

    Examples
    --------
    >>> tilde_A([[2.0, 1.0], [1.0, 4.0]], 0.5)
    array([[3., 1.],
           [1., 6.]])
    """
    A = _symmetric("tilde_A", A)
    return A + _shift("tilde_A", A, gamma)


def tikhonov_solution(A: ArrayInput, b: ArrayInput, terminal: ArrayInput, gamma: Numbers) -> Array:
    """Return the limit of the non-adaptive method, c - (A + gamma D)^-1 (A c + b), c = terminal.

    This is x_gamma of Theorem 3 (thm:fLSQ). It minimises f(x) + (gamma/2) |x - c|_D^2 if
    A + gamma D is positive definite; gamma = 0 gives the minimiser of f.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    b : array
        The linear part of the quadratic.
    terminal : array
        The terminal c.
    gamma : float or array
        gamma: one number, or one for each coordinate.

    Returns
    -------
    array
        x_gamma.

    Examples
    --------
    >>> tikhonov_solution([[2.0, 0.0], [0.0, 4.0]], [-2.0, -8.0], [0.0, 0.0], 1.0)
    array([0.5, 1. ])
    """
    owner = "tikhonov_solution"
    A = _symmetric(owner, A)
    c, b = _array(owner, "terminal", terminal, A.shape[:1]), _array(owner, "b", b, A.shape[:1])
    # SciPy's solve warns of a matrix that is singular to working precision, NumPy's does not
    step: Array = scipy.linalg.solve(A + _shift(owner, A, gamma), A @ c + b, assume_a="sym")
    return c - step


def non_adaptive_rate(A: ArrayInput, gamma: Numbers, eta: float) -> float:
    """Return the factor by which |x_k - x_gamma| falls in one iteration of the non-adaptive method.

    It is max(|1 - eta|, |1 - eta/kappa|), with kappa the condition number of A + gamma D, for the
    step eta / sigma_max(A + gamma D) with 0 < eta < 2. Theorem 3 (thm:fLSQ) with erratum 5: the
    paper leaves out |1 - eta| and claims a bound that fails for eta near 2.

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
        The rate.

    Examples
    --------
    >>> non_adaptive_rate([[2.0, 0.0], [0.0, 1.0]], 0.0, 1.75)
    0.75
    """
    _require(0 < eta < 2, "non_adaptive_rate", "eta", "lie in (0, 2)", eta)
    low, high = _extremes("non_adaptive_rate", _symmetric("non_adaptive_rate", A), gamma)
    return float(max(abs(1 - eta), abs(1 - eta * low / high)))


def _blocks(owner: str, A: ArrayInput, gamma: Numbers, eta: float) -> tuple[Array, Array]:
    """Return A_{1,0} and A_{1,L} of Theorem 4, with the eta that the proof omits (erratum 6)."""
    A = _symmetric(owner, A)
    oldest = eta * _shift(owner, A, gamma)
    return np.eye(len(A)) - eta * A - oldest, oldest


def _decoupled(newest: Array, oldest: Array) -> tuple[Array, Array]:
    """Return the iteration as a stack of independent ones with the same norms and eigenvalues.

    If gamma D is a multiple of I (standardised features), the eigenvectors of A split it into d
    scalar iterations, a hundred times faster at d = 128; otherwise the stack has one member.
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
    """Return A_{k,0}, ..., A_{k,L} of Theorem 4 for k = iterations, of shape (lag + 1, d, d).

    Theorem 4 (thm:adapt-terminal): x_k - x* = sum_j A_{k,j} (x_{-j} - x*) with a constant step
    eta, from A_{k,0} = A_{k-1,0} A_{1,0} + A_{k-1,1}, A_{k,j} = A_{k-1,j+1} and
    A_{k,L} = A_{k-1,0} A_{1,L}, where A_{1,0} = I - eta (A + gamma D), A_{1,L} = eta gamma D.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    gamma : float or array
        gamma: one number, or one for each coordinate.
    eta : float
        The step size.
    lag : int
        How many iterations the terminal lies back.
    iterations : int
        k.

    Returns
    -------
    array
        The matrices, of shape (lag + 1, d, d).

    Examples
    --------
    >>> adaptive_terminal_matrices([[2.0]], -0.5, 0.25, lag=1, iterations=2).ravel()
    array([ 0.3125, -0.1875])
    """
    owner = "adaptive_terminal_matrices"
    _require(lag >= 1, owner, "lag", "be at least 1", lag)
    _require(iterations >= 0, owner, "iterations", "be at least 0", iterations)
    return next(islice(_rows(*_blocks(owner, A, gamma, eta), lag), iterations, None))


def adaptive_terminal_bound(
    A: ArrayInput, gamma: Numbers, eta: float, errors: ArrayInput, iterations: int
) -> Array:
    """Return a bound on |x_k - x*| of the adaptive terminal for k = 0, ..., iterations.

    The bound is sum_j |A_{k,j}| errors[j] with spectral norms and errors[j] = |x_{-j} - x*|,
    j = 0, ..., L, so that the lag is len(errors) - 1 (Theorem 4, thm:adapt-terminal). It is inf
    where it overflows.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    gamma : float or array
        gamma: one number, or one for each coordinate.
    eta : float
        The step size.
    errors : array
        |x_{-j} - x*| for j = 0, ..., lag.
    iterations : int
        The last k.

    Returns
    -------
    array
        The bounds, of shape (iterations + 1,).

    Examples
    --------
    >>> adaptive_terminal_bound([[2.0]], -0.5, 0.25, [1.0, 2.0], iterations=2)
    array([1.    , 1.25  , 0.6875])
    """
    owner = "adaptive_terminal_bound"
    errors = np.asarray(errors, dtype=np.float64).ravel()
    lag = len(errors) - 1
    _require(lag >= 1, owner, "errors", "hold at least two numbers", f"shape {errors.shape}")
    _require(iterations >= 0, owner, "iterations", "be at least 0", iterations)
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
    """Return the asymptotic rate of the adaptive terminal, the factor per iteration.

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
        The step size.
    lag : int
        How many iterations the terminal lies back.

    Returns
    -------
    float
        The rate.

    Examples
    --------
    >>> round(spectral_radius([[1.0, 0.8], [0.8, 1.0]], -0.2, 1.25, lag=1), 6)
    0.5
    """
    _require(lag >= 1, "spectral_radius", "lag", "be at least 1", lag)
    newest, oldest = _decoupled(*_blocks("spectral_radius", A, gamma, eta))
    n, p, _ = newest.shape
    M = np.tile(np.eye((lag + 1) * p, k=-p), (n, 1, 1))
    M[:, :p, :p] = newest
    M[:, :p, -p:] = oldest
    return float(np.abs(np.linalg.eigvals(M)).max())


def adaptive_order_constant(
    A: ArrayInput, b: ArrayInput, terminal: ArrayInput, gammas: ArrayInput
) -> float:
    """Return the constant C of Theorem 5 (thm:adapt-order): |x_g - x_h| <= C |g - h|.

    C = B_max^2 |W|^2 |R|^2 |x* - c| with |W|^2 = |A|, |R|^2 = max D and B_max the largest
    |(A + gamma D)^-1| for gamma from 0 to any of `gammas` (the paper's range: erratum 7). As
    D >= 0, the smallest gamma gives B_max: 0 for the paper's gamma >= 0. A negative gamma is
    allowed while A + gamma D is positive definite, for then the proof holds as well.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    b : array
        The linear part of the quadratic.
    terminal : array
        The terminal c.
    gammas : array
        The gammas of the stages.

    Returns
    -------
    float
        C.

    Examples
    --------
    >>> adaptive_order_constant([[2.0]], [-6.0], [1.0], [0.5, 0.1])
    2.0
    """
    owner = "adaptive_order_constant"
    A = _symmetric(owner, A)
    low, _ = _extremes(owner, A, min(0.0, float(np.min(gammas))))
    _, high = _extremes(owner, A, 0.0)
    distance = np.linalg.norm(tikhonov_solution(A, b, terminal, 0.0) - np.asarray(terminal))
    return float(high * np.diag(A).max() * distance / low**2)


def adaptive_order_bound(
    A: ArrayInput, b: ArrayInput, terminal: ArrayInput, x0: ArrayInput, stages: Stages, eta: Numbers
) -> Array:
    """Return a bound on |x - x*| of the adaptive order after each stage (iterations, gamma).

    The bound after stage s is R_s E_s + C |gamma_s| (Theorem 5, thm:adapt-order), with E_1 = |x0 -
    x_gamma1| and E_{s+1} = R_s E_s + C |gamma_s - gamma_{s+1}|. The theorem's R_s = |1 -
    eta_s/kappa_s|^(k_s/2) inherits erratum 5; here it is `non_adaptive_rate` to the power k_s. The
    step in stage s is eta_s / sigma_max(A + gamma_s D), as R_s assumes, and not eta_s as in the
    theorem's text; `eta` is one number or one for each stage.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    b : array
        The linear part of the quadratic.
    terminal : array
        The terminal c.
    x0 : array
        The start.
    stages : list of (int, float)
        The iterations and gamma of each stage.
    eta : float or array
        The step in units of 1 / sigma_max(A + gamma_s D): one number, or one for each stage.

    Returns
    -------
    array
        The bounds, one for each stage.

    Examples
    --------
    >>> adaptive_order_bound([[2.0]], [-6.0], [1.0], [0.0], [(2, 1.0), (1, 0.0)], 0.5)
    array([2.5 , 1.25])
    """
    owner = "adaptive_order_bound"
    _require(len(stages) > 0, owner, "stages", "hold at least one stage", "none")
    etas = np.broadcast_to(_array(owner, "eta", eta, (), (len(stages),)), len(stages))
    constant = adaptive_order_constant(A, b, terminal, [gamma for _, gamma in stages])
    previous = stages[0][1]
    limit = tikhonov_solution(A, b, terminal, previous)
    error = float(np.linalg.norm(_array(owner, "x0", x0, limit.shape) - limit))
    bounds = []
    for (iterations, gamma), eta_s in zip(stages, etas, strict=True):
        error += constant * abs(gamma - previous)
        error *= non_adaptive_rate(A, gamma, float(eta_s)) ** iterations
        bounds.append(error + constant * abs(gamma))
        previous = gamma
    return np.array(bounds)


class BestConstants(NamedTuple):
    """The result of `best_constants`.

    Attributes
    ----------
    gamma, eta : float
        The best constants, eta for the direction that is scaled by D^-1.
    rate : float
        The factor by which the error falls per iteration in the long run.

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

    `A` is the matrix of the quadratic, or a vector of the eigenvalues of D^-1 A with D = diag(A),
    of which only the extremes l and h matter. The rate is the spectral radius of the iteration,
    whose direction is scaled by D^-1: x+ = x - eta D^-1 (A x + b) - eta gamma (x - x_prev) is
    Polyak's heavy ball with momentum -eta gamma. The best constants are eta = 4/(sqrt h + sqrt l)^2
    and gamma = -(sqrt h - sqrt l)^2/4, with the rate (sqrt k - 1)/(sqrt k + 1), k = h/l. If D =
    delta I, the unscaled direction takes the same gamma and the step eta / delta. This is not in
    the paper, which finds gamma by hand.

    Parameters
    ----------
    A : matrix or array
        The matrix of the quadratic, or a vector of the eigenvalues of D^-1 A.

    Returns
    -------
    BestConstants
        gamma, eta and rate.

    Examples
    --------
    >>> best_constants([1.0, 9.0])
    BestConstants(gamma=-1.0, eta=0.25, rate=0.5)
    """
    eigenvalues = np.asarray(A, dtype=np.float64)
    if eigenvalues.ndim > 1:
        matrix = _symmetric("best_constants", A)
        D = np.diag(matrix)
        _require((D > 0).all(), "best_constants", "A", "have a positive diagonal", D.min())
        scaled = np.linalg.eigvalsh(matrix / np.sqrt(np.outer(D, D)))
        eigenvalues = np.asarray(scaled, np.float64)
    least = eigenvalues.min(initial=np.inf)  # inf if there are none, NaN if one is NaN
    _require(0 < least < np.inf, "best_constants", "A", "have positive eigenvalues", least)
    low, high = float(np.sqrt(least)), float(np.sqrt(eigenvalues.max()))
    gamma, eta = -((high - low) ** 2) / 4, 4 / (high + low) ** 2
    return BestConstants(gamma, eta, (high - low) / (high + low))
