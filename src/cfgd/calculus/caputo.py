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
from cfgd.calculus.expectation import (
    Curve,
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


def caputo(
    f: Curve,
    order: ArrayInput,
    terminal: ArrayInput,
    nodes: int | Literal["auto"] = "auto",
    *,
    derivatives: int | None = None,
) -> Curve:
    r"""Return the Caputo derivative of `f` of any order > 0, as a function of x (Definition 2.1).

    With n - 1 < order <= n, and left for x > terminal, right for x < terminal,

    $$ D^{order} f(x) = \frac{(\pm 1)^n}{\Gamma(n - order)}
       \int_c^x \frac{f^{(n)}(t)}{|x - t|^{order - n + 1}} |dt|
       = (\pm 1)^n \frac{|x-c|^{n-order}}{\Gamma(n+1-order)}\, E\big[f^{(n)}(c + U(x-c))\big]. $$

    An integer order is the limit from below: f^(n)(x), times (-1)^n on the right.

    Parameters
    ----------
    f : callable
        Any JAX-differentiable function of one variable that is smooth between terminal and x. Like
        a function given to `jax.jit` it is compiled once.
    order : float or array
        Orders of one call must have the same n, since f is differentiated n times. The n of a
        traced order is unknown, so it is `derivatives`; a traced order outside (n - 1, n] gives
        NaN.
    terminal : float or array
        The terminal c.
    nodes : int or "auto", default "auto"
        Number of nodes of the Gauss-Jacobi rule for the expectation. With "auto" it grows from 64
        to at most 1024 until it is accurate. A warning is issued if the nodes are not enough.
        Inside `jit`, `grad` and `vmap` values are unknown: there "auto" means 64, without warning.
    derivatives : int, optional
        n, for traced orders; 1 by default, as in the paper.

    Returns
    -------
    function
        A function of x that broadcasts over x, terminal and order.

    Raises
    ------
    ValueError
        If `f` is not callable; an order is not positive, orders lie in different intervals
        (n - 1, n], or an order is outside of that of `derivatives`; `terminal` is not finite; or
        `nodes` is neither "auto" nor an integer of at least 1.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), definition 2.1.

    Examples
    --------
    >>> import cfgd
    >>> D = cfgd.caputo(lambda t: t**2, 0.5, terminal=0.0)
    >>> print(D(1.0).round(12))  # Gamma(3) / Gamma(2.5)
    1.504505556127
    """
    checks.function("caputo", "f", f, "be a function of one variable")
    n, alpha = _interval(order, derivatives)
    terminal = checks.array("caputo", "terminal", terminal)
    counts, curve = node_counts("caputo", nodes), hashable(f)
    is_integer = None if checks.is_traced(alpha) else np.asarray(alpha) == 1
    if is_integer is None or (is_integer.any() and not is_integer.all()):
        xp = jnp if isinstance(alpha, jax.Array) else np
        rule_alpha, program = xp.where((alpha > 0) & (alpha < 1), alpha, 0), _mixed_orders
    else:
        rule_alpha, program = alpha, _integer_orders if is_integer.all() else _fractional_orders
    program = functools.partial(program, n)

    def caputo_derivative(x: Any) -> Any:
        """Return the Caputo derivative at x, in the shape of x, terminal and order."""
        numbers = x, terminal, rule_alpha, alpha
        return with_enough_nodes("caputo", counts, program, curve, *numbers)

    return caputo_derivative


def _interval(order: object, derivatives: int | None) -> tuple[int, Any]:
    """Return n and alpha of order = n - 1 + alpha, 0 < alpha <= 1."""
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
def _integer_orders(
    n: int, f: Curve, rules: Rules, x: Array, terminal: Array, rule_alpha: Array, alpha: Array
) -> tuple[Numbers, Scalar]:
    """Differentiate n times where every order is n; `f` is evaluated at x alone."""
    x, c, _ = cast_and_broadcast(rules[0][0].dtype, x, terminal, alpha)
    return _sign(n, x - c) * elementwise(derivative(f, n), x), jnp.zeros((), x.dtype)


@eqx.filter_jit
def _fractional_orders(
    n: int, f: Curve, rules: Rules, x: Array, terminal: Array, rule_alpha: Array, alpha: Array
) -> tuple[Numbers, Scalar]:
    """Compute the derivative where no order is n."""
    x, c, alpha = cast_and_broadcast(rules[0][0].dtype, x, terminal, alpha)
    f_n, h = derivative(f, n), x - c

    def values(u: Numbers) -> ValuesAndSizes:
        value = elementwise(f_n, c + u * h)
        return value, jnp.abs(value)

    average, other = (expectation(values, rule, x.ndim) for rule in rules)
    return _sign(n, h) * _scale(h, 1 - alpha) * average.mean, error_estimate(average, other, c, h)


@eqx.filter_jit
def _mixed_orders(
    n: int, f: Curve, rules: Rules, x: Array, terminal: Array, rule_alpha: Array, alpha: Array
) -> tuple[Numbers, Scalar]:
    """Compute the derivative where some orders are n, or may be because they are traced.

    The result is NaN where alpha is outside (0, 1]. At alpha = 1 it is f^(n)(x), with the right
    slope in alpha: up to (1 - alpha)^2, E[g(U)] is g(1) + (1 - alpha) times the integral of
    (g(u) - g(1)) / (1 - u), and |h|^(1-alpha) / Gamma(2 - alpha) is 1 + (1 - alpha) (log |h| +
    Euler's constant). `rule_alpha` is 0 there, so that the rule is that of Gauss and Legendre.
    """
    x, c, rule_alpha, alpha = cast_and_broadcast(rules[0][0].dtype, x, terminal, rule_alpha, alpha)
    f_n, h, is_one = derivative(f, n), x - c, alpha == 1
    f_n_at_x = elementwise(f_n, x)

    def values(u: Numbers) -> ValuesAndSizes:
        value = elementwise(f_n, c + u * h)
        return value, jnp.abs(value)

    def differences(u: Numbers) -> ValuesAndSizes:
        value = (elementwise(f_n, c + u * h) - f_n_at_x) / jnp.where(is_one, 1 - u, 1)
        return value, jnp.abs(value)

    average, other = (expectation(values, rule, x.ndim) for rule in rules)
    slope = f_n_at_x * (jnp.log(jnp.where(h == 0, 1, jnp.abs(h))) + np.euler_gamma)
    slope = slope + expectation(differences, rules[0], x.ndim).mean
    limit = f_n_at_x + (1 - alpha) * jnp.where(is_one, slope, 0)
    value = jnp.where(is_one, limit, _scale(h, 1 - rule_alpha) * average.mean)
    # the factor alpha makes derivatives in alpha NaN, too
    value = value + alpha * jnp.where((alpha > 0) & (alpha <= 1), 0, math.nan)
    other = other._replace(mean=jnp.where(is_one, average.mean, other.mean))
    return _sign(n, h) * value, error_estimate(average, other, c, h)


def _sign(n: int, h: Numbers) -> Numbers:
    """Return the sign of the left (1) or right derivative ((-1)^n)."""
    return jnp.where(h < 0, (-1.0) ** n, 1.0).astype(h.dtype)


def _scale(h: Numbers, gap: Numbers) -> Numbers:
    """Return |h|^gap / Gamma(1 + gap)."""
    return jnp.abs(h) ** gap * jnp.exp(-gammaln(1 + gap))
