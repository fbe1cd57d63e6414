"""Robust losses rho(z) of squared residuals z = r^2, with the names of SciPy's `least_squares`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from cfgd._core import checks
from cfgd._core.linalg import array_namespace
from cfgd._core.types import Data


class Robust(NamedTuple):
    """rho and its first two derivatives."""

    value: Data
    slope: Data
    curvature: Data


Rho: TypeAlias = Callable[[Data], Robust]


def squared(z: Data) -> Robust:
    """rho(z) = z."""
    xp = array_namespace(z)
    return Robust(z, xp.ones_like(z), xp.zeros_like(z))


def soft_l1(z: Data) -> Robust:
    """rho(z) = 2 (sqrt(1 + z) - 1), in a form without cancellation for small z."""
    root = array_namespace(z).sqrt(1 + z)
    return Robust(2 * z / (1 + root), 1 / root, -1 / (2 * root**3))


def huber(z: Data) -> Robust:
    """rho(z) = z up to 1, 2 sqrt(z) - 1 beyond."""
    far, xp = z > 1, array_namespace(z)
    root = xp.sqrt(xp.where(far, z, 1))
    return Robust(xp.where(far, 2 * root - 1, z), 1 / root, xp.where(far, -1 / (2 * root**3), 0))


def cauchy(z: Data) -> Robust:
    """rho(z) = log(1 + z)."""
    return Robust(array_namespace(z).log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2)


def huber_correction(mean: float, variance: float, parameters: float, count: int) -> float:
    """Return Huber's factor k = 1 + p var(psi') / (m mean(psi')^2) for m rows and p parameters.

    It corrects the covariance of an estimate by a robust loss with the derivative psi for small
    samples (Huber, Robust Statistics, section 7.6).
    """
    return 1 + parameters / count * variance / mean**2


LOSSES: dict[str, Rho] = {
    "squared": squared,
    "soft_l1": soft_l1,
    "huber": huber,
    "cauchy": cauchy,
}


def rho_of(owner: str, loss: str) -> Rho:
    """Return the loss of a name."""
    return LOSSES[checks.choice(owner, "loss", loss, LOSSES)]
