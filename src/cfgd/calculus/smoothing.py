"""The smoothing of a function of one variable, whose slope the scaled Caputo derivative is."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from cfgd._core import checks
from cfgd._core.types import ArrayInput, Data, Numbers, Scalar, Values
from cfgd.calculus.accuracy import Pairs, compilable, error, pairs, settle
from cfgd.calculus.expectation import (
    Curve,
    Rules,
    Sized,
    derivative,
    expectation,
    on_every,
    shard_rows_like,
)


def smoothing(
    f: Curve,
    alpha: ArrayInput,
    beta: ArrayInput,
    terminal: ArrayInput,
    nodes: int | Literal["auto"] = "auto",
) -> Smoothing:
    r"""The smoothing F of `f` whose ordinary slope is the scaled Caputo slope (Theorem 2.3).

    $$ F'(z) = E[f'(T)] + \beta (z - c) E[f''(T)], \quad T = c + U (z - c), \quad
       F(z) = f(c) + \int_c^z F'(t)\, dt. $$

    This is the theorem's series summed: it needs `f` to be smooth between the terminal and z,
    not to be analytic around the terminal. `nodes` are those of `caputo`.

    >>> import cfgd
    >>> F = cfgd.smoothing(lambda z: (z - 6) * (z + 4) * (7 * z**2 + 10 * z + 24), 0.66, 1.0, -1.0)
    >>> print(F.slope(-2.7).round(9), F(-1.0))
    -279.987803956 -441.0
    """
    alpha = checks.in_open_unit_interval("smoothing", "alpha", alpha)
    beta = checks.array("smoothing", "beta", beta)
    for field, value in (("alpha", alpha), ("beta", beta)):
        if np.ndim(value) != 0:
            checks.fail("smoothing", field, "be one number", f"shape {np.shape(value)}")
    terminal = checks.array("smoothing", "terminal", terminal)
    return Smoothing(compilable(f), alpha, beta, terminal, pairs("smoothing", nodes))


class Smoothing:
    """F of Theorem 2.3: `F(z)` is its value, `F.slope(z)` its derivative; both broadcast over z."""

    # no pytree: `jax.jit(F)` looks F up by its identity, as it does with every function

    def __init__(
        self, f: Curve, alpha: Values, beta: Values, terminal: Values, pairs: Pairs
    ) -> None:
        self.f, self.pairs = f, pairs
        self.alpha, self.beta, self.terminal = alpha, beta, terminal

    def __call__(self, z: ArrayInput) -> Data:
        numbers = self.terminal, self.alpha, self.beta
        return settle("smoothing", self.pairs, _value, self.f, z, *numbers)

    def slope(self, z: ArrayInput) -> Data:
        numbers = self.terminal, self.alpha, self.beta
        return settle("smoothing", self.pairs, _slope, self.f, z, *numbers)


@eqx.filter_jit
def _slope(
    f: Curve, rules: Rules, z: Array, terminal: Array, alpha: Array, beta: Array
) -> tuple[Numbers, Scalar]:
    z, c, alpha, beta = shard_rows_like(rules[0][0].dtype, z, terminal, alpha, beta)
    h = z - c

    def values(u: Numbers) -> Sized:
        t = c + u * h
        first, second = on_every(derivative(f, 1), t), beta * h * on_every(derivative(f, 2), t)
        return first + second, jnp.abs(first) + jnp.abs(second)

    average, other = (expectation(values, rule, z.ndim) for rule in rules)
    return average.mean, error(average, other, c, h)


@eqx.filter_jit
def _value(
    f: Curve, rules: Rules, z: Array, terminal: Array, alpha: Array, beta: Array
) -> tuple[Numbers, Scalar]:
    """F by one average instead of one inside the other.

    The k-th term of the theorem's series has E[U^(k-1)] (1 + beta (k - alpha)) for its constant,
    and 1 for k = 1. With Q = (f(T) - f(c)) / U, the sum is

        F(z) = f(c) + E[(1 - alpha beta) Q + beta h f'(T)] - beta (1 - alpha) h f'(c),  h = z - c.
    """
    z, c, alpha, beta = shard_rows_like(rules[0][0].dtype, z, terminal, alpha, beta)
    h, at, slope = z - c, on_every(f, c), on_every(derivative(f, 1), c)

    def values(u: Numbers) -> Sized:
        u = jnp.maximum(u, jnp.finfo(z.dtype).eps)  # the first of 1024 may be rounded to zero
        t = c + u * h
        there, second = on_every(f, t), beta * h * on_every(derivative(f, 1), t)
        value = (1 - alpha * beta) * (there - at) / u + second
        # f itself is rounded before the difference is taken
        return value, jnp.abs((1 - alpha * beta) * at / u) + jnp.abs(value)

    average, other = (expectation(values, rule, z.ndim) for rule in rules)
    value = at + average.mean - beta * (1 - alpha) * h * slope
    return value, error(average, other, c, h)
