"""Tables of problems and methods, and the paper's iterations as plain loops in NumPy.

Nothing in this module calls the solver: its iterates are compared with `reference_iterates` and
`iterates_on_wave`. The data is asymmetric on purpose (different entries, off-diagonal A, c != 0,
both signs of x - c), so that a swapped interval end or a wrong sign fails a test.
"""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import cfgd
from cfgd.apps.data.random_least_squares import ill_conditioned as extremes_set


def identity(x):
    """Return x; passed as `record`, one function lets equal runs share one compilation."""
    return x


def do_nothing(solution):
    """Do nothing; a run with a callback returns to Python after every iteration."""


def quick(table, chosen):
    """Return the rows of a table for `parametrize`; those not chosen run in `make slow` only."""
    return [
        pytest.param(
            *(row if isinstance(row, tuple) else (row,)),
            id=name,
            marks=() if name in chosen else pytest.mark.slow,
        )
        for name, row in table.items()
    ]


def few(rows, count=1):
    """Return rows for `parametrize`; those after the first `count` run in `make slow` only."""
    rows = [row if isinstance(row, tuple) else (row,) for row in rows]
    marks = [()] * count + [pytest.mark.slow] * len(rows)
    return [pytest.param(*row, marks=mark) for row, mark in zip(rows, marks, strict=False)]


# The data set of the paper, which may not be redistributed.
GAS = Path(__file__).parents[2] / "shared" / "data" / "gas.csv.gz"


def needs_gas(test):
    """Skip a test that reads GAS where the file is missing; in CI the test fails instead."""

    @functools.wraps(test)
    def checked(*args, **kwargs):
        if not GAS.exists():
            end = pytest.fail if os.environ.get("CI") else pytest.skip
            end(f"the gas data is not at {GAS}")
        test(*args, **kwargs)

    return checked


@functools.cache
def gas_table():
    """Return the table in GAS, which is shared and must not be changed."""
    return np.loadtxt(GAS, delimiter=",")


class Problem(NamedTuple):
    objective: Any
    A: np.ndarray
    b: np.ndarray
    x0: np.ndarray

    @property
    def minimiser(self):
        return -np.linalg.pinv(self.A) @ self.b

    def value(self, x):
        return x @ self.A @ x / 2 + self.b @ x


A = np.array([[4.0, 1.5, -0.6], [1.5, 2.0, 0.4], [-0.6, 0.4, 1.0]])
B = np.array([1.0, -4.0, 0.7])
X = np.array(
    [[1.2, 0.3, -0.5], [-0.4, 1.1, 0.6], [0.8, -0.9, 0.7], [0.5, 0.2, 1.3], [1, -0.7, 0.1]]
)
Y = np.array([1.0, -2.0, 0.5, 1.5, -0.3])
X0 = np.array([1.0, -2.0, 1.5])


def least_squares(X, y, x0):
    return Problem(cfgd.LeastSquares(X, y), X.T @ X, -X.T @ y, x0)


PROBLEMS = {
    "quadratic": Problem(cfgd.Quadratic(A, B), A, B, X0),
    "tall": least_squares(X, Y, X0),
    "wide": least_squares(X[:2], Y[:2], X0),
}
BOWL = PROBLEMS["quadratic"]
FIGURE1 = Problem(
    cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0]),
    np.diag([20.0, 2.0]),
    np.zeros(2),
    np.array([1.0, -10.0]),
)


def ill_conditioned(seed, d=20):
    """Return a problem of section 4.1, its past and its minimiser.

    The singular values of W go from 10 down to 0.1; x0 is uniform, the past standard normal.
    """
    rng = np.random.default_rng(seed)
    X = extremes_set(rng.normal(scale=1 / np.sqrt(d), size=(d, d)))
    problem = least_squares(X, rng.normal(size=d), rng.uniform(-1, 1, d))
    return problem, rng.normal(size=(1, d)), np.linalg.solve(X, problem.objective.y)


class Row(NamedTuple):
    """A method of the package, and the settings that the plain loop takes for it."""

    make: Callable[[Any], Any]  # of the step
    gamma: Callable[[int], Any] = lambda k: 0.0
    alpha: Any = 0.5
    terminal: Any = None  # a fixed one
    past: Any = None  # (x_{-1}, ..., x_{-lag}); else x0
    lag: int = 0


