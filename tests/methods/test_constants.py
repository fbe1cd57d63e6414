"""`AdaptiveTerminal(gamma="best")`: extreme eigenvalues, constants and the promised rate."""

import re

import jax
import numpy as np
import pytest
import scipy.sparse

import cfgd
from cfgd.methods.paper.constants import KRYLOV_DIMENSIONS, MAX_DENSE, extreme_eigenvalues
from problems import do_nothing, few, gas_table, identity, needs_gas, quick

BEST = cfgd.AdaptiveTerminal(gamma="best", step=cfgd.FixedStep("best"))


def problem(d, m, seed, condition=1e2):
    """Return X, with columns of very different norms and given singular values, and y."""
    random = np.random.default_rng(seed)
    U = np.linalg.qr(random.normal(size=(m, min(m, d))))[0]
    V = np.linalg.qr(random.normal(size=(d, min(m, d))))[0]
    X = (U * np.geomspace(1.0, 1 / condition, min(m, d))) @ V.T
    return X * np.geomspace(0.1, 10.0, d), random.normal(size=m)


def eigenvalues(X):
    A = X.T @ X
    root = np.sqrt(np.diag(A))
    return np.linalg.eigvalsh(A / np.outer(root, root))


def run_briefly(f, x0):
    """Run two iterations: the constants are chosen before the first one."""
    return cfgd.minimize(f, x0, BEST, max_iterations=2, callback=do_nothing)


KINDS = {
    f"{kind}-{shape}": (kind, m)
    for kind in ("dense", "sparse", "quadratic")
    for shape, m in {"tall": 30, "wide: singular": 12}.items()
}
QUICK = ["dense-wide: singular", "sparse-tall", "quadratic-wide: singular"]


@pytest.mark.one_case
@pytest.mark.parametrize(("kind", "m"), quick(KINDS, QUICK))
def test_the_extreme_eigenvalues(kind, m):
    X, y = problem(17, m, seed=1)
    f = {
        "dense": lambda: cfgd.LeastSquares(X, y),
        "sparse": lambda: cfgd.LeastSquares(scipy.sparse.csr_matrix(X), y),
        "quadratic": lambda: cfgd.Quadratic(X.T @ X, -X.T @ y),
    }[kind]()
    known = eigenvalues(X)
    known = known[known > 1e-9]
    assert len(known) == min(m, 17)
    gamma, _, rate = cfgd.theory.best_constants(known)
    end = run_briefly(f, np.zeros(17))
    np.testing.assert_allclose(end.rate, rate, rtol=1e-6)
    assert f"gamma = {gamma:.4g}" in end.how


def test_few_products_on_a_large_problem():
    """The largest eigenvalue must not be too small: the steps would be too long."""
    random = np.random.default_rng(3)
    X = random.normal(size=(600, 200)) * np.geomspace(0.01, 100.0, 200)
    f, known = cfgd.LeastSquares(X, random.normal(size=600)), eigenvalues(X)
    with jax.enable_x64(True):
        ends = extreme_eigenvalues(f, np.sum(X * X, 0), np.dtype(np.float64))
    assert ends.has_converged
    assert ends.products < 200  # fewer than the matrix would take
    np.testing.assert_allclose(ends.low, known[0], rtol=1e-3)
    assert known[-1] * (1 - 1e-12) <= ends.high <= known[-1] * (1 + 1e-5)


def test_a_null_space_on_a_large_problem():
    """The smallest nonzero eigenvalue counts: the iteration does not move in the null space."""
    X = np.random.default_rng(8).normal(size=(60, 300))
    f, known = cfgd.LeastSquares(X, np.ones(60)), eigenvalues(X)[-60:]
    with jax.enable_x64(True):
        ends = extreme_eigenvalues(f, np.sum(X * X, 0), np.dtype(np.float64))
    assert ends.has_converged
    np.testing.assert_allclose([ends.low, ends.high], known[[0, -1]], rtol=1e-3)


@pytest.mark.slow
def test_the_promised_rate_is_not_too_small():
    """A Krylov space gives no exact smallest eigenvalue; the rate allows for its error."""
    d = 300
    assert d > max(MAX_DENSE, KRYLOV_DIMENSIONS[-1])
    Q = np.linalg.qr(np.random.default_rng(6).normal(size=(d, d)))[0]
    A = (Q * np.geomspace(1e-2, 1.0, d)) @ Q.T
    A = (A + A.T) / 2
    end = run_briefly(cfgd.Quadratic(A, np.ones(d)), np.zeros(d))
    root = np.sqrt(np.diag(A))
    assert end.rate >= cfgd.theory.best_constants(np.linalg.eigvalsh(A / np.outer(root, root))).rate


@pytest.mark.slow
def test_in_float32_a_small_eigenvalue_may_be_rounding():
    d = 150
    Q = np.linalg.qr(np.random.default_rng(7).normal(size=(d, d)))[0]
    A = (Q * np.append(1e-4, np.linspace(0.1, 1.0, d - 1))) @ Q.T
    f = cfgd.Quadratic(((A + A.T) / 2).astype(np.float32), np.ones(d, np.float32))
    end = run_briefly(f, np.zeros(d, np.float32))
    assert end.rate is None


def test_a_matrix_of_zeros():
    f = cfgd.Quadratic(np.zeros((3, 3)), np.zeros(3))
    assert cfgd.minimize(f, np.ones(3), BEST, callback=do_nothing).success


