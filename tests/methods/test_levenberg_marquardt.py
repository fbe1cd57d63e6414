"""Levenberg-Marquardt: its steps, and its ends on fits and linear models."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from oracles import oracle_for
from scipy.optimize import least_squares

import cfgd
from cfgd import Status
from cfgd._core.arrays import in_precision
from cfgd.methods.auto import levenberg_marquardt, select
from cfgd.methods.auto.state import Goal
from cfgd.objectives.linear.design import Dense
from nist import NIST, correct_digits, residuals
from problems import few, identity, quick

RECORD = {"x": identity, "gamma": "gamma"}
RNG = np.random.default_rng(7)


# ---------------------------------------------------------------- the step

T = np.linspace(0, 3, 12)
Y = 4 * np.exp(-0.9 * T) + 0.5 + 0.1 * RNG.normal(size=12)
X0 = np.array([1.0, 0.2, 0.1])


def misfit(p):
    return p[0] * jnp.exp(-p[1] * T) + p[2] - Y


def by_hand(p):
    e = np.exp(-p[1] * T)
    J = np.stack([e, -p[0] * T * e, np.ones(12)], 1)
    return p[0] * e + p[2] - Y, J


LABELS = (RNG.random(40) < 0.4).astype(float)
WIDE = RNG.normal(size=(40, 5)) * [1, 30, 0.1, 1, 2]


def test_iterates_are_those_of_an_explicit_implementation():
    """With the gamma of the history, D kept from shrinking, and the geodesic acceleration."""
    solver = levenberg_marquardt.LevenbergMarquardt()  # as for large problems and active bounds
    counted = oracle_for(cfgd.Residuals(misfit), X0)
    with in_precision(X0.dtype):
        states = [solver.init(counted, X0)]
        for _ in range(3):
            states.append(solver.step(counted, states[-1], Goal(np.float64(1e-8))))
    D = np.zeros(3)
    for old, new in itertools.pairwise(states):
        x, gamma = old.evaluation.x, new.gamma
        r, J = by_hand(x)
        D = np.maximum(D, np.diag(J.T @ J))
        matrix = J.T @ J + gamma * np.diag(D)
        p = np.linalg.solve(matrix, J.T @ r)
        second = 2 / 0.1 * ((by_hand(x - 0.1 * p)[0] - r) / 0.1 + J @ p)
        a = -np.linalg.solve(matrix, J.T @ second) / 2
        bends_little = 2 * np.sqrt(a @ (D * a)) <= 0.75 * np.sqrt(p @ (D * p))
        step = p - a if bends_little else p
        np.testing.assert_allclose(new.evaluation.x, x - step, rtol=1e-8)


@pytest.mark.slow
def test_a_step_is_the_limit_of_the_non_adaptive_method_on_the_model():
    """Theorem 3 with the terminal at x."""
    f = cfgd.LinearModel(WIDE, LABELS, l2=0.3)
    ends = cfgd.minimize(f, np.zeros(5), record=RECORD)
    x, gamma = ends.history["x"][2], 0.2
    p = 1 / (1 + np.exp(-WIDE @ x))
    H = (WIDE.T * (p * (1 - p))) @ WIDE + 0.3 * np.eye(5)
    g = WIDE.T @ (p - LABELS) + 0.3 * x
    q = cfgd.Quadratic(H, g - H @ x)
    limit = cfgd.minimize(
        q, x + 1, cfgd.NonAdaptive(x, gamma=gamma), max_iterations=200_000, tolerance=1e-12
    )
    step = np.linalg.solve(H + gamma * np.diag(np.diag(H)), g)
    np.testing.assert_allclose(limit.x, x - step, rtol=1e-6, atol=1e-8)


def test_the_first_step_on_a_convex_loss_is_a_newton_step():
    f = cfgd.LinearModel(WIDE, LABELS, l2=0.3)
    ends = cfgd.minimize(f, np.zeros(5), record=RECORD)
    assert ends.success
    H = WIDE.T @ WIDE / 4 + 0.3 * np.eye(5)
    g = WIDE.T @ (0.5 - LABELS)
    np.testing.assert_allclose(ends.history["x"][1], -np.linalg.solve(H, g), rtol=1e-6)
    assert ends.iterations < 12


def test_the_last_newton_step_takes_no_matrix_of_its_own(monkeypatch):
    """It uses the matrix of the convergence test, and doubles the correct digits."""
    matrices, gram = [], Dense.gram
    monkeypatch.setattr(Dense, "gram", lambda *of: matrices.append(1) or gram(*of))
    f = cfgd.LinearModel(WIDE, LABELS, l2=0.1)
    end = cfgd.minimize(f, np.zeros(5))
    assert end.status is Status.converged
    norms = end.history["gradient_norm"]
    assert norms[-2] <= 1e-8 * norms[0]  # this alone would be enough
    assert norms[-1] <= 1e-13 * norms[0]
    assert len(matrices) == end.iterations


# ---------------------------------------------------------------- runs


@pytest.mark.one_case
@pytest.mark.parametrize("name", quick({name: name for name in NIST}, ["BoxBOD", "Thurber"]))
def test_certified_regressions_to_six_digits(name):
    f = cfgd.Residuals(residuals(name))
    for start in ("start1", "start2"):
        ends = cfgd.minimize(f, NIST[name][start])
        assert ends.success
        assert correct_digits(name, ends.x) >= 6
        assert np.all(np.diff(ends.history["value"]) <= 0)


def test_standard_errors_are_the_certified_ones():
    for name in ("Misra1a", "Chwirut2"):
        ends = cfgd.minimize(cfgd.Residuals(residuals(name)), NIST[name]["start2"])
        errors = np.sqrt(np.diag(ends.covariance()))
        np.testing.assert_allclose(errors, NIST[name]["standard_deviation"], rtol=1e-5)


NETWORK = cfgd.ShallowNetwork(np.linspace(-1, 1, 20), np.sin(4 * np.linspace(-1, 1, 20)), 9)
CASES = {
    "residuals": (cfgd.Residuals(misfit), X0),
    "robust": (cfgd.Residuals(misfit, "cauchy", scale=0.2), X0),
    "network, fewer rows": (NETWORK, NETWORK.init(0)),
    "logistic": (cfgd.LinearModel(WIDE, LABELS, l2=0.3), np.zeros(5)),
}


@pytest.mark.parametrize("name", few(["network, fewer rows", "logistic", "residuals", "robust"], 2))
def test_steps_by_products_reach_the_same_point(name, monkeypatch):
    f, x0 = CASES[name]
    with_matrix = cfgd.minimize(f, x0, max_iterations=60)
    monkeypatch.setattr(select, "MOST_OPERATIONS", 0)
    monkeypatch.setattr(select, "FEW_COLUMNS", 0)
    without = cfgd.minimize(f, x0, max_iterations=200)
    assert np.all(np.diff(without.history["value"]) <= 0)
    if name.startswith("network"):
        assert without.value < 1e-3 * f.value(x0)
    else:
        assert without.success
        np.testing.assert_allclose(without.x, with_matrix.x, rtol=1e-4, atol=1e-6)


def test_a_loss_of_the_user():
    loss = lambda p, y: jnp.cosh(p - y) - 1  # noqa: E731
    ends = cfgd.minimize(cfgd.LinearModel(WIDE, LABELS, loss=loss, l2=0.3), np.zeros(5))
    assert ends.success
    gradient = WIDE.T @ np.sinh(WIDE @ ends.x - LABELS) + 0.3 * ends.x
    assert np.linalg.norm(gradient) <= 1e-7 * np.linalg.norm(WIDE.T @ np.sinh(-LABELS))
    assert "Levenberg-Marquardt" in ends.how


def test_a_jacobian_without_full_rank():
    f = cfgd.Residuals(lambda p: (p[0] + p[1]) * jnp.exp(-p[2] * T) - Y)
    ends = cfgd.minimize(f, [0.5, 0.1, 0.5])
    assert ends.success
    other = cfgd.minimize(cfgd.Residuals(lambda p: p[0] * jnp.exp(-p[1] * T) - Y), [0.6, 0.5])
    assert ends.value == pytest.approx(other.value, rel=1e-8)
    with pytest.warns(UserWarning, match="do not determine the parameters"):
        covariance = ends.covariance()
    assert np.isinf(covariance[:2]).all()
    np.testing.assert_allclose(covariance[2, 2], other.covariance()[1, 1], rtol=1e-5)


def test_a_parameter_that_nothing_depends_on():
    f = cfgd.Residuals(lambda p: p[0] * jnp.exp(-p[1] * T) - Y + 0 * p[2])
    ends = cfgd.minimize(f, [1.0, 0.5, 3.0])
    assert ends.success
    assert ends.x[2] == 3.0


def test_a_trial_where_residuals_are_not_finite():
    f = cfgd.Residuals(lambda p: jnp.log(p[0]) * T - 2 * T + p[1] - 0.01 * T**2)
    ends = cfgd.minimize(f, [0.05, 5.0])  # the first step leads to a negative p[0]
    assert ends.success
    J = np.stack([T, np.ones(12)], 1)
    a, b = np.linalg.lstsq(J, 2 * T + 0.01 * T**2, rcond=None)[0]
    np.testing.assert_allclose(ends.x, [np.exp(a), b], rtol=1e-6, atol=1e-6)


def test_a_saddle_of_the_misfit_is_left():
    """r = (x^2 - 1, y): the gradient and the matrix along x vanish at 0."""
    ends = cfgd.minimize(cfgd.Residuals(lambda p: jnp.stack([p[0] ** 2 - 1, p[1]])), [0.0, 0.5])
    assert ends.success
    np.testing.assert_allclose(np.abs(ends.x), [1, 0], atol=1e-6)


def test_a_saddle_is_not_left_for_where_the_gradient_is_not_finite():
    """Beyond |x[0]| = 0.3 values are lower and finite, and the derivative of the root is not."""

    def fn(p):
        edge = 0 * jnp.sqrt(jnp.maximum(0.3 - jnp.abs(p[0]), 0))
        return jnp.stack([2 - p[0] ** 2 + edge, p[1] - 1, 0.5 * p[0] * p[1]])

    solution = cfgd.minimize(cfgd.Residuals(fn), [0.0, 1.0])
    assert solution.status is Status.stalled
    assert 0.25 < abs(solution.x[0]) <= 0.3
    assert solution.value < 1.85


@pytest.mark.parametrize("c", few([1e-250, 1e250, 1e-12, 1e9], 2))
def test_scale(c):
    weights = np.full(12, c)
    plain = cfgd.minimize(cfgd.Residuals(misfit), X0)
    scaled = cfgd.minimize(cfgd.Residuals(misfit, weights=weights), X0)
    assert scaled.success
    assert scaled.iterations == plain.iterations
    np.testing.assert_allclose(scaled.x, plain.x, rtol=1e-8)


def test_float32_stays_float32():
    data = (T.astype(np.float32), Y.astype(np.float32))
    f = cfgd.Residuals(lambda p, t, y: p[0] * jnp.exp(-p[1] * t) + p[2] - y, args=data)
    ends = cfgd.minimize(f, X0.astype(np.float32), tolerance=1e-4)
    assert ends.x.dtype == np.float32
    assert ends.success
    np.testing.assert_allclose(ends.x, cfgd.minimize(cfgd.Residuals(misfit), X0).x, rtol=1e-3)


@pytest.mark.slow
def test_convergence_does_not_depend_on_how_bad_the_start_was():
    """exp(3 t) over [0, 10]: the gradient is 1e28 at the start, and falls by any factor."""
    t = np.linspace(0, 10, 60)
    y = 5 * np.exp(-0.7 * t) + 1 + 0.1 * RNG.normal(size=60)
    f = cfgd.Residuals(lambda p: p[0] * jnp.exp(-p[1] * t) + p[2] - y)
    best = least_squares(lambda p: p[0] * np.exp(-p[1] * t) + p[2] - y, [5.0, 0.7, 1.0])
    for rate in (-3.0, -1.0, 0.1):
        ends = cfgd.minimize(f, [1.0, rate, 0.0], max_iterations=300)
        assert not ends.success or ends.value == pytest.approx(best.cost, rel=1e-8)
    assert ends.success


def test_a_run_ends_after_max_iterations():
    ends = cfgd.minimize(NETWORK, NETWORK.init(0), max_iterations=3)
    assert ends.status is Status.max_iterations
    assert ends.iterations == 3
    assert ends.value == pytest.approx(NETWORK.value(ends.x), rel=1e-12)


# ---------------------------------------------------------------- quadratics


def test_the_matrix_of_a_quadratic_is_formed_once(monkeypatch):
    X, y = RNG.normal(size=(50, 4)), RNG.normal(size=50)
    formed, gram = [], Dense.gram

    def counted(self, *args):
        formed.append(1)
        return gram(self, *args)

    monkeypatch.setattr(Dense, "gram", counted)
    found = cfgd.minimize(
        cfgd.LinearModel(X, y, "squared"), np.zeros(4), cfgd.Auto("levenberg_marquardt")
    )
    np.testing.assert_allclose(found.x, np.linalg.lstsq(X, y)[0], rtol=1e-12)
    assert found.iterations <= 3
    assert len(formed) == 1
    # its covariance takes the same matrix
    s2 = np.sum((X @ found.x - y) ** 2) / 46
    np.testing.assert_allclose(found.covariance(), s2 * np.linalg.inv(X.T @ X), rtol=1e-10)


def test_the_matrix_of_a_loss_that_is_not_quadratic_is_formed_at_every_point(monkeypatch):
    X, y = RNG.normal(size=(50, 4)), RNG.integers(0, 2, 50)
    formed, gram = [], Dense.gram

    def counted(self, *args):
        formed.append(1)
        return gram(self, *args)

    monkeypatch.setattr(Dense, "gram", counted)
    found = cfgd.minimize(cfgd.LinearModel(X, y, l2=1.0), np.zeros(4))
    assert found
    assert len(formed) >= found.iterations > 2


def test_a_singular_quadratic_has_a_bounded_solution():
    X = RNG.normal(size=(50, 3))
    X, y = np.column_stack([X, X[:, 0] + X[:, 1]]), RNG.normal(size=50)
    found = cfgd.minimize(
        cfgd.LinearModel(X, y, "squared"), np.zeros(4), cfgd.Auto("levenberg_marquardt")
    )
    least = np.linalg.lstsq(X, y)[0]
    assert found
    np.testing.assert_allclose(X @ found.x, X @ least, rtol=1e-8, atol=1e-10)
    assert np.linalg.norm(found.x) < 2 * np.linalg.norm(least)