def constant(value):
    return lambda k: value


def gamma_of(alpha, beta):
    alpha, beta = np.asarray(alpha), np.asarray(beta)
    return beta - (1 - alpha) / (2 - alpha)


C = np.array([-1.0, 0.5, 2.0])
PAST = np.array([[-1.0, 0.4, 2.0], [0.3, -1.7, 0.6], [2.2, 0.1, -0.8], [-0.5, 1.3, 0.9]])
EACH = np.array([-0.3, 0.2, 0.5])  # one for each coordinate
ALPHAS = np.array([0.2, 0.5, 0.9])


def lagged(lag, gamma, past=None, **numbers):
    """Return a row of the adaptive terminal; `numbers` give gamma as alpha and beta, say."""
    numbers = numbers or {"gamma": gamma}
    return Row(
        lambda step: cfgd.AdaptiveTerminal(lag=lag, past=past, step=step, **numbers),
        gamma=constant(gamma),
        past=past,
        lag=lag,
    )


STAGES = [  # iterations, alpha, gamma
    (5, 0.5, 0.8),
    (6, 0.3, 0.2),
    (20, 0.7, 0.0),
]
METHODS = {
    "gradient descent": Row(lambda step: cfgd.GradientDescent(step)),
    "non-adaptive": Row(
        lambda step: cfgd.NonAdaptive(C, 0.3, gamma=0.4, step=step), constant(0.4), terminal=C
    ),
    "non-adaptive, beta": Row(
        lambda step: cfgd.NonAdaptive(C, 0.3, beta=0.9, step=step),
        constant(gamma_of(0.3, 0.9)),
        terminal=C,
    ),
    "non-adaptive, per coordinate": Row(
        lambda step: cfgd.NonAdaptive(C, ALPHAS, beta=EACH + 0.5, step=step),
        constant(gamma_of(ALPHAS, EACH + 0.5)),
        terminal=C,
    ),
    "lag 1": lagged(1, -0.25, PAST[:1]),
    "lag 1, beta": lagged(1, gamma_of(0.8, 0.4), PAST[:1], alpha=0.8, beta=0.4),
    "lag 1, per coordinate": lagged(1, EACH, PAST[:1]),
    "lag 1, x0 before x0": lagged(1, 0.3),
    "lag 2": lagged(2, -0.25, PAST[:2]),
    "lag 3": lagged(3, 0.3, PAST[:3]),
    "lag 3, x0 before x0": lagged(3, -0.2),
    "lag 4": lagged(4, -0.15, PAST),
    "adaptive order": Row(
        lambda step: cfgd.AdaptiveOrder(
            [cfgd.Stage(n, alpha, gamma=gamma) for n, alpha, gamma in STAGES], C, step=step
        ),
        gamma=lambda k: 0.8 if k < 5 else 0.2 if k < 11 else 0.0,
        terminal=C,
    ),
}
ETA = 0.11
STEPS = {"exact": (cfgd.ExactStep(), None), "fixed": (cfgd.FixedStep(ETA), ETA)}


def terminal_of(row, points, k):
    """Return c_k from the list `points` of the x_k."""
    if row.terminal is not None:
        return row.terminal
    if k >= row.lag:
        return points[k - row.lag]
    return points[0] if row.past is None else row.past[row.lag - k - 1]


def reference_iterates(problem, row, eta, iterations, diagonal=None):
    """Return the iterates x_0, ..., x_iterations of a row on a quadratic.

    `eta` is a number, None for the exact step, or a function of (x, d, <g, d>, the last eta); the
    latter needs <g, d> > 0, so that c = x where that does not hold. With a fixed terminal the exact
    step is that of f + gamma/2 |x - c|^2_D, whose gradient is d.
    """
    A, b, points, length = problem.A, problem.b, [problem.x0], None
    D = np.diag(A) if diagonal is None else diagonal
    for k in range(iterations):
        x, gamma = points[-1], row.gamma(k)
        g = A @ x + b
        d = g + gamma * D * (x - terminal_of(row, points, k))
        if callable(eta):
            d = d if g @ d > 0 else g
            length = eta(x, d, g @ d, length)
        elif eta is not None:
            length = eta
        elif row.terminal is None:
            length = g @ d / (d @ A @ d)
        else:
            length = d @ d / (d @ (A @ d + gamma * D * d))
        points.append(x - length * d)
    return np.array(points)


