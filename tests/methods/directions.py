"""Objectives and points for tests of directions, and the paper's definitions in mpmath."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from mpmath import mp

import cfgd

# Nothing is symmetric: entries differ, A is full, c is not zero and x - c has both signs.
A = np.array(
    [[4.0, 1.5, -0.6, 0.2], [1.5, 2.5, 0.4, -0.7], [-0.6, 0.4, 1.2, 0.3], [0.2, -0.7, 0.3, 0.8]]
)
B = np.array([1.0, -4.0, 0.7, 2.0])
X = np.array(
    [
        [1.2, 0.3, -0.5, 0.4],
        [-0.4, 1.1, 0.6, -0.9],
        [0.8, -0.9, 0.7, 0.1],
        [0.5, 0.2, 1.3, 0.6],
        [1.0, -0.7, 0.1, -1.4],
        [0.3, 0.9, -0.2, 0.5],
    ]
)
Y = np.array([1.0, -2.0, 0.5, 1.5, -0.3, 0.8])
POINT = np.array([1.3, -0.4, 0.9, -1.1])
TERMINAL = np.array([-0.5, 0.8, 0.2, -1.9])
NODES = 16  # the same everywhere: each new number compiles for a second


class Case(NamedTuple):
    objective: Any
    f: Callable[[list[Any]], Any]  # the same function of a list of mpmath numbers


def wavy(m, x):
    return (
        m.exp(0.5 * x[0] - 0.3 * x[1])
        + m.sin(x[0] * x[2]) / 2
        + x[1] ** 3 * x[3] / 5
        + m.log(2 + (x[2] - x[3]) ** 2)
    )


def quartic(m, x):
    return x[0] ** 4 / 4 + x[0] * x[1] ** 3 - 2 * x[1] * x[2] ** 2 * x[3] + x[3] ** 4 / 3 + x[2]


def predictions(X, x):
    return [mp.fdot(row, x) for row in X.tolist()]


def least_squares(X, y):
    return Case(
        cfgd.LeastSquares(X, y),
        lambda x: sum((p - t) ** 2 for p, t in zip(predictions(X, x), y, strict=True)) / 2,
    )


CASES = {
    "quadratic": Case(
        cfgd.Quadratic(A, B, 3.0),
        lambda x: mp.fdot(x, predictions(A, x)) / 2 + mp.fdot(B.tolist(), x) + 3,
    ),
    "tall least squares": least_squares(X, Y),
    "wide least squares": least_squares(X[:3], Y[:3]),
    "logistic": Case(
        cfgd.LinearModel(X, Y > 0.6, l2=0.3),
        lambda x: (
            sum(
                mp.log(1 + mp.exp(p)) - t * p
                for p, t in zip(predictions(X, x), (Y > 0.6).tolist(), strict=True)
            )
            + 0.3 * mp.fdot(x, x) / 2
        ),
    ),
    "smooth": Case(cfgd.Smooth(lambda x: wavy(jnp, x)), lambda x: wavy(mp, x)),
    "function": Case(lambda x: quartic(jnp, x), lambda x: quartic(mp, x)),
}
QUADRATICS = ["quadratic", "tall least squares", "wide least squares"]
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
quadratics = pytest.mark.parametrize("name", QUADRATICS)
SETTINGS = [(0.3, 0.2), (0.9, -1.5)]
settings = pytest.mark.parametrize(("alpha", "beta"), SETTINGS)


def matrix_of(objective):
    """Return A and b of a quadratic."""
    if isinstance(objective, cfgd.Quadratic):
        return A, B
    rows = {6: slice(None), 3: slice(3)}[objective.y.size]
    return X[rows].T @ X[rows], -X[rows].T @ Y[rows]


def caputo(f, order, c, x):
    """Evaluate Definition 2.1, left or right by the sign of x - c, for a non-integer order.

    |x - t| = |x - c| v^(1/(n - order)) removes the singularity of the integral.
    """
    order, c, x = mp.mpf(order), mp.mpf(c), mp.mpf(x)
    n, side = int(mp.ceil(order)), mp.sign(x - c)
    power = 1 / (n - order)
    integral = mp.quad(lambda v: mp.diff(f, x - (x - c) * v**power, n), [0, 1])
    return side**n / mp.gamma(n - order) * power * abs(x - c) ** (n - order) * integral


def along(f, x, j):
    """Return f_j: f with only coordinate j free."""
    x = [mp.mpf(x_i) for x_i in x]
    return lambda t: f([*x[:j], t, *x[j + 1 :]])


def by_definition(f, x, c, alpha, beta):
    """Return [D^alpha f_j + beta |x_j - c_j| D^(1 + alpha) f_j] / D^alpha I, for each j."""

    def component(j, x_j, c_j, alpha, beta):
        f_j = along(f, x, j)
        first, second = caputo(f_j, alpha, c_j, x_j), caputo(f_j, 1 + mp.mpf(alpha), c_j, x_j)
        return (first + beta * abs(x_j - c_j) * second) / caputo(lambda t: t, alpha, c_j, x_j)

    rows = np.column_stack(np.broadcast_arrays(x, c, alpha, beta))
    with mpmath.workdps(17):
        return np.array([float(component(j, *row)) for j, row in enumerate(rows)])


@functools.cache
def of_wavy(one_terminal=False):
    """Return the direction with which several tests compare, computed once."""
    terminal = 0.25 if one_terminal else TERMINAL
    return cfgd.fractional_gradient(CASES["smooth"].objective, POINT, terminal, 0.3, 0.2, NODES)


def gamma(alpha, beta):
    return beta - (1 - alpha) / (2 - alpha)
