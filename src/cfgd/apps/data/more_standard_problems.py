"""The least-squares problems of Moré, Garbow and Hillstrom (1981) that the group `smooth` lacks.

Constants, starts and minima are those of the paper, as in `standard_problems`.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from cfgd.apps.data.standard_problems import StandardProblem

GAUSSIAN_Y = np.array([9, 44, 175, 540, 1295, 2420, 3521, 3989]) / 1e4  # the rest is its mirror
MEYER_Y = np.fromstring(
    "34780 28610 23650 19630 16370 13720 11540 9744 8261 7030 6005 5147 4427 3820 3307 2872",
    sep=" ",
)
OSBORNE_1_Y = np.fromstring(
    "0.844 0.908 0.932 0.936 0.925 0.908 0.881 0.850 0.818 0.784 0.751 0.718 0.685 0.658 0.628 "
    "0.603 0.580 0.558 0.538 0.522 0.506 0.490 0.478 0.467 0.457 0.448 0.438 0.431 0.424 0.420 "
    "0.414 0.411 0.406",
    sep=" ",
)
OSBORNE_2_Y = np.fromstring(
    "1.366 1.191 1.112 1.013 0.991 0.885 0.831 0.847 0.786 0.725 0.746 0.679 0.608 0.655 0.616 "
    "0.606 0.602 0.626 0.651 0.724 0.649 0.649 0.694 0.644 0.624 0.661 0.612 0.558 0.533 0.495 "
    "0.500 0.423 0.395 0.375 0.372 0.391 0.396 0.405 0.428 0.429 0.523 0.562 0.607 0.653 0.672 "
    "0.708 0.633 0.668 0.645 0.632 0.591 0.559 0.597 0.625 0.739 0.710 0.729 0.720 0.636 0.581 "
    "0.428 0.292 0.162 0.098 0.054",
    sep=" ",
)
OSBORNE_2_START = [1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5]


def jennrich_sampson(x: Any) -> Any:
    i = jnp.arange(1, 11)
    return 2 + 2 * i - (jnp.exp(i * x[0]) + jnp.exp(i * x[1]))


def gaussian(x: Any) -> Any:
    t = (8 - np.arange(1, 16)) / 2
    y = np.concatenate([GAUSSIAN_Y, GAUSSIAN_Y[-2::-1]])
    return x[0] * jnp.exp(-x[1] * (t - x[2]) ** 2 / 2) - y


def meyer(x: Any) -> Any:
    t = 45 + 5 * np.arange(1, 17)
    return x[0] * jnp.exp(x[1] / (t + x[2])) - MEYER_Y


def gulf(x: Any) -> Any:
    """Return the residuals of the form that is zero at (50, 25, 1.5)."""
    t = np.arange(1, 100) / 100
    y = 25 + (-50 * np.log(t)) ** (2 / 3)
    return jnp.exp(-(jnp.abs(y - x[1]) ** x[2]) / x[0]) - t


def osborne_1(x: Any) -> Any:
    t = 10.0 * np.arange(33)
    return OSBORNE_1_Y - (x[0] + x[1] * jnp.exp(-t * x[3]) + x[2] * jnp.exp(-t * x[4]))


def osborne_2(x: Any) -> Any:
    t = np.arange(65) / 10
    peaks = [x[k] * jnp.exp(-((t - x[k + 7]) ** 2) * x[k + 4]) for k in (1, 2, 3)]
    return OSBORNE_2_Y - (x[0] * jnp.exp(-t * x[4]) + sum(peaks))


def penalty_2(x: Any) -> Any:
    n, root = len(x), 1e-5**0.5
    i = np.arange(2, n + 1)
    y = np.exp(i / 10) + np.exp((i - 1) / 10)
    return jnp.concatenate(
        [
            x[:1] - 0.2,
            root * (jnp.exp(x[1:] / 10) + jnp.exp(x[:-1] / 10) - y),
            root * (jnp.exp(x[1:] / 10) - np.exp(-0.1)),
            jnp.stack([jnp.sum(np.arange(n, 0, -1) * x**2) - 1]),
        ]
    )


def brown_almost_linear(x: Any) -> Any:
    return jnp.append(x[:-1] + jnp.sum(x) - (len(x) + 1), jnp.prod(x) - 1)


def integral_equation(x: Any) -> Any:
    n = len(x)
    h = 1 / (n + 1)
    t = h * np.arange(1, n + 1)
    cubes = (x + t + 1) ** 3
    below = jnp.cumsum(t * cubes)
    above = jnp.sum((1 - t) * cubes) - jnp.cumsum((1 - t) * cubes)
    return x + h * ((1 - t) * below + t * above) / 2


def broyden_banded(x: Any) -> Any:
    n = len(x)
    i, j = np.indices((n, n))
    band = ((j >= i - 5) & (j <= i + 1) & (j != i)).astype(float)
    return x * (2 + 5 * x**2) + 1 - band @ (x * (1 + x))


def linear_full_rank(x: Any) -> Any:
    m = 2 * len(x)
    shift = 2 / m * jnp.sum(x) + 1
    return jnp.concatenate([x, jnp.zeros(m - len(x))]) - shift


def linear_rank_1(x: Any) -> Any:
    i = np.arange(1, 2 * len(x) + 1)
    return i * jnp.sum(np.arange(1, len(x) + 1) * x) - 1


def linear_rank_1_zero(x: Any) -> Any:
    n = len(x)
    m = 2 * n
    i = np.concatenate([[0], np.arange(1, m - 1), [0]])
    return i * jnp.sum(np.arange(2, n) * x[1:-1]) - 1


def chebyquad(x: Any) -> Any:
    """Return the means of Chebyshev's polynomials over x, minus their means over [0, 1]."""
    z = 2 * x - 1
    polynomials = [jnp.ones_like(z), z]
    for _ in range(len(x) - 1):
        polynomials.append(2 * z * polynomials[-1] - polynomials[-2])
    means = jnp.mean(jnp.stack(polynomials[1:]), axis=1)
    i = np.arange(1, len(x) + 1)
    even = i % 2 == 0
    return means - np.where(even, -1 / np.where(even, i**2 - 1, 1), 0)


