"""Caputo derivatives of a function of one variable."""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array

from cfgd._core import checks
from cfgd._core.types import ArrayInput, Numbers, Scalar
from cfgd.calculus.accuracy import compilable, error, pairs, settle
from cfgd.calculus.expectation import (
    Curve,
    Rules,
    Sized,
    derivative,
    expectation,
    on_every,
    shard_rows_like,
)


def caputo(
    f: Curve,
    order: ArrayInput,
    terminal: ArrayInput,
    nodes: int | Literal["auto"] = "auto",
    *,
    derivatives: int | None = None,
) -> Curve:
    r"""The Caputo derivative of `f` of any order > 0, as a function of x (Definition 2.1).

    With n - 1 < order <= n, and left for x > terminal, right for x < terminal,

    $$ D^{order} f(x) = \frac{(\pm 1)^n}{\Gamma(n - order)}
       \int_c^x \frac{f^{(n)}(t)}{|x - t|^{order - n + 1}} |dt|
       = (\pm 1)^n \frac{|x-c|^{n-order}}{\Gamma(n+1-order)}\, E\big[f^{(n)}(c + U(x-c))\big]. $$

    An integer order is the limit from below: f^(n)(x), times (-1)^n on the right. `f` is any
    JAX-differentiable function of one variable, smooth between terminal and x; like a function
    given to `jax.jit` it is compiled once. The result broadcasts over x, terminal and order.

    The expectation is a Gauss-Jacobi rule of as many `nodes` as it needs, 64 to 1024, or as many
    as are given; where they are not enough there is a warning. Inside `jit`, `grad` and `vmap`
    values are unknown: there "auto" is 64, and nothing warns.

    Orders of one call share their n, since f is differentiated n times. An order that is traced
    itself cannot be rounded up to n: it is `derivatives`, and 1 if that is not given, as in the
    paper. A traced order outside (n - 1, n] gives NaN.

    >>> import cfgd
    >>> D = cfgd.caputo(lambda t: t**2, 0.5, terminal=0.0)
    >>> print(D(1.0).round(12))  # Gamma(3) / Gamma(2.5)
    1.504505556127
    """
    n, alpha = _interval(order, derivatives)
    terminal = checks.array("caputo", "terminal", terminal)
    tried, curve = pairs("caputo", nodes), compilable(f)
    whole = None if checks.is_traced(alpha) else np.asarray(alpha) == 1
    if whole is None or (whole.any() and not whole.all()):
        xp = jnp if isinstance(alpha, jax.Array) else np
        memory, program = xp.where((alpha > 0) & (alpha < 1), alpha, 0), _either
    else:
        memory, program = alpha, _integer if whole.all() else _fraction
    program = functools.partial(program, n)
    return lambda x: settle("caputo", tried, program, curve, x, terminal, memory, alpha)


def _interval(order: Any, derivatives: int | None) -> tuple[int, Any]:
    """n and alpha of order = n - 1 + alpha, 0 < alpha <= 1."""
    if derivatives is not None:
        n = checks.integer("caputo", "derivatives", derivatives)
        wanted = f"lie in ({n - 1}, {n}], the interval of `derivatives`"
        order = checks.number("caputo", "order", order, wanted, lambda v: (n - 1 < v) & (v <= n))
        return n, order - (n - 1)
    order = checks.number("caputo", "order", order, "be a positive number", lambda v: v > 0)
    if checks.is_traced(order):
        return 1, order
    ceilings = np.unique(np.ceil(np.asarray(order)))
    if len(ceilings) != 1:
        got = f"{np.min(order)} and {np.max(order)}" if order.size else "none"
        checks.fail("caputo", "order", "lie in one interval (n - 1, n]", got)
    n = int(ceilings[0])
    return n, order - (n - 1)


@eqx.filter_jit
def _integer(
    n: int, f: Curve, rules: Rules, x: Array, terminal: Array, memory: Array, alpha: Array
) -> tuple[Numbers, Scalar]:
    """Every order is n. `f` is not looked at between terminal and x."""
    x, c, _ = shard_rows_like(rules[0][0].dtype, x, terminal, alpha)
    return _sign(n, x - c) * on_every(derivative(f, n), x), jnp.zeros((), x.dtype)


@eqx.filter_jit
def _fraction(
    n: int, f: Curve, rules: Rules, x: Array, terminal: Array, memory: Array, alpha: Array
) -> tuple[Numbers, Scalar]:
    """No order is n."""
    x, c, alpha = shard_rows_like(rules[0][0].dtype, x, terminal, alpha)
    f_n, h = derivative(f, n), x - c

    def values(u: Numbers) -> Sized:
        value = on_every(f_n, c + u * h)
        return value, jnp.abs(value)

    average, other = (expectation(values, rule, x.ndim) for rule in rules)
    return _sign(n, h) * _scale(h, 1 - alpha) * average.mean, error(average, other, c, h)


@eqx.filter_jit
def _either(
    n: int, f: Curve, rules: Rules, x: Array, terminal: Array, memory: Array, alpha: Array
) -> tuple[Numbers, Scalar]:
    """Some orders are n, or may be; where alpha is outside (0, 1] the result is NaN.

    At alpha = 1 it is f^(n)(x), with its slope in alpha: there E[g(U)] is g(1) + (1 - alpha) times
    the integral of (g(u) - g(1)) / (1 - u), and |h|^(1-alpha) / Gamma(2 - alpha) is 1 + (1 - alpha)
    (log |h| + Euler's constant), both up to (1 - alpha)^2. The rule is Gauss-Legendre's there.
    """
    x, c, memory, alpha = shard_rows_like(rules[0][0].dtype, x, terminal, memory, alpha)
    f_n, h, one = derivative(f, n), x - c, alpha == 1
    at = on_every(f_n, x)

    def values(u: Numbers) -> Sized:
        value = on_every(f_n, c + u * h)
        return value, jnp.abs(value)

    def differences(u: Numbers) -> Sized:
        value = (on_every(f_n, c + u * h) - at) / jnp.where(one, 1 - u, 1)
        return value, jnp.abs(value)

    average, other = (expectation(values, rule, x.ndim) for rule in rules)
    slope = at * (jnp.log(jnp.where(h == 0, 1, jnp.abs(h))) + np.euler_gamma)
    slope = slope + expectation(differences, rules[0], x.ndim).mean
    limit = at + (1 - alpha) * jnp.where(one, slope, 0)
    value = jnp.where(one, limit, _scale(h, 1 - memory) * average.mean)
    value = value + alpha * jnp.where((alpha > 0) & (alpha <= 1), 0, math.nan)  # slopes as well
    other = other._replace(mean=jnp.where(one, average.mean, other.mean))
    return _sign(n, h) * value, error(average, other, c, h)


def _sign(n: int, h: Numbers) -> Numbers:
    """The right derivative is that of -t, n times."""
    return jnp.where(h < 0, (-1.0) ** n, 1.0).astype(h.dtype)


def _scale(h: Numbers, gap: Numbers) -> Numbers:
    return jnp.abs(h) ** gap * jnp.exp(-gammaln(1 + gap))
