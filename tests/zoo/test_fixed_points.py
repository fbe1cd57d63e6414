"""What the rules do in the long run: where they stop, and which are another method in disguise."""

import math

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import transcriptions as plain

import cfgd
from cfgd import zoo
from cfgd.zoo.formulas import binomial_weights

pytestmark = pytest.mark.every_case

A, B = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, -4.0])
F = cfgd.Quadratic(A, B)
MINIMISER = np.array([-1.2, 2.6])
LINE = cfgd.Quadratic(np.zeros((2, 2)), np.array([0.5, -3.0]))  # a constant gradient


def end_of(rule, f=F, x0=(0.0, 0.0), n=3000):
    """The last point of a run, and the norm of the gradient there."""
    record = {"x": lambda x: x}
    end = cfgd.minimize(
        f, np.array(x0), rule, max_iterations=n, tolerance=1e-10, record=record, every=n
    )
    x = end.history["x"][-1]
    return x, np.linalg.norm(f.gradient(x))


def grad(x):
    return list(A @ np.array(x) + B)


# ---------------------------------------------------------------- the same in disguise


@pytest.mark.parametrize(("alpha", "eta"), [(0.6, 0.05), (0.9, 0.3)])
def test_the_steady_state_of_rule_1(alpha, eta):
    """D = (eta |g| / Gamma(2 - alpha))^(1/alpha), from any first step."""
    points = plain.wang(lambda x: [0.5, -3.0], [0.0, 0.0], 200, eta, alpha)
    expected = (eta * np.array([0.5, 3.0]) / math.gamma(2 - alpha)) ** (1 / alpha)
    record = {"x": lambda x: x}
    run = cfgd.minimize(
        LINE, np.zeros(2), zoo.Wang2017(eta, alpha), max_iterations=200, record=record
    ).history["x"]
    np.testing.assert_allclose(run, points, rtol=1e-10)
    np.testing.assert_allclose(np.abs(run[-1] - run[-2]), expected, rtol=1e-9)


@pytest.mark.parametrize(("alpha", "eta"), [(1.2, 0.05), (1.7, 0.3)])
def test_the_steady_state_of_rule_12(alpha, eta):
    """D = (eta |g|)^(1/alpha); reached for alpha < 2 by steps that alternate around it."""
    record = {"x": lambda x: x}
    rule = zoo.Tan2024(eta, alpha, delta=1e-30)
    run = cfgd.minimize(LINE, np.zeros(2), rule, max_iterations=200, record=record).history["x"]
    expected = (eta * np.array([0.5, 3.0])) ** (1 / alpha)
    np.testing.assert_allclose(np.abs(run[-1] - run[-2]), expected, rtol=1e-9)


def test_rule_1_is_gradient_descent_on_a_power_of_the_gradient():
    """Its path ends as that of x - (eta |g| / Gamma)^(1/alpha) sign g, rates and all."""
    alpha, eta, n = 0.7, 0.05, 4000
    by_power = np.array([1.0, -1.0])
    for _ in range(n):
        g = A @ by_power + B
        by_power = by_power - np.sign(g) * (eta * np.abs(g) / math.gamma(2 - alpha)) ** (1 / alpha)
    x, norm = end_of(zoo.Wang2017(eta, alpha), x0=(1.0, -1.0), n=n)
    # both are still on the way, at the same place: the error falls as k^(-alpha / (1 - alpha))
    assert norm > 1e-6
    np.testing.assert_allclose(x - MINIMISER, by_power - MINIMISER, rtol=0.01)


@pytest.mark.parametrize(("alpha", "terms"), [(0.3, 10), (0.9, 10), (0.5, 100)])
def test_the_sum_of_the_weights_of_rule_13(alpha, terms):
    weights = np.asarray(binomial_weights(jnp.asarray(alpha), terms + 1), float)
    by_definition = [float((-1) ** j * mpmath.binomial(alpha, j)) for j in range(terms + 1)]
    np.testing.assert_allclose(weights, by_definition, rtol=2e-5, atol=1e-6)
    top = mpmath.gamma(terms + 1 - alpha)
    expected = float(top / mpmath.gamma(1 - alpha) / mpmath.factorial(terms))
    np.testing.assert_allclose(sum(by_definition), expected, rtol=1e-12)
    if (alpha, terms) == (0.9, 10):
        assert expected == pytest.approx(0.01317, abs=5e-6)


