"""The best constants of the adaptive terminal on a quadratic, from a few products with its matrix.

With the step eta / D the iteration is heavy ball in coordinates scaled by D^(1/2); the best gamma
and eta follow from the extreme eigenvalues of D^-1 A, which Lanczos finds.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.linalg import eigh_tridiagonal

from cfgd._core.arrays import cast, in_precision
from cfgd._core.types import DType, Vector
from cfgd.methods.base import Tuning
from cfgd.objectives.base import Objective
from cfgd.theory import best_constants

MOST_PRODUCTS = 200
# relative errors of the extreme eigenvalues that will do: a largest one too small would diverge
LOW_ERROR, HIGH_ERROR = 1e-3, 1e-6
SEED = 0


class Extremes(NamedTuple):
    """The extreme eigenvalues of D^-1 A, how many products they took, and if they have settled."""

    low: float
    high: float
    products: int
    settled: bool


def tune(objective: Objective, d: int, dtype: DType) -> Tuning:
    """Gamma and eta for `objective`, which must be quadratic."""
    with in_precision(dtype):
        objective = cast(objective, dtype)
        D = np.asarray(objective.diagonal_at(objective.evaluate(jnp.zeros(d, dtype))), np.float64)
        D = np.where(D > 0, D, 1.0)
        ends = extremes(objective, D, dtype)
    if ends.high <= 0:
        return Tuning(0.0, (1 / D).astype(dtype), None, "A is zero", float(ends.products))
    gamma, eta, rate = best_constants([ends.low, ends.high])
    words = (
        f"gamma = {gamma:.4g}, eta = {eta:.4g} / diag(A) by {ends.products} Lanczos steps, "
        f"rate {rate:.6g}"
    )
    if not ends.settled:
        words += f" if no eigenvalue is below {ends.low:.2g}, which they did not settle"
    return Tuning(
        gamma, (eta / D).astype(dtype), rate if ends.settled else None, words, float(ends.products)
    )


def extremes(objective: Objective, D: np.ndarray, dtype: DType) -> Extremes:
    """The extreme eigenvalues of D^-1 A that are not zero, by Lanczos on D^-1/2 A D^-1/2.

    All vectors are kept orthogonal to each other; an eigenvalue has settled when the residual of
    its Ritz pair is small. Those that rounding cannot tell from zero belong to the null space,
    along which nothing moves.
    """
    root, d = np.sqrt(D), len(D)
    rounding = d * float(np.finfo(dtype).eps)

    @eqx.filter_jit
    def product(objective: Objective, v: Vector) -> Vector:
        return objective.hessian_times(objective.evaluate(jnp.zeros_like(v)), v)

    def scaled(v: np.ndarray) -> np.ndarray:
        return np.asarray(product(objective, jnp.asarray(v / root, dtype)), np.float64) / root

    v = np.random.default_rng(SEED).normal(size=d)
    basis = np.empty((min(d, MOST_PRODUCTS), d))
    diagonal: list[float] = []
    beside = [float(np.linalg.norm(v))]
    for k in range(len(basis)):
        basis[k] = v / beside[k]
        v = scaled(basis[k])
        diagonal.append(float(v @ basis[k]))
        for _ in range(2):  # twice is enough for orthogonality to rounding
            v = v - (basis[: k + 1] @ v) @ basis[: k + 1]
        beside.append(float(np.linalg.norm(v)))
        ritz, vectors = eigh_tridiagonal(diagonal, beside[1:-1])
        high = float(ritz[-1])
        lowest = int(np.argmax(ritz > 10 * rounding * high))
        low = float(ritz[lowest])
        errors = beside[-1] * np.abs(vectors[-1])
        settled = errors[lowest] <= LOW_ERROR * low and errors[-1] <= HIGH_ERROR * high
        whole = k + 1 == d or beside[-1] <= 10 * rounding * high
        if settled or whole:
            break
    # the residual bounds how far an eigenvalue is from its Ritz value
    low, high = max(low - float(errors[lowest]), 0.5 * low), high + float(errors[-1])
    # eigenvalues between these may be zeros, or may not
    doubtful = np.any((ritz > rounding * high) & (ritz <= 10 * rounding * high))
    return Extremes(low, high, k + 1, bool((settled or whole) and not doubtful))
