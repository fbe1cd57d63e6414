"""Problems for `argmin` beside solutions by NumPy and SciPy, with derivatives written by hand.

`run(theta)` calls cfgd, `solve(theta)` does not; both return the solution as one vector.
"""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.optimize import root

import cfgd

random = np.random.default_rng(3)
X = random.normal(size=(12, 3)) * [1.0, 3.0, 0.4] + 0.3
Y = X @ [1.0, -0.5, 2.0] + 0.3 * random.normal(size=12)
SIGNS = np.where(Y + random.normal(size=12) > 0, 1.0, -1.0)
CLASSES = np.eye(3)[random.integers(0, 3, size=12)]
T = np.linspace(0, 4, 8)


class Case(NamedTuple):
    run: Callable[[Any], Any]
    solve: Callable[[np.ndarray], np.ndarray]
    theta: np.ndarray


def zero_of(gradient, start):
    """The zero of a gradient, to rounding."""
    found = root(gradient, start, tol=1e-13)
    assert np.abs(gradient(found.x)).max() < 1e-9, found.message
    return found.x


# ------------------------------------------------------------------ linear models


def ridge(theta):
    def loss(w, penalty, y):
        return jnp.sum((X @ w - y) ** 2) / 2 + penalty * jnp.sum(w**2) / 2

    return cfgd.argmin(loss, np.zeros(3), (theta[0], theta[1:]))


def solve_ridge(theta):
    return np.linalg.solve(X.T @ X + theta[0] * np.eye(3), X.T @ theta[1:])


def weighted(theta):
    """The weights are those of `Residuals`; one of them is zero."""
    return cfgd.argmin(cfgd.Residuals(lambda w: X @ w - Y, weights=theta), np.zeros(3))


def solve_weighted(theta):
    return np.linalg.solve((X.T * theta) @ X, X.T @ (theta * Y))


def logistic(theta):
    """theta: the penalty, and the weight of the positive class; captured, not passed."""

    def loss(w):
        weight = jnp.where(SIGNS > 0, theta[1], 1.0)
        return jnp.sum(weight * jnp.logaddexp(0, -SIGNS * (X @ w))) + theta[0] * w @ w / 2

    return cfgd.argmin(loss, np.zeros(3))


def solve_logistic(theta):
    weight = np.where(SIGNS > 0, theta[1], 1.0)

    def gradient(w):
        return -X.T @ (weight * SIGNS / (1 + np.exp(SIGNS * (X @ w)))) + theta[0] * w

    return zero_of(gradient, np.zeros(3))


def multinomial(theta):
    def loss(W, penalty, X):
        scores = X @ W
        chosen = jnp.sum(scores * CLASSES)
        top = scores.max(1, keepdims=True)
        return (
            jnp.sum(jnp.log(jnp.exp(scores - top).sum(1)) + top[:, 0])
            - chosen
            + penalty * (jnp.sum(W**2) / 2)
        )

    return cfgd.argmin(loss, np.zeros((3, 3)), (theta[0], X * theta[1:])).ravel()


def solve_multinomial(theta):
    A = X * theta[1:]

    def gradient(w):
        W = w.reshape(3, 3)
        chances = np.exp(A @ W)
        chances /= chances.sum(1, keepdims=True)
        return (A.T @ (chances - CLASSES) + theta[0] * W).ravel()

    return zero_of(gradient, np.zeros(9))


# ------------------------------------------------------------------ curves


def decay_gradient(p, y):
    size, rate, rest = p
    e = np.exp(-rate * T)
    J = np.stack([e, -size * T * e, np.ones_like(T)], 1)
    return J.T @ (size * e + rest - y)


def decay(p, t, y):
    return p[0] * jnp.exp(-p[1] * t) + p[2] - y


def exponential(theta):
    """The data are parameters; residuals are not small, so that Gauss-Newton is not the Hessian."""
    return cfgd.argmin(cfgd.Residuals(decay, args=(T,)), np.array([1.0, 1.0, 0.0]), (theta,))


def far(theta):
    return cfgd.argmin(cfgd.Residuals(decay, args=(T,)), np.array([300.0, 0.01, -50.0]), (theta,))


def solve_exponential(theta):
    return zero_of(lambda p: decay_gradient(p, theta), np.array([2.5, 0.8, 0.4]))


DECAY = 2.5 * np.exp(-0.8 * T) + 0.4 + 0.2 * np.cos(7 * T)


def cauchy(theta):
    f = cfgd.Residuals(decay, "cauchy", scale=0.5, args=(T,))
    return cfgd.argmin(f, np.array([2.0, 1.0, 0.0]), (theta,))


def solve_cauchy(theta):
    def gradient(p):
        size, rate, rest = p
        e = np.exp(-rate * T)
        J = np.stack([e, -size * T * e, np.ones_like(T)], 1)
        r = size * e + rest - theta
        return J.T @ (r / (1 + (r / 0.5) ** 2))

    return zero_of(gradient, np.array([2.5, 0.8, 0.4]))


# ------------------------------------------------------------------ functions


def valley(theta):
    def rosenbrock(x, a, b, c):
        return (a - x[0]) ** 2 + b * (x[1] - x[0] ** 2) ** 2 + c * x[1]

    return cfgd.argmin(rosenbrock, np.array([-1.2, 1.0]), tuple(theta))