def _problem(name: str, fn: Any, x0: Any, number: int, *minima: float) -> StandardProblem:
    return StandardProblem(name, fn, np.asarray(x0, float), minima, number)


_T10 = np.arange(1, 11) / 11
MORE_PROBLEMS = {
    problem.name: problem
    for problem in (
        _problem("Jennrich-Sampson", jennrich_sampson, [0.3, 0.4], 6, 124.362),
        _problem("Gaussian", gaussian, [0.4, 1, 0], 9, 1.12793e-8),
        _problem("Meyer", meyer, [0.02, 4000, 250], 10, 87.9458),
        _problem("Gulf", gulf, [5, 2.5, 0.15], 11, 0.0),
        _problem("Osborne 1", osborne_1, [0.5, 1.5, -1, 0.01, 0.02], 17, 5.46489e-5),
        _problem("Osborne 2", osborne_2, OSBORNE_2_START, 19, 4.01377e-2),
        _problem("Penalty II 4", penalty_2, np.full(4, 0.5), 24, 9.37629e-6),
        _problem("Brown almost-linear 10", brown_almost_linear, np.full(10, 0.5), 27, 0.0, 1.0),
        _problem("Integral equation 10", integral_equation, _T10 * (_T10 - 1), 29, 0.0),
        _problem("Broyden banded 10", broyden_banded, -np.ones(10), 31, 0.0),
        _problem("Linear, full rank", linear_full_rank, np.ones(5), 32, 5.0),
        _problem("Linear, rank 1", linear_rank_1, np.ones(5), 33, 10 * 9 / (2 * 21)),
        _problem("Linear, rank 1, zeros", linear_rank_1_zero, np.ones(5), 34, 124 / 34),
        _problem("Chebyquad 8", chebyquad, np.arange(1, 9) / 9, 35, 3.51687e-3),
    )
}
