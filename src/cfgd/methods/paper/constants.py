"""The best constants of the adaptive terminal on a quadratic, from products with its matrix.

With the step eta / D, D = diag(A), the iteration is Polyak's heavy ball in coordinates scaled by
D^(1/2). The best gamma and eta follow from the extreme eigenvalues of D^-1 A.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from cfgd._core.arrays import cast, in_precision
from cfgd._core.types import DType, Vector
from cfgd.methods.base import Tuning
from cfgd.objectives.base import Objective, hessian_diagonal
from cfgd.theory import best_constants

# largest number of columns of a matrix that is formed, by one product for each column: the two
# Krylov spaces of an easy problem take about as many products
MAX_DENSE = 128
# dimensions of the Krylov spaces that are tried in turn; each takes as many products and a few more
KRYLOV_DIMENSIONS = (25, 75, 200)
# relative errors of the extreme eigenvalues that are small enough: if the largest eigenvalue is
# underestimated, the iteration diverges
LOW_ERROR, HIGH_ERROR = 1e-3, 1e-6
SEED = 0


class ExtremeEigenvalues(NamedTuple):
    """The extreme eigenvalues of D^-1 A that are not zero, and the number of products for them.

    `low` and `high` are bounds if `has_converged`: estimates lowered or raised by their error.
    `has_converged` is False if `low` may be too large.
    """

    low: float
    high: float
    products: int
    has_converged: bool


class RitzPairs(NamedTuple):
    """Ritz values in increasing order, and the residual norms of the two extreme ones."""

    values: np.ndarray
    low: int  # the position of the smallest value that is not zero
    low_error: float
    high_error: float


def tune(objective: Objective, d: int, dtype: DType) -> Tuning:
    """Return the best gamma and eta for `objective`, which must be quadratic."""
    with in_precision(dtype):
        objective = cast(objective, dtype)
        D = np.asarray(
            hessian_diagonal(objective, objective.evaluate(jnp.zeros(d, dtype))), np.float64
        )
        D = np.where(D > 0, D, 1.0)
        low, high, products, has_converged = extreme_eigenvalues(objective, D, dtype)
    if high <= 0:
        return Tuning(0.0, (1 / D).astype(dtype), None, "A is zero", float(products))
    gamma, eta, rate = best_constants([low, high])
    words = (
        f"gamma = {gamma:.4g}, eta = {eta:.4g} / diag(A) by {products} products with A, "
        f"rate {rate:.6g}"
    )
    if not has_converged:
        words += f" if no eigenvalue is below {low:.2g}: the smallest one did not converge"
    return Tuning(
        gamma, (eta / D).astype(dtype), rate if has_converged else None, words, float(products)
    )


def extreme_eigenvalues(objective: Objective, D: np.ndarray, dtype: DType) -> ExtremeEigenvalues:
    """Return the extreme eigenvalues of D^-1 A, those of D^-1/2 A D^-1/2, that are not zero.

    Eigenvalues that rounding cannot distinguish from zero belong to the null space, in which the
    iteration does not move. An eigenvalue has converged if the residual norm of its Ritz pair, a
    bound on its error, is small.
    """
    d, products = len(D), 0
    # as a fraction of the largest eigenvalue: those below are rounding errors, and those up to ten
    # times larger may be
    rounding = d * float(np.finfo(dtype).eps)
    root = np.sqrt(D)

    @eqx.filter_jit
    def hessian_times(objective: Objective, v: Vector) -> Vector:
        return objective.hessian_times(objective.evaluate(jnp.zeros_like(v)), v)

    def matvec(v: np.ndarray) -> np.ndarray:
        nonlocal products
        products += 1
        product = hessian_times(objective, jnp.asarray(v.reshape(-1) / root, dtype))
        return np.asarray(product, np.float64) / root

    operator = LinearOperator((d, d), matvec=matvec, dtype=np.float64)
    # a start in the range of A has no part in its null space
    start = operator @ np.random.default_rng(SEED).normal(size=d)
    if not start.any():
        return ExtremeEigenvalues(0.0, 0.0, products, True)
    for n in KRYLOV_DIMENSIONS:
        if d <= max(n, MAX_DENSE):
            ritz = _dense_eigenvalues(operator, rounding)
        else:
            ritz = _krylov_ritz_pairs(operator, start, n, rounding)
        low, high = ritz.values[ritz.low], ritz.values[-1]
        has_converged = ritz.low_error <= LOW_ERROR * low and ritz.high_error <= HIGH_ERROR * high
        if has_converged:
            break
    low, high = ritz.values[ritz.low], ritz.values[-1] + ritz.high_error
    low = max(low - ritz.low_error, 0.5 * low)
    # with eigenvalues that may or may not be zero, the smallest one that is not zero is unknown
    scale = rounding * high
    is_doubtful = np.any((ritz.values > scale) & (ritz.values <= 10 * scale))
    return ExtremeEigenvalues(
        float(low), float(high), products, bool(has_converged and not is_doubtful)
    )


def _krylov_ritz_pairs(
    operator: LinearOperator, start: np.ndarray, n: int, rounding: float
) -> RitzPairs:
    """Return the Ritz pairs of the Krylov space of dimension n.

    With an infinite tolerance ARPACK stops before its first restart and returns n - 1 Ritz pairs of
    the space, without one in the middle. All of them are wanted, because those of the null space
    are below the smallest eigenvalue that is not zero.
    """
    values, vectors = eigsh(operator, k=n - 1, which="BE", ncv=n, v0=start, tol=np.inf)
    order = np.argsort(values)
    values, vectors = values[order], vectors[:, order]
    low = _smallest_nonzero(values, rounding)
    errors = [
        np.linalg.norm(operator @ vectors[:, i] - values[i] * vectors[:, i]) for i in (low, -1)
    ]
    return RitzPairs(values, low, float(errors[0]), float(errors[1]))


def _dense_eigenvalues(operator: LinearOperator, rounding: float) -> RitzPairs:
    """Return all eigenvalues, by as many products as there are columns."""
    matrix = operator @ np.eye(operator.shape[0])
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    return RitzPairs(values, _smallest_nonzero(values, rounding), 0.0, 0.0)


def _smallest_nonzero(values: np.ndarray, rounding: float) -> int:
    """Return the position of the first of sorted eigenvalues that is certainly not zero."""
    return int(np.argmax(values > 10 * rounding * values[-1]))
