"""Solutions of random problems of many kinds, with every method and step, are checked in NumPy.

`converged` implies the stated test, the value is f(x), and no run that seeks a minimiser ends above
its start.
"""

import functools
import itertools
from typing import Any, NamedTuple

import hypothesis
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies
from scipy.special import expit

import cfgd

D, M, TOLERANCE = 3, 8, 1e-6


class Case(NamedTuple):
    objective: Any
    parts: Any  # value and gradient in NumPy
    x0: np.ndarray
    args: tuple[Any, ...] = ()
    normal: Any = None  # A and b of a quadratic


def data(rng, m=M, spread=2.0):
    X = rng.normal(size=(m, D)) * 10.0 ** rng.uniform(-spread / 2, spread / 2, D)
    return X, X @ rng.normal(size=D) + 0.3 * rng.normal(size=m), rng.normal(size=D)


def quadratic_parts(A, b, shift=0.0):
    return lambda x: (x @ A @ x / 2 + b @ x + shift, A @ x + b)


def quadratic(rng):
    X, _, x0 = data(rng)
    A, b = X.T @ X, rng.normal(size=D)
    return Case(cfgd.Quadratic(A, b), quadratic_parts(A, b), x0, normal=(A, b))


def least_squares(rng, m=M):
    X, y, x0 = data(rng, m)
    A, b = X.T @ X, -X.T @ y
    return Case(cfgd.LeastSquares(X, y), quadratic_parts(A, b, y @ y / 2), x0, normal=(A, b))


def wide(rng):
    return least_squares(rng, 2)


def linear(loss):
    slopes = {
        "squared": lambda p, y: ((p - y) ** 2 / 2, p - y),
        "logistic": lambda p, y: (np.logaddexp(0, p) - y * p, expit(p) - y),
        "poisson": lambda p, y: (np.exp(p) - y * p, np.exp(p) - y),
        "huber": lambda p, y: (
            np.where(abs(p - y) <= 1, (p - y) ** 2 / 2, abs(p - y) - 0.5),
            np.clip(p - y, -1, 1),
        ),
    }[loss]

    def make(rng):
        X, y, x0 = data(rng, spread=1.0)
        w, l2 = rng.uniform(0.5, 2, M), 10 ** rng.uniform(-2, 0)
        if loss == "logistic":
            y = (y > 0) * 1.0
        if loss == "poisson":
            X, y = X / 5, rng.poisson(2.0, M) * 1.0

        def parts(x):
            value, slope = slopes(X @ x, y)
            return w @ value + l2 * x @ x / 2, X.T @ (w * slope) + l2 * x

        model = cfgd.LinearModel(X, y, loss, l2=l2, sample_weight=w)
        normal = (X.T * w @ X + l2 * np.eye(D), -X.T @ (w * y)) if loss == "squared" else None
        return Case(model, parts, x0, normal=normal)

    return make


def network(rng):
    z, y = np.linspace(-1, 1, M), rng.normal(size=M)
    f = cfgd.ShallowNetwork(z, y, 2)
    x0 = rng.normal(size=f.dimension)

    def parts(x):
        w, b, c = x.reshape(3, 2)
        T = np.tanh(np.outer(z, w) + b)
        r, slope = T @ c - y, 1 - T**2
        inner = r[:, None] * slope * c
        return r @ r / 2, np.concatenate([z @ inner, inner.sum(0), r @ T])

    return Case(f, parts, x0)


def quartic(x, M, y):
    return jnp.sum((M @ x - y) ** 4) + jnp.sum(x**2) / 100


def smooth_quartic(rng):
    X, y, x0 = data(rng, spread=1.0)

    def parts(x):
        r = X @ x - y
        return np.sum(r**4) + x @ x / 100, 4 * X.T @ r**3 + x / 50

    return Case(quartic, parts, x0, (X, y))


def decay(x, t, y):
    return jnp.sum((x[0] * jnp.exp(-x[1] * t) + x[2] - y) ** 2) / 2


def smooth_decay(rng):
    t = np.sort(rng.uniform(0, 3, M))
    y = 3 * np.exp(-rng.uniform(0.3, 2) * t) + 1 + 0.05 * rng.normal(size=M)
    x0 = np.array([2.0, 1.0, 0.5]) + 0.3 * rng.normal(size=3)

    def parts(x):
        e = np.exp(-x[1] * t)
        r = x[0] * e + x[2] - y
        return r @ r / 2, np.array([r @ e, r @ (-x[0] * t * e), r.sum()])

    return Case(decay, parts, x0, (t, y))


def waves(x, M):
    return jnp.sum(1 - jnp.cos(M @ x)) + jnp.sum(x**2) / 20


def smooth_waves(rng):
    X, _, x0 = data(rng, spread=1.0)

    def parts(x):
        return np.sum(1 - np.cos(X @ x)) + x @ x / 20, X.T @ np.sin(X @ x) + x / 10

    return Case(waves, parts, x0, (X,))


