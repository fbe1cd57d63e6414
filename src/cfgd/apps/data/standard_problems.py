"""Standard test problems of nonlinear least squares: f(x) = sum_i r_i(x)^2.

Constants, starts and minima are those of Moré, Garbow and Hillstrom, Testing Unconstrained
Optimization Software, ACM TOMS 7 (1981); `number` is the number of a problem in that paper.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)  # hashable: JAX compiles by identity
class StandardProblem:
    """A test problem with its published local minima; `number` is 0 if it is from elsewhere."""

    name: str
    residuals: Callable[[Any], Any]
    x0: Any
    minima: tuple[float, ...]
    number: int = 0

    def __call__(self, x: Any) -> Any:
        r = self.residuals(x)
        return jnp.sum(r * r)

    def start(self, seed: int) -> Any:
        """Return the published start for seed 0, else a random point near it (deviation 0.1)."""
        draw = np.random.default_rng(seed).normal(size=self.x0.size)
        return self.x0 + (0.1 * draw if seed else 0.0)


BARD = np.array([14, 18, 22, 25, 29, 32, 35, 39, 37, 58, 73, 96, 134, 210, 439]) / 100
KOWALIK_Y = np.array(
    [0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]
)
KOWALIK_U = np.array([4, 2, 1, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625])


def rosenbrock(x: Any) -> Any:
    """Return the residuals of the chained form, with neighbouring coordinates coupled."""
    return jnp.concatenate([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])


def freudenstein_roth(x: Any) -> Any:
    a, b = x
    return jnp.stack([-13 + a + ((5 - b) * b - 2) * b, -29 + a + ((b + 1) * b - 14) * b])


def powell_badly_scaled(x: Any) -> Any:
    return jnp.stack([1e4 * x[0] * x[1] - 1, jnp.exp(-x[0]) + jnp.exp(-x[1]) - 1.0001])


def brown_badly_scaled(x: Any) -> Any:
    return jnp.stack([x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2])


def beale(x: Any) -> Any:
    return jnp.array([1.5, 2.25, 2.625]) - x[0] * (1 - x[1] ** jnp.arange(1, 4))


def helical_valley(x: Any) -> Any:
    # the angle in turns, from -1/4 to 3/4: it jumps where x_1 = 0 and x_2 < 0
    turn = jnp.arctan2(x[1], x[0]) / (2 * jnp.pi)
    turn = jnp.where(turn < -0.25, turn + 1, turn)
    radius = jnp.sqrt(x[0] ** 2 + x[1] ** 2)
    return jnp.stack([10 * (x[2] - 10 * turn), 10 * (radius - 1), x[2]])


def bard(x: Any) -> Any:
    u = jnp.arange(1, 16)
    v = 16 - u
    return BARD - (x[0] + u / (v * x[1] + jnp.minimum(u, v) * x[2]))


def box(x: Any) -> Any:
    t = jnp.arange(1, 11) / 10
    return jnp.exp(-t * x[0]) - jnp.exp(-t * x[1]) - x[2] * (jnp.exp(-t) - jnp.exp(-10 * t))


def powell_singular(x: Any) -> Any:
    a, b, c, d = x.reshape(-1, 4).T
    return jnp.concatenate([a + 10 * b, 5**0.5 * (c - d), (b - 2 * c) ** 2, 10**0.5 * (a - d) ** 2])


def wood(x: Any) -> Any:
    a, b, c, d = x
    first = [10 * (b - a * a), 1 - a, 90**0.5 * (d - c * c), 1 - c]
    return jnp.stack([*first, 10**0.5 * (b + d - 2), 0.1**0.5 * (b - d)])


def kowalik_osborne(x: Any) -> Any:
    u = KOWALIK_U
    return KOWALIK_Y - x[0] * (u * u + u * x[1]) / (u * u + u * x[2] + x[3])


def brown_dennis(x: Any) -> Any:
    t = jnp.arange(1, 21) / 5
    first, second = x[0] + t * x[1] - jnp.exp(t), x[2] + x[3] * jnp.sin(t) - jnp.cos(t)
    return first**2 + second**2


def biggs(x: Any) -> Any:
    t = jnp.arange(1, 14) / 10
    y = jnp.exp(-t) - 5 * jnp.exp(-10 * t) + 3 * jnp.exp(-4 * t)
    model = x[2] * jnp.exp(-t * x[0]) - x[3] * jnp.exp(-t * x[1]) + x[5] * jnp.exp(-t * x[4])
    return model - y


def watson(x: Any) -> Any:
    t, j = jnp.arange(1, 30) / 29, jnp.arange(len(x))
    powers = t[:, None] ** j
    inner = (powers[:, :-1] * j[1:]) @ x[1:] - (powers @ x) ** 2 - 1
    return jnp.concatenate([inner, jnp.stack([x[0], x[1] - x[0] ** 2 - 1])])


def penalty(x: Any) -> Any:
    return jnp.append(1e-5**0.5 * (x - 1), jnp.sum(x * x) - 0.25)


def variably_dimensioned(x: Any) -> Any:
    total = jnp.sum(jnp.arange(1, len(x) + 1) * (x - 1))
    return jnp.concatenate([x - 1, jnp.stack([total, total**2])])


def trigonometric(x: Any) -> Any:
    n, cosines = len(x), jnp.cos(x)
    return n - jnp.sum(cosines) + jnp.arange(1, n + 1) * (1 - cosines) - jnp.sin(x)


def boundary_value(x: Any) -> Any:
    h = 1 / (len(x) + 1)
    t, z = h * jnp.arange(1, len(x) + 1), jnp.pad(x, 1)
    return 2 * x - z[:-2] - z[2:] + h * h * (x + t + 1) ** 3 / 2


def broyden_tridiagonal(x: Any) -> Any:
    z = jnp.pad(x, 1)
    return (3 - 2 * x) * x - z[:-2] - 2 * z[2:] + 1


def extended_rosenbrock(x: Any) -> Any:
    """Return the residuals of the form in which pairs of coordinates are independent."""
    return jnp.concatenate([10 * (x[1::2] - x[::2] ** 2), 1 - x[::2]])


def _problem(
    name: str, residuals: Callable[[Any], Any], x0: Any, *minima: float, number: int = 0
) -> StandardProblem:
    return StandardProblem(name, residuals, np.asarray(x0, float), minima, number)


_T10 = np.arange(1, 11) / 11
PROBLEMS = {
    problem.name: problem
    for problem in (
        _problem("Rosenbrock 2", rosenbrock, [-1.2, 1], 0.0, number=1),
        _problem("Rosenbrock 100", rosenbrock, np.tile([-1.2, 1], 50), 0.0, 3.98662),
        _problem("Freudenstein-Roth", freudenstein_roth, [0.5, -2], 0.0, 48.9842, number=2),
        _problem("Powell badly scaled", powell_badly_scaled, [0, 1], 0.0, number=3),
        _problem("Brown badly scaled", brown_badly_scaled, [1, 1], 0.0, number=4),
        _problem("Beale", beale, [1, 1], 0.0, number=5),
        _problem("Helical valley", helical_valley, [-1, 0, 0], 0.0, number=7),
        _problem("Bard", bard, [1, 1, 1], 8.21487e-3, 17.4286, number=8),
        _problem("Box", box, [0, 10, 20], 0.0, number=12),
        _problem("Powell singular", powell_singular, [3, -1, 0, 1], 0.0, number=13),
        _problem("Powell singular 40", powell_singular, np.tile([3, -1, 0, 1], 10), 0.0, number=22),
        _problem("Wood", wood, [-3, -1, -3, -1], 0.0, number=14),
        _problem(
            "Kowalik-Osborne",
            kowalik_osborne,
            [0.25, 0.39, 0.415, 0.39],
            3.07505e-4,
            1.02734e-3,
            number=15,
        ),
        _problem("Brown-Dennis", brown_dennis, [25, 5, -5, -1], 85822.2, number=16),
        _problem("Biggs", biggs, [1, 2, 1, 1, 1, 1], 5.65565e-3, 0.0, number=18),
        _problem("Watson 6", watson, np.zeros(6), 2.28767e-3, number=20),
        _problem(
            "Extended Rosenbrock 100", extended_rosenbrock, np.tile([-1.2, 1], 50), 0.0, number=21
        ),
        _problem("Penalty I 10", penalty, np.arange(1, 11), 7.08765e-5, number=23),
        _problem(
            "Variably dimensioned 10", variably_dimensioned, 1 - np.arange(1, 11) / 10, 0, number=25
        ),
        _problem("Trigonometric 10", trigonometric, np.full(10, 0.1), 0, 2.79506e-5, number=26),
        _problem("Boundary value 10", boundary_value, _T10 * (_T10 - 1), 0.0, number=28),
        _problem("Broyden tridiagonal 10", broyden_tridiagonal, -np.ones(10), 0.0, number=30),
    )
}
