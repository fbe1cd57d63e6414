"""The smoothing of a function of one variable: its slope is the scaled Caputo derivative."""

from __future__ import annotations

from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from cfgd._core import checks
from cfgd._core.public_names import ListsPublicNames
from cfgd._core.representation import text_of
from cfgd._core.types import ArrayInput, Data, Numbers, Scalar, Values
from cfgd.calculus.expectation import (
    Curve,
    NodeCounts,
    Rules,
    ValuesAndSizes,
    cast_and_broadcast,
    derivative,
    elementwise,
    error_estimate,
    expectation,
    hashable,
    node_counts,
    with_enough_nodes,
)


def smoothing(
    f: Curve,
    alpha: ArrayInput,
    beta: ArrayInput,
    terminal: ArrayInput,
    nodes: int | Literal["auto"] = "auto",
) -> Smoothing:
    r"""Return the smoothing F of `f`: its derivative is the scaled Caputo slope (Theorem 2.3).

    $$ F'(z) = E[f'(T)] + \beta (z - c) E[f''(T)], \quad T = c + U (z - c), \quad
       F(z) = f(c) + \int_c^z F'(t)\, dt. $$

    This is the sum of the series in the theorem. `f` must be smooth between the terminal and z, but
    need not be analytic around the terminal.

    Parameters
    ----------
    f : callable
        Any JAX-differentiable function of one variable.
    alpha, beta : float
        Order in (0, 1) and smoothing: one number each.
    terminal : float
        The terminal c.
    nodes : int or "auto", default "auto"
        Number of nodes, as in `caputo`.

    Returns
    -------
    Smoothing
        `F(z)` is the value, `F.slope(z)` the derivative.

    Raises
    ------
    ValueError
        If `f` is not callable; `alpha` is not one number in (0, 1); `beta` is not one finite
        number; `terminal` is not finite; or `nodes` is neither "auto" nor an integer of at least 1.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), theorem 2.3.

    Examples
    --------
    >>> import cfgd
    >>> F = cfgd.smoothing(lambda z: (z - 6) * (z + 4) * (7 * z**2 + 10 * z + 24), 0.66, 1.0, -1.0)
    >>> print(F.slope(-2.7).round(9), F(-1.0))
    -279.987803956 -441.0
    """
    checks.function("smoothing", "f", f, "be a function of one variable")
    alpha = checks.in_open_unit_interval("smoothing", "alpha", alpha)
    beta = checks.array("smoothing", "beta", beta)
    for field, value in (("alpha", alpha), ("beta", beta)):
        if np.ndim(value) != 0:
            checks.fail("smoothing", field, "be one number", f"shape {np.shape(value)}")
    terminal = checks.array("smoothing", "terminal", terminal)
    return Smoothing(hashable(f), alpha, beta, terminal, node_counts("smoothing", nodes))


class Smoothing(ListsPublicNames):
    """F of Theorem 2.3: `F(z)` is its value, `F.slope(z)` its derivative; both broadcast over z.

    Not a pytree: `jax.jit(F)` caches F by its identity, like any function.
    """

    _internal: ClassVar[tuple[str, ...]] = ("counts",)

    def __init__(
        self, f: Curve, alpha: Values, beta: Values, terminal: Values, counts: NodeCounts
    ) -> None:
        self.f, self.counts = f, counts
        self.alpha, self.beta, self.terminal = alpha, beta, terminal

    def __repr__(self) -> str:
        names = "f", "alpha", "beta", "terminal"
        shown = ", ".join(f"{name}={text_of(getattr(self, name))}" for name in names)
        return f"smoothing({shown})"

    def __call__(self, z: ArrayInput) -> Data:
        numbers = self.terminal, self.alpha, self.beta
        return with_enough_nodes("smoothing", self.counts, _value, self.f, z, *numbers)

    def slope(self, z: ArrayInput) -> Data:
        """Return F'(z), the scaled Caputo slope."""
        numbers = self.terminal, self.alpha, self.beta
        return with_enough_nodes("smoothing", self.counts, _slope, self.f, z, *numbers)


@eqx.filter_jit
def _slope(
    f: Curve, rules: Rules, z: Array, terminal: Array, alpha: Array, beta: Array
) -> tuple[Numbers, Scalar]:
    z, c, alpha, beta = cast_and_broadcast(rules[0][0].dtype, z, terminal, alpha, beta)
    h = z - c

    def values(u: Numbers) -> ValuesAndSizes:
        t = c + u * h
        first = elementwise(derivative(f, 1), t)
        second = beta * h * elementwise(derivative(f, 2), t)
        return first + second, jnp.abs(first) + jnp.abs(second)

    average, other = (expectation(values, rule, z.ndim) for rule in rules)
    return average.mean, error_estimate(average, other, c, h)


@eqx.filter_jit
def _value(
    f: Curve, rules: Rules, z: Array, terminal: Array, alpha: Array, beta: Array
) -> tuple[Numbers, Scalar]:
    """Compute F by one expectation, instead of an integral over expectations.

    The constant of the k-th term of the theorem's series is E[U^(k-1)] (1 + beta (k - alpha)), and
    1 for k = 1. With Q = (f(T) - f(c)) / U, the sum is

        F(z) = f(c) + E[(1 - alpha beta) Q + beta h f'(T)] - beta (1 - alpha) h f'(c),  h = z - c.
    """
    z, c, alpha, beta = cast_and_broadcast(rules[0][0].dtype, z, terminal, alpha, beta)
    h, f_at_c, slope_at_c = z - c, elementwise(f, c), elementwise(derivative(f, 1), c)

    def values(u: Numbers) -> ValuesAndSizes:
        u = jnp.maximum(u, jnp.finfo(z.dtype).eps)  # the first of 1024 nodes may be rounded to zero
        t = c + u * h
        f_at_t, second = elementwise(f, t), beta * h * elementwise(derivative(f, 1), t)
        value = (1 - alpha * beta) * (f_at_t - f_at_c) / u + second
        # the rounding of f(c) is part of the error, since it precedes the difference
        return value, jnp.abs((1 - alpha * beta) * f_at_c / u) + jnp.abs(value)

    average, other = (expectation(values, rule, z.ndim) for rule in rules)
    value = f_at_c + average.mean - beta * (1 - alpha) * h * slope_at_c
    return value, error_estimate(average, other, c, h)
