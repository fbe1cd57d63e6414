"""Families of the library's own objectives, of functions in NumPy, float32 and paper's methods."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import scipy.optimize

import cfgd
from judge.fits import decay_misfit, fit
from judge.functions import pseudo_huber, quadratic, separable, valley
from judge.problem import Problem, log_uniform, plain_problem, rotation


def design(random, m, d):
    """Return a matrix of samples: of one scale or of many, perhaps with columns that repeat."""
    X = random.normal(size=(m, d))
    kind = random.integers(4)
    if kind == 1:
        X = X * log_uniform(random, -4, 4, d)
    if kind == 2:
        X[:, -1] = X[:, 0]
    if kind == 3:
        X[:, -1] = X[:, 0] + 1e-6 * random.normal(size=m)
    return X


def linear_loss(loss):
    """Return a loss of predictions and targets, written down independently."""
    return {
        "squared": lambda p, y: (p - y) ** 2 / 2,
        "logistic": lambda p, y: jnp.logaddexp(0, (1 - 2 * y) * p),  # without cancellation
        "poisson": lambda p, y: jnp.exp(p) - y * p,
        "gamma": lambda p, y: p + y * jnp.exp(-p),
        "huber": lambda p, y: jnp.where(
            jnp.abs(p - y) <= 1, (p - y) ** 2 / 2, jnp.abs(p - y) - 0.5
        ),
    }[loss]


def total_of(loss):
    """Return the objective of a linear model as a plain function."""
    formula = linear_loss(loss)
    return lambda w, X, y, s, l2: s @ formula(X @ w, y) + l2 * w @ w / 2


TOTALS = {loss: total_of(loss) for loss in ("squared", "logistic", "poisson", "gamma", "huber")}


def is_separable(X, y, s):
    """Return whether a plane separates labels in part, so that f has no minimum (a linear program).

    A direction v with sign_i x_i v >= 0 for all i, and > 0 for one of them.
    """
    rows = (X / abs(X).max(0) * (2 * y - 1)[:, None])[s > 0]
    found = scipy.optimize.linprog(
        -rows.sum(0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1)
    )
    return -found.fun > 1e-6


def linear_model(loss, X, y, s, l2, x0, truth="minimum"):
    objective = cfgd.LinearModel(X, y, loss, l2=l2, sample_weight=s)
    size = 1 / abs(X).max(0)
    data = (X, y, s, np.asarray(l2))
    return Problem(
        objective, x0, TOTALS[loss], data, size=size, scale=float(s.sum()), truth=truth,
        is_smooth=loss != "huber",
    )  # fmt: skip


def classifiers(random):
    """Logistic regressions: separable or not, with weights of zero, with a penalty or none."""
    X = design(random, 20, 4)
    w, noise = random.normal(size=4), random.choice([0.0, 3.0])
    unit = np.linalg.norm(X, axis=0)
    y = (X / unit @ w + noise * random.normal(size=20) / 4 > 0) * 1.0
    s = random.choice([0.0, 1.0, 2.0], 20) if random.integers(2) else np.ones(20)
    l2 = random.choice([0.0, 0.0, 1e-3, 1.0])
    truth = "infimum" if l2 == 0 and is_separable(X, y, s) else "minimum"
    return linear_model("logistic", X, y, s, l2, random.normal(size=4) / abs(X).max(0), truth)


def regressions(random):
    """Linear models of the other losses."""
    X = design(random, 20, 4)
    loss = str(random.choice(["squared", "poisson", "gamma", "huber"]))
    p = X / abs(X).max(0) @ random.normal(size=4)
    y = {
        "squared": p + 0.1 * random.normal(size=20),
        "huber": p + 0.1 * random.standard_t(1.2, size=20),
        "poisson": 1.0 * random.poisson(2 * np.exp(p)) + 1.0,
        "gamma": np.exp(p) * random.gamma(2.0, 0.5, 20) + 1e-3,
    }[loss]
    s = random.choice([0.0, 1.0, 2.0], 20) if random.integers(2) else np.ones(20)
    s[:4] = 1
    l2 = random.choice([0.0, 1e-3, 1.0])
    return linear_model(loss, X, y, s, l2, random.normal(size=4) / abs(X).max(0))


def least_squares(random):
    """`LeastSquares`: tall, wide, collinear, in any unit."""
    m = random.choice([3, 20])
    X = design(random, m, 5) * log_uniform(random, -6, 6)
    unit = log_uniform(random, -6, 6)
    y = unit * random.normal(size=m)
    l2 = random.choice([0.0, 0.0, 1e-3])
    x0 = random.normal(size=5) / abs(X).max() * unit
    data = (X, y, np.ones(m), np.asarray(l2))
    return Problem(
        cfgd.LeastSquares(X, y, l2=l2), x0, TOTALS["squared"], data,
        size=unit / abs(X).max(0), scale=float(y @ y),
    )  # fmt: skip


def quadratic_matrices(random):
    """`Quadratic`: definite, singular with and without a solution, or indefinite."""
    d = random.choice([2, 6])
    b, x0 = random.normal(size=d), random.normal(size=d)
    kind = random.choice(["definite", "singular", "without solution", "indefinite"])
    if kind in ("singular", "without solution"):
        M = random.integers(-3, 4, (d - 1, d)).astype(float)
        A = M.T @ M  # exactly: products and sums of small integers
        b = A @ random.integers(-3, 4, d) if kind == "singular" else b
    else:
        eigenvalues = log_uniform(random, -3, 3, d)
        if kind == "indefinite":
            eigenvalues = random.uniform(1, 2, d)
            eigenvalues[0] = -log_uniform(random, -2, -0.5)
        Q = rotation(random, d)
        A = Q * eigenvalues @ Q.T
        A = (A + A.T) / 2
    truth = "unbounded" if kind in ("without solution", "indefinite") else "minimum"
    try:
        objective = cfgd.Quadratic(A, -b)
    except ValueError:  # an indefinite matrix that is seen before a run: take its square
        A, truth = A @ A, "minimum"
        A = (A + A.T) / 2
        objective = cfgd.Quadratic(A, -b)
    scale = abs(x0 @ A @ x0) + abs(b @ x0)
    return Problem(objective, x0, quadratic, (A, b), size=np.ones(d), scale=scale, truth=truth)


def network(x, z, y):
    w, b, c = x.reshape(3, -1)
    return jnp.sum((jnp.tanh(z[:, None] * w + b) @ c - y) ** 2) / 2


def networks(random):
    """Networks of one hidden layer; their infimum may lie at infinity."""
    z = np.linspace(-1, 1, 12)
    y = np.sin(random.uniform(1, 6) * z) + random.choice([0.0, 0.1]) * random.normal(size=12)
    width = random.choice([2, 3])
    return Problem(
        cfgd.ShallowNetwork(z, y, width), random.normal(size=3 * width), network, (z, y),
        size=np.ones(3 * width), scale=1e-2 * y @ y, truth="bounded",
    )  # fmt: skip


def externals(random):
    """Functions in NumPy, with a gradient, and some with a Hessian."""
    if random.integers(2):
        s, c = log_uniform(random, -6, 6, 3), random.normal(size=3)

        def value(x):
            z = x / s - c
            return np.sum(z**2 + z**4)

        def gradient(x):
            z = x / s - c
            return (2 * z + 4 * z**3) / s

        def hessian(x):
            z = x / s - c
            return np.diag((2 + 12 * z**2) / s**2)

        objective = cfgd.External(value, gradient, hessian if random.integers(2) else None)
        x0 = s * random.normal(size=3)
        return Problem(objective, x0, separable, (s, c), size=s)
    a = log_uniform(random, 0, 4)

    def both(x):
        r = x[1:] - x[:-1] ** 2
        g = np.append(-4 * a * x[:-1] * r - 2 * (1 - x[:-1]), 0.0)
        g[1:] += 2 * a * r
        return a * r @ r + np.sum((1 - x[:-1]) ** 2), g

    x0 = random.normal(size=3)
    return Problem(cfgd.External(both), x0, valley, (np.asarray(a),), size=np.ones(3))


def noisy_externals(random):
    """Values with errors, as simulations have them, and exact or inexact gradients."""
    M, y = random.normal(size=(12, 3)), random.normal(size=12) * 3
    level, slope_error = log_uniform(random, -10, -4), random.choice([0.0, 1e-6])

    def value(x):
        r = M @ x - y
        return np.sum(np.sqrt(1 + r**2) - 1) + level * np.sin(1e9 * np.sum(x))

    def gradient(x):
        r = M @ x - y
        return M.T @ (r / np.sqrt(1 + r**2)) * (1 + slope_error * np.cos(1e9 * x[0]))

    objective = cfgd.External(value, gradient)
    x0 = random.normal(size=3) * 3
    return Problem(objective, x0, pseudo_huber, (M, y), size=np.ones(3), noise=2 * level)


def single_precision(random):
    """float32: functions, least squares, fits and linear models."""
    kind = random.integers(4)
    if kind == 0:
        Q, eigenvalues = rotation(random, 3), log_uniform(random, -2, 2, 3)
        A = (Q * eigenvalues @ Q.T).astype(np.float32)
        A = (A + A.T) / 2
        x0, solution = random.normal(size=(2, 3)).astype(np.float32)
        scale = abs(x0 @ A @ x0) + abs(solution @ A @ solution)
        return plain_problem(quadratic, x0, A, A @ solution, scale=scale)
    if kind == 1:
        X = (random.normal(size=(40, 4)) * log_uniform(random, -10, 6)).astype(np.float32)
        unit = abs(X).max()
        y = (X / unit @ random.normal(size=4) + 0.1 * random.normal(size=40)).astype(np.float32)
        x0 = (random.normal(size=4) / unit).astype(np.float32)
        data = (X, y, np.ones(40), np.asarray(0.0))
        return Problem(
            cfgd.LeastSquares(X, y), x0, TOTALS["squared"], data,
            size=np.full(4, 1 / unit), scale=float(y @ y),
        )  # fmt: skip
    if kind == 2:
        t = np.linspace(0, 4, 20, dtype=np.float32)
        p = np.array([3.0, 1.0, 0.5], np.float32)
        y = p[0] * np.exp(-p[1] * t) + p[2] + 0.05 * random.normal(size=20)
        y = y.astype(np.float32)
        x0 = (p * random.uniform(0.5, 2, 3)).astype(np.float32)
        return fit(decay_misfit, x0, (t, y), 1.0, 0.05)
    X = (random.normal(size=(30, 4)) * log_uniform(random, -6, 6)).astype(np.float32)
    y = (X @ random.normal(size=4) / abs(X).max() + random.normal(size=30) > 0).astype(np.float32)
    l2 = np.float32(abs(X).max() ** 2 * 0.1)
    x0 = (random.normal(size=4) / abs(X).max()).astype(np.float32)
    return linear_model("logistic", X, y, np.ones(30, np.float32), l2, x0)


METHODS = (
    cfgd.GradientDescent(),
    cfgd.GradientDescent(cfgd.ArmijoStep()),
    cfgd.AdaptiveTerminal(gamma=-0.25),
    cfgd.AdaptiveTerminal(gamma=0.3, nodes=3, step=cfgd.ArmijoStep()),
)


def paper_methods(random):
    """The paper's methods, whose `converged` is a statement on the gradient alone."""
    method = METHODS[random.integers(len(METHODS))]
    kind = random.integers(3)
    if kind == 0:
        A = random.normal(size=(5, 3))
        A, b = A.T @ A, random.normal(size=3)
        size, x0 = np.ones(3), random.normal(size=3)
        problem = Problem(cfgd.Quadratic(A, -b), x0, quadratic, (A, b), size=size)
    elif kind == 1:
        X = random.normal(size=(20, 3))
        y = (X @ random.normal(size=3) + random.normal(size=20) > 0) * 1.0
        problem = linear_model("logistic", X, y, np.ones(20), 0.1, random.normal(size=3))
    else:
        problem = plain_problem(valley, random.normal(size=2), log_uniform(random, 0, 2))
    return dataclasses.replace(problem, method=method, options={"max_iterations": 1000})


OBJECTIVES = {
    f.__name__: f
    for f in (
        classifiers, regressions, least_squares, quadratic_matrices, networks, externals,
        noisy_externals, single_precision, paper_methods,
    )
}  # fmt: skip