@pytest.mark.slow
def test_no_rate_is_promised_unless_the_eigenvalues_converged():
    """A small eigenvalue among 400 with equal ratios takes more products than the limit allows."""
    d = 400
    known = np.geomspace(1e-9, 1.0, d)
    Q = np.linalg.qr(np.random.default_rng(4).normal(size=(d, d)))[0]
    f = cfgd.Quadratic((Q * known) @ Q.T, np.ones(d))
    end = run_briefly(f, np.zeros(d))
    assert end.rate is None
    assert "the smallest one did not converge" in end.how


def test_the_iteration_is_heavy_ball_with_the_best_constants():
    """The reference is a plain loop with the formula of Polyak."""
    X, y = problem(9, 20, seed=5)
    A, b = X.T @ X, -X.T @ y
    D, known = np.diag(A), eigenvalues(X)
    low, high = np.sqrt(known[[0, -1]])
    step, momentum = 4 / (high + low) ** 2, ((high - low) / (high + low)) ** 2
    x = old = np.arange(9.0)
    for _ in range(50):
        x, old = x - step * (A @ x + b) / D + momentum * (x - old), x
    end = cfgd.minimize(
        cfgd.Quadratic(A, b), np.arange(9.0), BEST, max_iterations=50, record={"x": identity}
    )
    np.testing.assert_allclose(end.history["x"][-1], x, rtol=1e-8)


@pytest.mark.parametrize("seed", few(range(3)))
def test_the_promised_rate_is_the_observed_one(seed):
    """The references are the spectral radius of the iteration as one matrix, and a long run."""
    X, y = problem(12, 25, seed, condition=30.0)
    A = X.T @ X
    start = np.ones(12)
    end = cfgd.minimize(
        cfgd.LeastSquares(X, y),
        start,
        BEST,
        max_iterations=5000,
        tolerance=1e-12,
        record={"x": identity},
    )
    assert end.success
    low, high = np.sqrt(eigenvalues(X)[[0, -1]])
    gamma, eta = -((high - low) ** 2) / 4, 4 / (high + low) ** 2
    scaled = A / np.diag(A)[:, None]
    one = np.eye(12)
    M = np.block([[(1 - eta * gamma) * one - eta * scaled, eta * gamma * one], [one, 0 * one]])
    # a double eigenvalue is accurate to the square root of rounding only
    np.testing.assert_allclose(end.rate, np.abs(np.linalg.eigvals(M)).max(), rtol=1e-6)
    errors = np.linalg.norm(end.history["x"] - np.linalg.lstsq(X, y)[0], axis=1)
    k = len(errors) // 2
    # a double eigenvalue costs a factor that grows like k
    assert errors[k] <= 20 * k * end.rate**k * errors[0]
    measured = (errors[k] / errors[k // 2]) ** (1 / (k - k // 2))
    np.testing.assert_allclose(measured, end.rate, rtol=0.05)


def test_the_products_are_counted():
    X, y = problem(12, 25, seed=2)
    end = cfgd.minimize(
        cfgd.LeastSquares(X, y), np.zeros(12), BEST, max_iterations=7, record={"x": identity}
    )  # the program of the test above
    assert end.evaluations >= 12 + 7


@pytest.mark.slow
@needs_gas
def test_gamma_of_the_gas_data_explains_the_range_of_the_paper():
    table = gas_table()
    X, y = table[:, :-1], table[:, -1]
    X = (X - X.mean(0)) / X.std(0)
    end = run_briefly(cfgd.LeastSquares(X, y), np.zeros(128))
    assert "gamma = -18.2" in end.how  # -18.23 by the eigenvalues


# Bad input.

F = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
FIXED = cfgd.FixedStep("best")
MESSAGES = {
    "step": (
        lambda: cfgd.minimize(F, [0.0, 0.0], cfgd.AdaptiveTerminal(gamma="best")),
        '`AdaptiveTerminal(step=...)` must be FixedStep("best"), as gamma is "best", '
        "got 'ExactStep'.",
    ),
    "lag": (
        lambda: cfgd.minimize(
            F, [0.0, 0.0], cfgd.AdaptiveTerminal(gamma="best", lag=2, step=FIXED)
        ),
        '`AdaptiveTerminal(lag=...)` must be 1, as gamma is "best", got 2.',
    ),
    "objective": (
        lambda: cfgd.minimize(lambda x: x @ x, np.zeros(2), BEST),
        '`AdaptiveTerminal(gamma=...)` must be a number; "best" is for a Quadratic or '
        "LeastSquares, got a Smooth.",
    ),
    "gamma": (
        lambda: cfgd.minimize(F, [0.0, 0.0], cfgd.AdaptiveTerminal(gamma=-0.2, step=FIXED)),
        '`FixedStep(eta=...)` must be a number; "best" goes with AdaptiveTerminal(gamma="best"), '
        "got 'best'.",
    ),
    "another word": (
        lambda: cfgd.FixedStep("good"),
        "`FixedStep(eta=...)` must be positive, got 'good'.",
    ),
    "sweep": (
        lambda: cfgd.sweep(F, [0.0, 0.0], [BEST, BEST]),
        "`sweep(methods=...)` must have numbers for gamma and eta, got 'best'.",
    ),
}


@pytest.mark.parametrize(("make", "message"), MESSAGES.values(), ids=MESSAGES)
def test_message(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
