"""Caputo derivatives of a function of one variable, and the smoothing whose slope they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from cfgd import _check
from cfgd.precision import numpy_in_numpy_out
from cfgd.quadrature import rule

Curve = Callable[[Any], Any]


def caputo(f: Curve, order: float, terminal: ArrayLike, nodes: int = 64) -> Curve:
    r"""The Caputo derivative of `f` of any order > 0, as a function of x (Definition 2.1).

    With n - 1 < order <= n, and left for x > terminal, right for x < terminal,

    $$ D^{order} f(x) = \frac{(\pm 1)^n}{\Gamma(n - order)}
       \int_c^x \frac{f^{(n)}(t)}{|x - t|^{order - n + 1}} |dt|
       = (\pm 1)^n \frac{|x-c|^{n-order}}{\Gamma(n+1-order)}\, E\big[f^{(n)}(c + U(x-c))\big]. $$

    An integer order is the limit from below: f^(n)(x), times (-1)^n on the right. `f` is any
    JAX-differentiable function of one variable, smooth between terminal and x; the expectation
    is a Gauss-Jacobi rule of `nodes` points. The result broadcasts over x.

    >>> import cfgd
    >>> D = cfgd.caputo(lambda t: t**2, 0.5, terminal=0.0)
    >>> print(D(1.0).round(12))  # Gamma(3) / Gamma(2.5)
    1.504505556127
    """
    _check.integer("caputo", "nodes", nodes)
    _check.number("caputo", "order", order, "be a positive number", lambda v: v > 0)
    if np.ndim(order) != 0:
        _check.fail("caputo", "order", "be one number", f"shape {np.shape(order)}")
    terminal = _check.array("caputo", "terminal", terminal)
    n = math.ceil(order)
    f_n = _derivative(f, n)

    def left_or_right(x: Any, terminal: Any) -> Any:
        x, c = _beside(x, terminal)
        sign = jnp.where(x < c, (-1.0) ** n, 1.0).astype(x.dtype)
        if n == order:
            return sign * _on_every(f_n, x)
        u, w = rule(jnp.asarray(order - n + 1, x.dtype), nodes)
        mean = _expectation(f_n, c, x, u, w)
        return sign * jnp.abs(x - c) ** (n - order) / math.gamma(n + 1 - order) * mean

    return lambda x: numpy_in_numpy_out(left_or_right)(x, terminal)


def smoothing(f: Curve, alpha: float, beta: float, terminal: float) -> Smoothing:
    r"""The smoothing F of `f` whose ordinary slope is the scaled Caputo slope (Theorem 2.3).

    $$ F'(z) = E[f'(T)] + \beta (z - c) E[f''(T)], \quad T = c + U (z - c), \quad
       F(z) = f(c) + \int_c^z F'(t)\, dt. $$

    This is the theorem's series summed: it needs `f` to be smooth between the terminal and z,
    not to be analytic around the terminal.

    >>> import cfgd
    >>> F = cfgd.smoothing(lambda z: (z - 6) * (z + 4) * (7 * z**2 + 10 * z + 24), 0.66, 1.0, -1.0)
    >>> print(F.slope(-2.7).round(9), F(-1.0))
    -279.987803956 -441.0
    """
    alpha = _check.order("smoothing", "alpha", alpha)
    beta = _check.array("smoothing", "beta", beta)
    for field, value in (("alpha", alpha), ("beta", beta)):
        if np.ndim(value) != 0:
            _check.fail("smoothing", field, "be one number", f"shape {np.shape(value)}")
    return Smoothing(f, alpha, beta, _check.array("smoothing", "terminal", terminal))


class Smoothing(eqx.Module):
    """F of Theorem 2.3: `F(z)` is its value, `F.slope(z)` its derivative; both broadcast over z."""

    f: Curve
    alpha: Any
    beta: Any
    terminal: Any
    nodes: int = eqx.field(static=True, default=64)

    def __call__(self, z: ArrayLike) -> Any:
        return numpy_in_numpy_out(Smoothing._value)(self, z)

    def slope(self, z: ArrayLike) -> Any:
        return numpy_in_numpy_out(Smoothing._slope)(self, z)

    def _slope(self, z: Any) -> Any:
        z, c = _beside(z, self.terminal)
        u, w = rule(jnp.asarray(self.alpha, z.dtype), self.nodes)
        first = _expectation(_derivative(self.f, 1), c, z, u, w)
        second = _expectation(_derivative(self.f, 2), c, z, u, w)
        return first + jnp.asarray(self.beta, z.dtype) * (z - c) * second

    def _value(self, z: Any) -> Any:
        z, c = _beside(z, self.terminal)
        v, w = rule(jnp.zeros((), z.dtype), self.nodes)  # Gauss-Legendre, from terminal to z
        slopes = self._slope(c + _column(v, z) * (z - c))
        return _on_every(self.f, c) + (z - c) * jnp.tensordot(w, slopes, axes=1)


def _derivative(f: Curve, n: int) -> Curve:
    for _ in range(n):
        f = _slope_of(f)
    return f


def _slope_of(f: Curve) -> Curve:
    return lambda t: jax.jvp(f, (t,), (jnp.ones_like(t),))[1]


def _expectation(f: Curve, c: Any, x: Any, u: Any, w: Any) -> Any:
    """E[f(c + U (x - c))]: the average of f between the terminal and x."""
    return jnp.tensordot(w, _on_every(f, c + _column(u, x) * (x - c)), axes=1)


def _on_every(f: Curve, t: Any) -> Any:
    return jax.vmap(f)(t.reshape(-1)).reshape(t.shape)


def _column(u: Any, x: Any) -> Any:
    return u.reshape((-1,) + (1,) * jnp.ndim(x))


def _beside(x: Any, terminal: Any) -> tuple[Any, Any]:
    """x and the terminal, broadcast; a terminal that is one number takes the precision of x."""
    x = jnp.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        x = x.astype(float)
    c = jnp.asarray(terminal, x.dtype if jnp.ndim(terminal) == 0 else None)
    x, c = jnp.broadcast_arrays(x, c)
    return x, c