def test_rule_13_at_order_one_sees_changes_of_the_gradient_alone():
    """f + <a, x> has the same path as f, whatever a is: after the first ten gradients."""
    weights = np.asarray(binomial_weights(1.0, 11))
    np.testing.assert_array_equal(weights, [1.0, -1.0, *np.zeros(9)])
    _, norm = end_of(zoo.FracAdam2025(0.01, alpha=1.0), x0=(5.0, 5.0), n=20_000)
    assert norm > 1.0  # it stops at, or wanders around, a point that is not stationary
    assert end_of(zoo.FracAdam2025(0.01, alpha=0.3), x0=(5.0, 5.0), n=20_000)[1] < 1e-6


def test_the_adaptive_terminal_is_heavy_ball_where_the_diagonal_is_constant():
    """With the momentum -eta gamma D, as on standardised features."""
    eta, alpha = 0.2, 0.4
    f = cfgd.Quadratic([[1.5, 0.7], [0.7, 1.5]], [1.0, -4.0])
    points = [np.array([2.0, -1.0])] * 2
    momentum = eta * (1 - alpha) / (2 - alpha) * 1.5
    for _ in range(20):
        x, before = points[-1], points[-2]
        points.append(x - eta * (f.A @ x + f.b) + momentum * (x - before))
    run = cfgd.minimize(
        f, points[0], zoo.Shin2021(eta, alpha), max_iterations=20, record={"x": lambda x: x}
    ).history["x"]
    np.testing.assert_allclose(run, points[1:], rtol=1e-11)


def test_rule_11_is_gradient_descent_once_its_rate_is_clipped():
    """Its rate is the lower bound from there on, for all coordinates."""
    eta, lower = 0.4, 0.5
    rule = zoo.Liu2023(eta, 0.5, lower=lower)
    run = cfgd.minimize(F, np.zeros(2), rule, max_iterations=50, record={"x": lambda x: x}).history[
        "x"
    ]
    for k in range(20, len(run) - 1):
        np.testing.assert_allclose(
            run[k + 1], run[k] - eta * lower * (A @ run[k] + B), rtol=1e-10, atol=1e-14
        )


# ------------------------------------------------------- stationary points, and others

STATIONARY = {
    "1 delta": zoo.Wang2017(0.3, 0.95, 1e-3),
    "2": zoo.Sheng2020(0.15, 1.0),
    "3": zoo.Lou2022(0.3),
    "4": zoo.Xue2020(0.3, 0.95, delta=1e-3),
    "5 eps": zoo.Wei2020(0.3, 0.95, eps=1e-3),
    "6": zoo.Taresh2022(0.1, 0.95),
    "7": zoo.Herrera2022(0.3),
    "7 Adam": zoo.HerreraAdam2022(0.01),
    "8": zoo.Thabet2026(0.3),
    "9": zoo.Khan2019(0.2, 0.1),
    "10": zoo.Khan2018(0.3),
    "11": zoo.Liu2023(0.4, momentum=0.3),
    "13": zoo.FracAdam2025(0.01, 0.3),
    "13 AdaGL": zoo.AdaGL2024(0.01, 0.3),
    "14": zoo.Kan2021(0.3),
    "15 of order 1": zoo.Xie2022(0.3, 1.0),
    "16": zoo.Shin2021(0.3),
    "16 Aggarwal": zoo.Aggarwal2024(0.3, 0.1),
}


@pytest.mark.parametrize("name", STATIONARY)
def test_rules_that_reach_the_minimiser(name):
    x, norm = end_of(STATIONARY[name], x0=(1.0, -1.0), n=8000)
    assert norm < 1e-6
    np.testing.assert_allclose(x, MINIMISER, atol=1e-5)


