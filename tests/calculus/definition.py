"""The paper's definitions in mpmath, and test functions of one variable."""

import functools

import equinox as eqx
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from mpmath import mp

from problems import few, quick

# a curve is written once, for jax (m = jnp) and for mpmath (m = mp); none is even or odd
CURVES = {
    "sine and cube": lambda m, t: m.sin(t) + t**3,
    "exponential": lambda m, t: m.exp(t / 2),
    "logarithm": lambda m, t: m.log(t + 5) - t**2 / 3,
}


@functools.cache
def in_jax(curve):
    """Return the JAX function of a curve; the cache lets it be compiled once."""
    return functools.partial(curve, jnp)


sine_and_cube = in_jax(CURVES["sine and cube"])
ORDERS = [0.3, 1.7, 2.5, 0.5, 0.9, 1.3]
TERMINAL = 0.7
# two on each side of the terminal; always four, because each new shape compiles for a second
X = np.array([-1.6, 0.1, 0.75, 2.9])
Z = np.array([-2.7, 0.4, 0.7, 2.3])  # the terminal among them


class Polynomial(eqx.Module):
    """A polynomial in t - TERMINAL, constant first; all of them share one compiled program."""

    coefficients: np.ndarray

    @classmethod
    def of(cls, coefficients):
        return cls(np.pad(np.asarray(coefficients, float), (0, 8 - len(coefficients))))

    def __call__(self, t):  # Horner's scheme
        value = 0.0 * t
        for k in range(7, -1, -1):
            value = value * (t - TERMINAL) + self.coefficients[k]
        return value


curves = pytest.mark.parametrize("curve", quick(CURVES, ["sine and cube", "logarithm"]))
orders = pytest.mark.parametrize("order", few(ORDERS, 3))


def definition(f, order, c, x, derivative=mp.diff):
    """Evaluate Definition 2.1, left or right by the sign of x - c, for a non-integer order.

    |x - t| = |x - c| v^(1/(n - order)) removes the singularity: the integral
    is (1/(n - order)) |x - c|^(n - order) times the integral of f^(n) over v in [0, 1].
    """
    order, c, x = mp.mpf(order), mp.mpf(c), mp.mpf(x)
    n, side = int(mp.ceil(order)), mp.sign(x - c)
    power = 1 / (n - order)

    def integrand(v):
        return derivative(f, x - (x - c) * v**power, n)

    integral = power * abs(x - c) ** (n - order) * mp.quad(integrand, [0, 1])
    return side**n / mp.gamma(n - order) * integral


def scaled_slope(f, alpha, beta, c, x, derivative=mp.diff):
    """Evaluate equation 2.2: [D^alpha f + beta |x - c| D^(1 + alpha) f] / D^alpha I."""
    first, second = (definition(f, a, c, x, derivative) for a in (alpha, 1 + mp.mpf(alpha)))
    return (first + beta * abs(x - c) * second) / definition(lambda t: t, alpha, c, x)


# NumPy's and JAX's arrays in float32, with JAX's 64 bits on and off
in_float32 = pytest.mark.parametrize(
    ("kind", "x64"), few([(np, True), (jnp, False), (np, False), (jnp, True)], 2)
)


def in_digits(digits, fn):
    """Evaluate fn with `digits` digits and return a float64 array."""
    with mpmath.workdps(digits):
        return np.array(fn(), dtype=float)