def solve_valley(theta):
    a, b, c = theta

    def gradient(x):
        bend = x[1] - x[0] ** 2
        return np.array([2 * (x[0] - a) - 4 * b * x[0] * bend, 2 * b * bend + c])

    return zero_of(gradient, np.array([a, a * a]))


def counts(theta):
    """A Poisson regression whose parameters and data are pytrees."""
    data = {"scale": theta[0], "more": (theta[1],)}

    def loss(x, data):
        rates = X @ x["w"] * data["scale"] + x["c"]
        return jnp.sum(jnp.exp(rates) - Y**2 * rates) + data["more"][0] * jnp.sum(x["w"] ** 2)

    x = cfgd.argmin(loss, {"w": np.zeros(3), "c": 0.0}, (data,))
    return jnp.concatenate([x["c"][None], x["w"]])


def solve_counts(theta):
    A = np.column_stack([np.ones(12), X * theta[0]])
    x, ridge = np.r_[np.log(np.mean(Y**2)), np.zeros(3)], 2 * theta[1] * np.diag([0, 1, 1, 1])
    for _ in range(50):  # Newton steps from the mean
        rates = np.exp(A @ x)
        g = A.T @ (rates - Y**2) + ridge @ x
        x = x - np.linalg.solve((A.T * rates) @ A + ridge, g)
    assert np.abs(g).max() < 1e-9
    return x


CURVATURE = np.array(
    [[4.0, 1.0, -0.5, 0.2], [1.0, 3.0, 0.7, -0.4], [-0.5, 0.7, 2.0, 0.3], [0.2, -0.4, 0.3, 5.0]]
)
LOWER, UPPER = np.array([-1.0, -np.inf, 0.2, 0.5]), np.array([0.4, 0.3, np.inf, 0.5])


def in_box(theta):
    """Active at an upper bound and at a lower one, free, and fixed."""

    def quadratic(x, b):
        return x @ CURVATURE @ x / 2 - b @ x

    return cfgd.argmin(quadratic, np.zeros(4), (theta,), bounds=(LOWER, UPPER))


def solve_in_box(theta):
    """Try every set of active bounds, and take the one whose multipliers have the right signs."""
    for sides in product((0, -1, 1), repeat=4):
        side = np.array(sides)
        x = np.where(side < 0, LOWER, np.where(side > 0, UPPER, 0.0))
        if not np.isfinite(x).all():
            continue
        free = side == 0
        rest = theta - CURVATURE[:, ~free] @ x[~free]
        x[free] = np.linalg.solve(CURVATURE[np.ix_(free, free)], rest[free])
        slope = CURVATURE @ x - theta
        is_fixed = LOWER == UPPER
        signs = is_fixed | ((side < 0) & (slope >= 0)) | ((side > 0) & (slope <= 0)) | free
        if signs.all() and (x >= LOWER).all() and (x <= UPPER).all():
            return x
    raise AssertionError("no active set")


N = 120
SHIFTS = np.sin(np.arange(N))


def chain(theta):
    """More unknowns than are factored."""

    def loss(x, theta):
        steps = jnp.sum((x[1:] - x[:-1]) ** 2)
        return theta[0] * steps + jnp.sum(jnp.cosh(x - theta[1] * SHIFTS)) + theta[2] * jnp.sum(x)

    return cfgd.argmin(loss, np.zeros(N), (theta,))


def solve_chain(theta):
    D = np.diff(np.eye(N), axis=0)
    x = np.zeros(N)
    for _ in range(50):
        u = x - theta[1] * SHIFTS
        g = 2 * theta[0] * D.T @ (D @ x) + np.sinh(u) + theta[2]
        x = x - np.linalg.solve(2 * theta[0] * D.T @ D + np.diag(np.cosh(u)), g)
    return x


CASES = {
    "ridge": Case(ridge, solve_ridge, np.r_[0.7, Y]),
    "weighted": Case(weighted, solve_weighted, np.r_[0.0, np.linspace(0.2, 2, 11)]),
    "logistic": Case(logistic, solve_logistic, np.array([0.5, 1.7])),
    "multinomial": Case(multinomial, solve_multinomial, np.array([0.6, 1.0, 0.5, 2.0])),
    "exponential": Case(exponential, solve_exponential, DECAY),
    "far": Case(far, solve_exponential, DECAY),
    "cauchy": Case(cauchy, solve_cauchy, DECAY),
    "valley": Case(valley, solve_valley, np.array([-0.8, 20.0, 0.3])),
    "counts": Case(counts, solve_counts, np.array([0.3, 0.2])),
    "in_box": Case(in_box, solve_in_box, np.array([5.0, 0.1, -3.0, 1.0])),
    "chain": Case(chain, solve_chain, np.array([3.0, 1.5, -0.7])),
}


def differences(solve, theta, h=1e-3):
    """The Jacobian of a solution by five-point central differences, whose error is of order h^4."""
    columns = []
    for j in range(len(theta)):
        e = np.zeros(len(theta))
        e[j] = h
        ends = [np.asarray(solve(theta + k * e)) for k in (-2, -1, 1, 2)]
        columns.append((ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h))
    return np.stack(columns, -1)