@pytest.mark.parametrize("rule", [zoo.Wang2017(0.3, 0.9), zoo.Wei2020(0.3, 0.9)])
def test_rules_1_and_5_keep_a_coordinate_whose_first_step_was_zero(rule):
    """x_0 has the gradient (0, g_2): the first coordinate stays, at a gradient of norm 5.4."""
    x0 = np.array([-1.0, 2.0])  # A x0 + B = (0, -1)
    np.testing.assert_allclose(A @ x0 + B, [0.0, -1.0])
    x, _ = end_of(rule, x0=x0)
    assert x[0] == x0[0]
    np.testing.assert_allclose(x[1], 2.5, atol=0.01)  # the minimiser with x_1 given
    assert abs(A @ x + B)[0] == pytest.approx(0.5, abs=0.01)


def test_rule_8_never_leaves_zero():
    x, norm = end_of(zoo.Thabet2026(0.3), x0=(0.0, 1.0))
    assert x[0] == 0.0
    np.testing.assert_allclose(x[1], 2.0, atol=1e-6)
    assert norm == pytest.approx(3.0, abs=1e-5)


def test_rule_7_leaves_zero_by_its_epsilon():
    """The first step there has the factor eps^(1 - nu) / Gamma(2 - nu), and the next are longer."""
    nu, eps, eta = 0.3, 1e-8, 0.3
    x, _ = end_of(zoo.Herrera2022(eta, nu, eps), x0=(0.0, 1.0), n=1)
    assert x[0] == pytest.approx(-eta * eps ** (1 - nu) / math.gamma(2 - nu) * 2.0, rel=1e-6)
    assert end_of(zoo.Herrera2022(eta, nu, eps), x0=(0.0, 1.0), n=200)[1] < 1e-5
    # above order 1 the factor has no bound at 0, and a minimiser there is not reached
    at_zero = cfgd.Quadratic([[1.0]], [0.0])
    assert end_of(zoo.Herrera2022(0.3, 1.5), at_zero, (1.0,))[1] > 1e-3


def test_rule_12_oscillates_around_the_minimiser():
    """On h x^2 / 2 at a distance of (eta h / 2)^(1/(alpha - 1)) / 2, the two-cycle of the rule."""
    f, alpha, eta = cfgd.Quadratic([[2.0]], [0.0]), 1.5, 0.3
    rule = zoo.Tan2024(eta, alpha, delta=1e-30)
    x, _ = end_of(rule, f, (1.0,), n=2000)
    assert abs(x[0]) == pytest.approx(0.5 * (eta * 2.0 / 2) ** (1 / (alpha - 1)), rel=1e-6)


def test_rule_15_with_a_window_solves_a_penalised_problem():
    """eta^alpha g = -W (x - x_0): no stationary point of f."""
    eta, alpha, terms, x0 = 0.2, 0.9, 10, np.array([1.0, -1.0])
    x, norm = end_of(zoo.Xie2022(eta, alpha, terms=terms), x0=x0)
    W = float(sum((-1) ** j * mpmath.binomial(alpha, j) for j in range(terms + 1)))
    expected = np.linalg.solve(eta**alpha * A + W * np.eye(2), W * x0 - eta**alpha * B)
    np.testing.assert_allclose(x, expected, rtol=1e-8)
    assert norm > 0.1


def test_rule_15_with_all_points_is_slow():
    """The error falls as k^-alpha: by 2^-alpha from 100 to 200 iterations."""
    alpha = 0.9
    errors = [
        np.linalg.norm(end_of(zoo.Xie2022(0.2, alpha, terms=400), n=n)[0] - MINIMISER)
        for n in (200, 400)
    ]
    assert errors[1] / errors[0] == pytest.approx(2**-alpha, rel=0.02)


def test_rule_14_as_printed_does_not_converge():
    """Without the factor b, alpha = 1 is momentum without damping."""
    v, x, eta, b = np.zeros(2), np.zeros(2), 0.3, 0.9
    norms = []
    for _ in range(2000):
        g = A @ x + B
        norms.append(np.linalg.norm(g))
        v = v + (1 - b) * g
        x = x - eta * v
    assert max(norms[-100:]) > 0.5 * max(norms[:100])
    assert end_of(zoo.Kan2021(eta, 1.0, b))[1] < 1e-6


def test_a_run_that_stops_elsewhere_is_reported():
    """The status is not `converged`, and the message sends the user to the docstring."""
    end = cfgd.minimize(F, np.zeros(2), zoo.Thabet2026(0.3), max_iterations=5000)
    assert end.status is cfgd.Status.stalled
    assert "points that are not stationary" in end.message
