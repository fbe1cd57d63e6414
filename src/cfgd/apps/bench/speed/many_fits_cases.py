"""The curves of `many_fits`: models in JAX and NumPy, Jacobians, and simulated data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Case:
    """A curve, from which data sets are simulated.

    Attributes
    ----------
    model, numpy_model : callable
        model(t, *parameters) in JAX and in NumPy.
    jacobian : callable
        The derivatives of the model in its parameters, in NumPy; the parameters are the last axis.
    ranges : tuple of pairs
        The parameters of the data sets are uniformly distributed in these intervals.
    start : tuple of float
        The initial parameters of all fits.
    span : pair of float
        The first and the last of the points t.
    noise : float
        The standard deviation of the normal errors of the data.
    goal : float
        The goal for the number of fits per second.
    """

    name: str
    model: Callable[..., Any]
    numpy_model: Callable[..., Any]
    jacobian: Callable[..., Any]
    ranges: tuple[tuple[float, float], ...]
    start: tuple[float, ...]
    span: tuple[float, float]
    n_points: int
    noise: float
    goal: float

    @property
    def t(self) -> np.ndarray:
        return np.linspace(*self.span, self.n_points)

    def data(self, n: int, seed: int = 0) -> np.ndarray:
        """Return n data sets, one in each row."""
        random = np.random.default_rng(seed)
        true = [random.uniform(low, high, n)[:, None] for low, high in self.ranges]
        curves = self.numpy_model(self.t, *true)
        return curves + self.noise * random.normal(size=curves.shape)


def _decay(xp: Any) -> Callable[..., Any]:
    return lambda t, a, b, c: a * xp.exp(-b * t) + c


def _decay_jacobian(t: Any, a: Any, b: Any, c: Any) -> np.ndarray:
    e = np.exp(-b * t)
    return np.stack([e, -a * t * e, np.ones_like(e)], -1)


def _gaussian(xp: Any) -> Callable[..., Any]:
    return lambda t, a, m, s, c: a * xp.exp(-0.5 * ((t - m) / s) ** 2) + c


def _gaussian_jacobian(t: Any, a: Any, m: Any, s: Any, c: Any) -> np.ndarray:
    u = (t - m) / s
    e = np.exp(-0.5 * u**2)
    return np.stack([e, a * e * u / s, a * e * u**2 / s, np.ones_like(e)], -1)


def _biexponential(xp: Any) -> Callable[..., Any]:
    return lambda t, a, b, c, d, e: a * xp.exp(-b * t) + c * xp.exp(-d * t) + e


def _biexponential_jacobian(t: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> np.ndarray:
    fast, slow = np.exp(-b * t), np.exp(-d * t)
    return np.stack([fast, -a * t * fast, slow, -c * t * slow, np.ones_like(fast)], -1)


CASES = (
    Case(
        name="exponential decay",
        model=_decay(jnp),
        numpy_model=_decay(np),
        jacobian=_decay_jacobian,
        ranges=((1.0, 5.0), (0.5, 2.0), (0.0, 1.0)),
        start=(1.0, 1.0, 0.0),
        span=(0.0, 4.0),
        n_points=50,
        noise=0.05,
        goal=50_000,
    ),
    Case(
        name="Gaussian",
        model=_gaussian(jnp),
        numpy_model=_gaussian(np),
        jacobian=_gaussian_jacobian,
        ranges=((1.0, 5.0), (-1.5, 1.5), (0.5, 1.5), (0.0, 1.0)),
        start=(1.0, 0.0, 1.0, 0.0),
        span=(-5.0, 5.0),
        n_points=100,
        noise=0.05,
        goal=20_000,
    ),
    Case(
        name="biexponential",
        model=_biexponential(jnp),
        numpy_model=_biexponential(np),
        jacobian=_biexponential_jacobian,
        ranges=((1.0, 4.0), (1.5, 4.0), (1.0, 4.0), (0.2, 0.6), (0.0, 1.0)),
        start=(2.0, 2.0, 2.0, 0.4, 0.5),
        span=(0.0, 8.0),
        n_points=200,
        noise=0.02,
        goal=5_000,
    ),
)