# A function of two variables that is not quadratic, with its partial derivatives by hand.
def wave(x):
    return jnp.exp(0.4 * x[0] - 0.3 * x[1]) + x[0] ** 4 / 4 + x[0] * x[1] / 2 + x[1] ** 2


def wave_value(x):
    return np.exp(0.4 * x[0] - 0.3 * x[1]) + x[0] ** 4 / 4 + x[0] * x[1] / 2 + x[1] ** 2


def wave_slopes(x):
    e = np.exp(0.4 * x[0] - 0.3 * x[1])
    return np.array([0.4 * e + x[0] ** 3 + x[1] / 2, -0.3 * e + x[0] / 2 + 2 * x[1]])


def wave_hessian(x):
    e = np.exp(0.4 * x[0] - 0.3 * x[1])
    return np.array([[0.16 * e + 3 * x[0] ** 2, 0.5 - 0.12 * e], [0.5 - 0.12 * e, 0.09 * e + 2]])


WAVE_X0 = np.array([1.6, -1.2])
WAVE_C = np.array([-0.7, 0.4])
WAVE_PAST = np.array([[2.1, 0.8]])
NODES = 6


def wave_direction(x, c, alpha, gamma):
    """Return d by SciPy's nodes, moving one coordinate at a time."""
    u, w = scipy.special.roots_jacobi(NODES, -alpha, 0.0)
    beta = gamma + (1 - alpha) / (2 - alpha)
    d = np.zeros(2)
    for j in range(2):
        for node, weight in zip((1 + u) / 2, w / w.sum(), strict=True):
            t = x.copy()
            t[j] = c[j] + node * (x[j] - c[j])
            d[j] += weight * (wave_slopes(t)[j] + beta * (x[j] - c[j]) * wave_hessian(t)[j, j])
    return d


SMOOTH_METHODS = {
    "gradient descent": Row(lambda step: cfgd.GradientDescent(step)),
    "non-adaptive": Row(
        lambda step: cfgd.NonAdaptive(WAVE_C, 0.3, gamma=0.4, nodes=NODES, step=step),
        constant(0.4),
        alpha=0.3,
        terminal=WAVE_C,
    ),
    "adaptive terminal": Row(
        lambda step: cfgd.AdaptiveTerminal(
            0.3, gamma=-0.15, past=WAVE_PAST, nodes=NODES, step=step
        ),
        constant(-0.15),
        alpha=0.3,
        past=WAVE_PAST,
        lag=1,
    ),
}


class Step(NamedTuple):
    """One iteration of `iterates_on_wave`: from x along d, with slope <g, d>, by eta."""

    x: np.ndarray
    d: np.ndarray
    slope: float
    eta: float


def iterates_on_wave(row, choose, x0, iterations):
    """Return iterates and steps of a row on `wave`; `choose(x, d, slope, last_eta)` returns eta.

    Where <g, d> <= 0 and the terminal moves, c = x for that iteration.
    """
    points, steps = [x0], []
    for k in range(iterations):
        x = points[-1]
        g = d = wave_slopes(x)
        if row.lag or row.terminal is not None:
            d = wave_direction(x, terminal_of(row, points, k), row.alpha, row.gamma(k))
        if row.terminal is None and g @ d <= 0:
            d = g
        eta = choose(x, d, g @ d, steps[-1].eta if steps else None)
        steps.append(Step(x, d, g @ d, eta))
        points.append(x - eta * d)
    return np.array(points), steps


def pytree_bowl(p):
    return jnp.sum((p["a"] - 1.0) ** 2) + 2 * (p["b"] + 0.5) ** 2 + p["a"][0] * p["b"]


TREE = {"a": np.array([2.0, -1.0]), "b": np.array(0.3)}


def fixed_gd(eta):
    return cfgd.GradientDescent(cfgd.FixedStep(eta))


def stages_of(gamma):
    """Return stages like those in METHODS, so that both share one compilation."""
    stages = [cfgd.Stage(5, gamma=gamma), cfgd.Stage(6, gamma=gamma / 2), cfgd.Stage(20, gamma=0.0)]
    return cfgd.AdaptiveOrder(stages, C)
