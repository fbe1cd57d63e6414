"""Auto's step on models: against Levenberg and Marquardt by hand, the theorem, and SciPy."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import least_squares

import cfgd
from cfgd import Status
from cfgd.objectives import curvature as model_file
from cfgd.objectives.linear.design import Dense
from nist import NIST, correct_digits, residuals
from problems import few, identity, quick

RECORD = {"x": identity, "gamma": "gamma"}
RNG = np.random.default_rng(7)
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


def test_a_step_is_that_of_levenberg_and_marquardt():
    """Each with the gamma of the history, D kept from shrinking, and the second derivative of r."""
    ends = cfgd.minimize(cfgd.Residuals(misfit), X0, record=RECORD)
    assert ends.success
    D = np.zeros(3)
    for k in range(3):
        x, gamma = ends.history["x"][k], ends.history["gamma"][k + 1]
        r, J = by_hand(x)
        D = np.maximum(D, np.diag(J.T @ J))
        matrix = J.T @ J + gamma * np.diag(D)
        p = np.linalg.solve(matrix, J.T @ r)
        bend = 2 / 0.1 * ((by_hand(x - 0.1 * p)[0] - r) / 0.1 + J @ p)
        a = -np.linalg.solve(matrix, J.T @ bend) / 2
        small = 2 * np.sqrt(a @ (D * a)) <= 0.75 * np.sqrt(p @ (D * p))
        move = p - a if small else p
        np.testing.assert_allclose(ends.history["x"][k + 1], x - move, rtol=1e-8)


def test_it_is_the_limit_of_the_non_adaptive_method_on_the_model():
    """Theorem 3 with the terminal at x: what the method would walk to is taken at once."""
    f = cfgd.LinearModel(WIDE, LABELS, l2=0.3)
    ends = cfgd.minimize(f, np.zeros(5), record=RECORD)
    x, gamma = ends.history["x"][2], 0.2
    p = 1 / (1 + np.exp(-WIDE @ x))
    H = (WIDE.T * (p * (1 - p))) @ WIDE + 0.3 * np.eye(5)
    g = WIDE.T @ (p - LABELS) + 0.3 * x
    q = cfgd.Quadratic(H, g - H @ x)
    walked = cfgd.minimize(
        q, x + 1, cfgd.NonAdaptive(x, gamma=gamma), max_iterations=200_000, tolerance=1e-12
    )
    step = np.linalg.solve(H + gamma * np.diag(np.diag(H)), g)
    np.testing.assert_allclose(walked.x, x - step, rtol=1e-6, atol=1e-8)


def test_on_a_convex_loss_it_is_newtons_step():
    f = cfgd.LinearModel(WIDE, LABELS, l2=0.3)
    ends = cfgd.minimize(f, np.zeros(5), record=RECORD)
    assert ends.success
    H = WIDE.T @ WIDE / 4 + 0.3 * np.eye(5)
    g = WIDE.T @ (0.5 - LABELS)
    np.testing.assert_allclose(ends.history["x"][1], -np.linalg.solve(H, g), rtol=1e-6)
    assert ends.iterations < 12


def test_the_last_step_of_newton_is_made_by_the_matrix_that_judges(monkeypatch):
    """Digits are doubled for a look; a matrix is made at each point but the last one."""
    matrices, gram = [], Dense.gram
    monkeypatch.setattr(Dense, "gram", lambda *of: matrices.append(1) or gram(*of))
    f = cfgd.LinearModel(WIDE, LABELS, l2=0.1)
    end = cfgd.minimize(f, np.zeros(5))
    assert end.status is Status.converged
    norms = end.history["gradient_norm"]
    assert norms[-2] <= 1e-8 * norms[0]  # enough for the verdict
    assert norms[-1] <= 1e-13 * norms[0]
    assert len(matrices) == end.iterations


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
    "sparse": (cfgd.LinearModel(scipy.sparse.csr_array(WIDE), LABELS, l2=0.3), np.zeros(5)),
    "own loss": (
        cfgd.LinearModel(WIDE, LABELS, loss=lambda p, y: jnp.cosh(p - y) - 1, l2=0.3),
        np.zeros(5),
    ),
}


HOST = ["residuals", "network, fewer rows", "logistic"]


@pytest.mark.parametrize(("f", "x0"), quick(CASES, HOST))
def test_on_the_host_it_is_the_run_of_the_compiled_loop(f, x0):
    options = {"max_iterations": 4, "record": RECORD, "tolerance": 1e-12}
    method = cfgd.Auto("tikhonov")
    one = cfgd.minimize(f, x0, method, **options)
    many = cfgd.sweep(f, x0, [method, method], **options)
    assert one.iterations == many.iterations[1]
    for name in ("x", "gamma", "value"):
        np.testing.assert_allclose(
            many.history[name][1], one.history[name], rtol=1e-6, atol=1e-8, err_msg=name
        )


@pytest.mark.parametrize("name", few(["network, fewer rows", "logistic", "residuals", "robust"], 2))
def test_without_a_matrix_it_goes_to_the_same_place(name, monkeypatch):
    f, x0 = CASES[name]
    with_matrix = cfgd.minimize(f, x0, max_iterations=60)
    monkeypatch.setattr(model_file, "AFFORDABLE", 0)
    without = cfgd.minimize(f, x0, max_iterations=200)
    assert np.all(np.diff(without.history["value"]) <= 0)
    if name.startswith("network"):
        assert without.value < 1e-3 * f.value(x0)
    else:
        assert without.success
        np.testing.assert_allclose(without.x, with_matrix.x, rtol=1e-4, atol=1e-6)


def test_a_jacobian_without_full_rank():
    f = cfgd.Residuals(lambda p: (p[0] + p[1]) * jnp.exp(-p[2] * T) - Y)
    ends = cfgd.minimize(f, [0.5, 0.1, 0.5])
    assert ends.success
    other = cfgd.minimize(cfgd.Residuals(lambda p: p[0] * jnp.exp(-p[1] * T) - Y), [0.6, 0.5])
    assert ends.value == pytest.approx(other.value, rel=1e-8)
    with pytest.warns(UserWarning, match="do not determine the parameters"):
        assert np.isinf(ends.covariance()).all()


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


def test_the_verdict_does_not_depend_on_how_bad_the_start_was():
    """exp(3 t) over [0, 10]: the gradient is 1e28 at the start, and falls by any factor."""
    t = np.linspace(0, 10, 60)
    y = 5 * np.exp(-0.7 * t) + 1 + 0.1 * RNG.normal(size=60)
    f = cfgd.Residuals(lambda p: p[0] * jnp.exp(-p[1] * t) + p[2] - y)
    best = least_squares(lambda p: p[0] * np.exp(-p[1] * t) + p[2] - y, [5.0, 0.7, 1.0])
    for rate in (-3.0, -1.0, 0.1):
        ends = cfgd.minimize(f, [1.0, rate, 0.0], max_iterations=300)
        assert not ends.success or ends.value == pytest.approx(best.cost, rel=1e-8)
    assert ends.success


def test_the_choice_of_the_model():
    quadratic = cfgd.Quadratic(np.eye(2), np.ones(2))
    smooth = cfgd.Smooth(lambda x: jnp.sum(x**4))
    assert "Tikhonov" in cfgd.minimize(NETWORK, NETWORK.init(0), max_iterations=1).how
    span = cfgd.minimize(NETWORK, NETWORK.init(0), cfgd.Auto(model="span"), max_iterations=1)
    assert "span" in span.how
    assert "best eta" in cfgd.minimize(quadratic, [1.0, 2.0], cfgd.Auto(model="conjugate")).how
    for model, f in (("tikhonov", smooth), ("conjugate", smooth)):
        with pytest.raises(ValueError, match=rf"`Auto\(model=...\)` must go with .*'{model}' for"):
            cfgd.minimize(f, [1.0, 2.0], cfgd.Auto(model=model))
    with pytest.raises(ValueError, match="must be None or one of conjugate, tikhonov, span"):
        cfgd.Auto(model="newton")


def test_statuses_of_a_budget():
    ends = cfgd.minimize(NETWORK, NETWORK.init(0), max_iterations=3)
    assert ends.status is Status.max_iterations
    assert ends.iterations == 3
    assert ends.value == pytest.approx(NETWORK.value(ends.x), rel=1e-12)