def valley_parts(a, x):
    r = x[1:] - x[:-1] ** 2
    g = np.zeros(D)
    g[:-1] = -4 * a * x[:-1] * r - 2 * (1 - x[:-1])
    g[1:] += 2 * a * r
    return a * r @ r + np.sum((1 - x[:-1]) ** 2), g


def external_valley(rng):
    parts = functools.partial(valley_parts, 10 ** rng.uniform(0, 2))
    return Case(cfgd.External(parts), parts, rng.normal(size=D))


def valley(x, a):
    r = x[1:] - x[:-1] ** 2
    return a * r @ r + jnp.sum((1 - x[:-1]) ** 2)


def smooth_valley(rng):
    a = 10 ** rng.uniform(0, 2)
    return Case(valley, functools.partial(valley_parts, a), rng.normal(size=D), (a,))


KINDS = {
    "quadratic": quadratic,
    "least squares": least_squares,
    "wide": wide,
    **{loss: linear(loss) for loss in ("squared", "logistic", "poisson", "huber")},
    "network": network,
    "quartic": smooth_quartic,
    "decay": smooth_decay,
    "waves": smooth_waves,
    "valley": smooth_valley,
    "external": external_valley,
}
EXACT, ARMIJO, GRID, FIXED = (
    cfgd.ExactStep(), cfgd.ArmijoStep(), cfgd.GridStep(), cfgd.FixedStep(1e-3)
)  # fmt: skip
METHODS = {
    "auto": lambda d: cfgd.Auto(),
    "descent, exact": lambda d: cfgd.GradientDescent(EXACT),
    "descent, Armijo": lambda d: cfgd.GradientDescent(ARMIJO),
    "descent, grid": lambda d: cfgd.GradientDescent(GRID),
    "descent, fixed": lambda d: cfgd.GradientDescent(FIXED),
    "terminal, exact": lambda d: cfgd.AdaptiveTerminal(gamma=-0.2, step=EXACT),
    "terminal, Armijo": lambda d: cfgd.AdaptiveTerminal(gamma=0.3, nodes=3, step=ARMIJO),
    "terminal, grid": lambda d: cfgd.AdaptiveTerminal(gamma=-0.4, lag=2, nodes=2, step=GRID),
    "fixed terminal": lambda d: cfgd.NonAdaptive(np.full(d, 0.5), gamma=0.4, nodes=3, step=EXACT),
    "order": lambda d: cfgd.AdaptiveOrder(
        [cfgd.Stage(60, 0.9, gamma=0.3), cfgd.Stage(200, 0.9, gamma=0.0)], np.full(d, 0.5)
    ),
}
# methods that need value and gradient alone, as external functions have them
FIRST_ORDER = ("auto", "descent, Armijo")


def check(kind, method, seed):
    case = KINDS[kind](np.random.default_rng(seed))
    chosen = METHODS[method](case.x0.size)
    ends = cfgd.minimize(
        case.objective, case.x0, chosen, args=case.args, max_iterations=300, tolerance=TOLERANCE
    )
    value, gradient = case.parts(ends.x)
    value0, gradient0 = case.parts(case.x0)
    scale = max(abs(value), abs(value0))
    assert ends.value == pytest.approx(value, rel=1e-9, abs=1e-12 * scale)
    norm, norm0 = np.linalg.norm(gradient), np.linalg.norm(gradient0)
    assert ends.gradient_norm == pytest.approx(norm, rel=1e-6, abs=1e-10 * norm0)
    if method == "fixed terminal":  # f need not fall, and convergence is that of its direction
        if ends.success and case.normal is not None:
            A, b = case.normal
            d, d0 = (A @ x + b + 0.4 * np.diag(A) * (x - 0.5) for x in (ends.x, case.x0))
            assert np.linalg.norm(d) <= 1.001 * TOLERANCE * np.linalg.norm(d0)
        return
    if method != "order":  # its first stage has another solution
        assert ends.value <= value0 + 1e-12 * scale
    if ends.success:
        assert norm <= 1.001 * TOLERANCE * norm0 + 1e-13 * norm0
    elif ends.status is cfgd.Status.max_iterations:
        assert ends.iterations == 300


ALL = [
    (kind, method)
    for kind, method in itertools.product(KINDS, METHODS)
    if kind != "external" or method in FIRST_ORDER
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "method"), ALL)
def test_a_thousand_random_problems(kind, method):
    for seed in range(1 + 1000 // len(ALL)):
        check(kind, method, seed)


@pytest.mark.parametrize("kind", ["least squares", "decay", "external"])
@hypothesis.settings(max_examples=15, deadline=None, derandomize=True, database=None)
@hypothesis.given(seed=strategies.integers(1000, 10**6))
def test_random_problems_by_auto(kind, seed):
    check(kind, "auto", seed)


@pytest.mark.slow
@hypothesis.settings(max_examples=15, deadline=None, derandomize=True, database=None)
@hypothesis.given(seed=strategies.integers(1000, 10**6))
def test_random_problems_by_the_adaptive_terminal(seed):
    check("logistic", "terminal, exact", seed)
