"""Every rule against a transcription, its limit, its range; the same path by optax."""

import dataclasses

import jax
import numpy as np
import optax
import pytest
import transcriptions as plain
from scipy.integrate import quad
from scipy.special import gamma

import cfgd
from cfgd import zoo
from cfgd.integrations.optax import from_rule

A, B = np.array([[20.0, 3.0, -1.0], [3.0, 2.0, 0.5], [-1.0, 0.5, 7.0]]), np.array([1.0, -4.0, 2.0])
X0 = np.array([1.0, -10.0, 0.5])
F = cfgd.Quadratic(A, B)
STEPS = 14


def grad(x):
    return list(A @ np.array(x) + B)


def diagonal(x):
    return list(np.diag(A))


ADAM = {"eps": 1e-8, "b1": 0.9, "b2": 0.999}
# name: (rule, points of the transcription)
CASES = {
    "1": (zoo.Wang2017(0.01, 0.7), lambda: plain.wang(grad, X0, STEPS, 0.01, 0.7)),
    "1 delta": (
        zoo.Wang2017(0.01, 0.7, 0.1),
        lambda: plain.wang(grad, X0, STEPS, 0.01, 0.7, 0.1),
    ),
    "2": (zoo.Sheng2020(0.01, 1.2, 0.1), lambda: plain.sheng(grad, X0, STEPS, 0.01, 1.2, 0.1)),
    "3": (
        zoo.Lou2022(0.01, 0.6, 0.2, 0.01),
        lambda: plain.lou(grad, X0, STEPS, 0.01, 0.6, 0.2, 0.01),
    ),
    "4": (
        zoo.Xue2020(0.01, 0.8, 0.4, 0.01),
        lambda: plain.xue(grad, X0, STEPS, 0.01, 0.8, 0.4, 0.01),
    ),
    "5": (
        zoo.Wei2020(0.01, 0.7, lag=2),
        lambda: plain.wei_on_a_quadratic(grad, diagonal, X0, STEPS, 0.01, 0.7, 2),
    ),
    "5 first": (
        zoo.Wei2020(0.01, 0.7, eps=0.1, terms="first"),
        lambda: plain.wang(grad, X0, STEPS, 0.01, 0.7, 0.1),
    ),
    "6": (
        zoo.Taresh2022(0.01, 0.7, 0.1),
        lambda: plain.taresh(grad, diagonal, X0, STEPS, 0.01, 0.7, 0.1),
    ),
    "6 first": (
        zoo.Taresh2022(0.01, 0.7, 0.1, terms=1),
        lambda: plain.sheng(grad, X0, STEPS, 0.01, 0.7, 0.1),
    ),
    "7": (zoo.Herrera2022(0.02, 0.7, 0.1), lambda: plain.herrera(grad, X0, STEPS, 0.02, 0.7, 0.1)),
    "7 Adam": (
        zoo.HerreraAdam2022(0.2, 0.7, **ADAM),
        lambda: plain.herrera_adam(grad, X0, STEPS, 0.2, 0.7, **ADAM),
    ),
    "8": (zoo.Thabet2026(0.02, 0.7, 0.3), lambda: plain.thabet(grad, X0, STEPS, 0.02, 0.7, 0.3)),
    "9": (
        zoo.Khan2019(0.01, 0.02, 0.7),
        lambda: plain.khan2019(grad, X0, STEPS, 0.01, 0.02, 0.7),
    ),
    "10": (zoo.Khan2018(0.03, 0.7, 0.4), lambda: plain.khan2018(grad, X0, STEPS, 0.03, 0.7, 0.4)),
    "11": (
        zoo.Liu2023(0.03, 0.7, 0.3, 0.01, 0.5, 1.2),
        lambda: plain.liu(grad, X0, STEPS, 0.03, 0.7, 0.3, 0.01, 0.5, 1.2),
    ),
    "12": (zoo.Tan2024(0.01, 1.3, 0.1), lambda: plain.tan(grad, X0, STEPS, 0.01, 1.3, 0.1)),
    "13": (
        zoo.FracAdam2025(0.2, 0.6, terms=4),
        lambda: plain.frac_adam(grad, X0, STEPS, 0.2, 0.6, 4, **ADAM),
    ),
    "13 AdaGL": (
        zoo.AdaGL2024(0.2, 0.6, terms=4),
        lambda: plain.frac_adam(grad, X0, STEPS, 0.2, 0.6, 4, **ADAM, short_term=True),
    ),
    "14": (
        zoo.Kan2021(0.03, 0.7, 0.6, terms=4),
        lambda: plain.kan(grad, X0, STEPS, 0.03, 0.7, 0.6, 4),
    ),
    "15": (zoo.Xie2022(0.02, 0.8, terms=5), lambda: plain.xie(grad, X0, STEPS, 0.02, 0.8, 5)),
    "16": (
        zoo.Shin2021(0.03, 0.6, 0.1, lag=2),
        lambda: plain.shin_on_a_quadratic(grad, diagonal, X0, STEPS, 0.03, 0.6, 0.1, 2),
    ),
    "16 Aggarwal": (
        zoo.Aggarwal2024(0.03, 0.02, 0.6, 0.1),
        lambda: plain.aggarwal_on_a_quadratic(grad, diagonal, X0, STEPS, 0.03, 0.02, 0.6, 0.1),
    ),
}
each_rule = pytest.mark.parametrize("name", CASES)


def points_of(rule, f=F, x0=X0, n=STEPS):
    """The points of a run of `minimize`."""
    end = cfgd.minimize(f, x0, rule, max_iterations=n, record={"x": lambda x: x})
    return end.history["x"]


def points_by_optax(rule, f=F, x0=X0, n=STEPS):
    """The points of a loop over the transformation, with the parameters as a dict."""
    with jax.enable_x64(True):
        optimizer = from_rule(rule)

        def value(params):
            return f.value(jax.numpy.append(params["a"], params["b"]))

        @jax.jit
        def step(params, state):
            updates, state = optimizer.update(
                jax.grad(value)(params), state, params, value_fn=value
            )
            return optax.apply_updates(params, updates), state

        params = {"a": jax.numpy.asarray(x0[:-1]), "b": jax.numpy.asarray(x0[-1])}
        state, points = optimizer.init(params), [x0]
        for _ in range(n):
            params, state = step(params, state)
            points.append(np.append(params["a"], params["b"]))
    return np.array(points)


@pytest.mark.every_case
@each_rule
def test_a_rule_is_its_formula(name):
    rule, transcription = CASES[name]
    points, expected = points_of(rule), transcription()
    assert np.ptp(expected[-3:], 0).min() > 1e-9  # the transcription still moves
    np.testing.assert_allclose(points, expected, rtol=1e-9, atol=1e-12)


@each_rule
def test_optax_makes_the_same_path(name):
    rule, _ = CASES[name]
    np.testing.assert_allclose(points_by_optax(rule), points_of(rule), rtol=1e-9, atol=1e-12)


def test_every_rule_is_tried():
    kinds = {type(rule).__name__ for rule, _ in CASES.values()}
    assert kinds == set(zoo.__all__) - {"UpdateRule", "parameter"}
    assert {rule.number for rule, _ in CASES.values()} == set(range(1, 17))


def gradient_descent(eta, n=STEPS):
    return plain.scaled(grad, X0, n, lambda k, x, before: eta)


# at these numbers a rule is gradient descent with the rate 0.03
GRADIENT_DESCENT = {
    "1": zoo.Wang2017(0.03, 1.0),
    "3": zoo.Lou2022(0.03, 1.0),
    "4": zoo.Xue2020(0.03, 1.0, 0.0),
    "5": zoo.Wei2020(0.03, 1 - 1e-12),
    "7": zoo.Herrera2022(0.03, 1.0),
    "8": zoo.Thabet2026(0.03, 1.0),
    "9": zoo.Khan2019(0.02, 0.01, 1.0),
    "10": zoo.Khan2018(0.03, 1.0),
    "10 mix": zoo.Khan2018(0.03, 0.6, 0.0),
    "11": zoo.Liu2023(0.03, 1.0),
    "12": zoo.Tan2024(0.03, 1 + 1e-12),
    "14": zoo.Kan2021(0.03, 1.0, 0.0),
    "15": zoo.Xie2022(0.03, 1.0, terms=3),
    "16": zoo.Shin2021(0.03, 1 - 1e-12),
    "16 Aggarwal": zoo.Aggarwal2024(0.03, 0.1, 1 - 1e-12),
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", GRADIENT_DESCENT)
def test_the_limit_of_order_one_is_gradient_descent(name):
    # 1e-8: at an order of 1 - 1e-12 a distance of 1e-8 has the factor 1 - 2e-11
    points = points_of(GRADIENT_DESCENT[name])
    np.testing.assert_allclose(points, gradient_descent(0.03), rtol=1e-8)


def test_rule_2_in_the_limit_has_the_gradient_of_one_iteration_ago():
    points = points_of(zoo.Sheng2020(0.03, 1.0))
    for k in range(1, STEPS):
        expected = points[k] - 0.03 * np.array(grad(points[k - 1]))
        np.testing.assert_allclose(points[k + 1], expected, rtol=1e-12)


def test_rule_6_in_the_limit_is_gradient_descent_on_separable_quadratics():
    h, b = np.array([20.0, 2.0, 7.0]), B
    points = points_of(zoo.Taresh2022(0.03, 1.0), cfgd.Quadratic(np.diag(h), b))
    expected = plain.scaled(lambda x: list(h * np.array(x) + b), X0, STEPS, lambda *_: 0.03)
    np.testing.assert_allclose(points, expected, rtol=1e-12)


def optax_points(optimizer, n=STEPS):
    with jax.enable_x64(True):
        x = jax.numpy.asarray(X0)
        state, points = optimizer.init(x), [X0]
        for _ in range(n):
            updates, state = optimizer.update(A @ x + B, state, x)
            x = x + updates
            points.append(np.asarray(x))
    return np.array(points)


def test_the_limits_that_are_adam_are_that_of_optax():
    expected = optax_points(optax.adam(0.2))
    for rule in (zoo.HerreraAdam2022(0.2, 1.0), zoo.FracAdam2025(0.2, 0.0)):
        np.testing.assert_allclose(points_of(rule), expected, rtol=1e-9)


def test_the_limits_with_momentum_are_those_of_optax():
    heavy_ball = optax_points(optax.sgd(0.03, momentum=0.6))
    np.testing.assert_allclose(points_of(zoo.Xue2020(0.03, 1.0, 0.6)), heavy_ball, rtol=1e-12)
    np.testing.assert_allclose(points_of(zoo.Kan2021(0.03 / 0.4, 1.0, 0.6)), heavy_ball, rtol=1e-12)
    # optax's parameters are x, those of the rule y, with y = x + m (x - its previous point)
    y = points_of(zoo.Liu2023(0.03, 1.0, 0.6))
    nesterov = optax_points(optax.sgd(0.03, momentum=0.6, nesterov=True))
    np.testing.assert_allclose(y, nesterov, rtol=1e-12)


def test_rule_16_is_the_method_of_the_paper():
    rule = zoo.Shin2021(0.03, 0.4, 0.2, lag=3)
    method = cfgd.AdaptiveTerminal(0.4, beta=0.2, lag=3, step=cfgd.FixedStep(0.03))
    end = cfgd.minimize(F, X0, method, max_iterations=STEPS, record={"x": lambda x: x})
    np.testing.assert_allclose(points_of(rule), end.history["x"], rtol=1e-12)


def caputo_by_definition(slope, c, x, alpha):
    """1/Gamma(1-alpha) int_c^x f'(t) (x-t)^-alpha dt, and mirrored for x < c."""
    sign = 1.0 if x > c else -1.0
    integral, _ = quad(lambda s: slope(x - sign * s), 0, abs(x - c), weight="alg", wvar=(-alpha, 0))
    return integral / gamma(1 - alpha)


def test_rule_5_is_the_caputo_derivative_along_each_coordinate():
    """On a function whose series does not end."""

    def f(x):
        return jax.numpy.exp(x[0]) + x[1] ** 4 + 0.5 * x[0] * x[1] ** 2

    def slopes(x):
        return [
            lambda t: np.exp(t) + 0.5 * x[1] ** 2,
            lambda t: 4 * t**3 + x[0] * t,
        ]

    alpha, eta, n = 0.6, 0.05, 4
    points = points_of(zoo.Wei2020(eta, alpha, nodes=20), cfgd.Smooth(f), np.array([0.8, -0.9]), n)
    for k in range(1, n):
        x, c = points[k], points[k - 1]
        derivatives = [
            caputo_by_definition(slope, c[j], x[j], alpha) for j, slope in enumerate(slopes(x))
        ]
        np.testing.assert_allclose(points[k + 1], x - eta * np.array(derivatives), rtol=1e-9)


BAD = [
    (lambda: zoo.Wang2017(0.0), "`Wang2017(eta=...)` must be positive, got 0.0."),
    (lambda: zoo.Wang2017(0.1, 1.5), "`Wang2017(alpha=...)` must lie in (0, 1], got 1.5."),
    (lambda: zoo.Wang2017(0.1, delta=-1.0), "`Wang2017(delta=...)` must be at least 0, got -1.0."),
    (lambda: zoo.Sheng2020(0.1, 2.0), "`Sheng2020(alpha=...)` must lie in (0, 2), got 2.0."),
    (lambda: zoo.Tan2024(0.1, 1.0), "`Tan2024(alpha=...)` must lie in (1, 2], got 1.0."),
    (lambda: zoo.Xue2020(0.1, mu=1.0), "`Xue2020(mu=...)` must lie in [0, 1), got 1.0."),
    (lambda: zoo.Wei2020(0.1, 1.0), "`Wei2020(alpha=...)` must lie in (0, 1), got 1.0."),
    (
        lambda: zoo.Wei2020(0.1, lag=0),
        "`Wei2020(lag=...)` must be an integer of at least 1, got 0.",
    ),
    (
        lambda: zoo.Wei2020(0.1, terms="two"),
        "`Wei2020(terms=...)` must be one of all, first, got 'two'.",
    ),
    (lambda: zoo.Taresh2022(0.1, terms=3), "`Taresh2022(terms=...)` must be 1 or 2, got 3."),
    (lambda: zoo.Khan2018(0.1, mix=2.0), "`Khan2018(mix=...)` must lie in [0, 1], got 2.0."),
    (
        lambda: zoo.Liu2023(0.1, lower=2.0),
        "`Liu2023(lower=...)` must be at most upper = 1.0, got 2.0.",
    ),
    (lambda: zoo.Xie2022("fast"), "`Xie2022(eta=...)` must be positive, got 'fast'."),
    (lambda: zoo.Kan2021(float("nan")), "`Kan2021(eta=...)` must be finite, got nan."),
]


@pytest.mark.every_case
@pytest.mark.parametrize(("make", "message"), BAD)
def test_a_number_outside_the_published_range_is_refused(make, message):
    with pytest.raises(ValueError, match="must") as caught:
        make()
    assert str(caught.value) == message


# for each number of a rule the published range: values that it has, and the nearest ones outside
ENDS = {
    "positive": ((1e-9, 1e9), (0.0, -1.0)),
    "at least 0": ((0.0, 1e9), (-1e-9,)),
    "(0, 1]": ((1e-9, 1.0), (0.0, 1.001)),
    "(0, 1)": ((1e-9, 0.999), (0.0, 1.0)),
    "(0, 2)": ((1e-9, 1.999), (0.0, 2.0)),
    "(1, 2]": ((1.001, 2.0), (1.0, 2.001)),
    "[0, 1]": ((0.0, 1.0), (-1e-9, 1.001)),
    "[0, 1)": ((0.0, 0.999), (-1e-9, 1.0)),
    "any": ((-1e9, 1e9), (float("nan"),)),
}
RANGES = {
    "Wang2017": {"eta": "positive", "alpha": "(0, 1]", "delta": "at least 0"},
    "Sheng2020": {"eta": "positive", "alpha": "(0, 2)", "delta": "positive"},
    "Lou2022": {"eta": "positive", "alpha": "(0, 1]", "rate": "at least 0", "delta": "positive"},
    "Xue2020": {"eta": "positive", "alpha": "(0, 1]", "mu": "[0, 1)", "delta": "positive"},
    "Wei2020": {"eta": "positive", "alpha": "(0, 1)", "eps": "at least 0"},
    "Taresh2022": {"eta": "positive", "alpha": "(0, 1]", "delta": "positive"},
    "Herrera2022": {"eta": "positive", "nu": "(0, 2)", "eps": "positive"},
    "HerreraAdam2022": {
        "eta": "positive",
        "nu": "(0, 2)",
        "eps": "positive",
        "b1": "[0, 1)",
        "b2": "[0, 1)",
    },
    "Thabet2026": {"eta": "positive", "alpha": "(0, 1]", "rate": "at least 0"},
    "Khan2019": {"eta": "positive", "eta_f": "at least 0", "alpha": "(0, 1]"},
    "Khan2018": {"eta": "positive", "alpha": "(0, 1]", "mix": "[0, 1]"},
    "Liu2023": {
        "eta": "positive",
        "mu": "(0, 2)",
        "momentum": "[0, 1)",
        "delta": "positive",
        "lower": "positive",
        "upper": "positive",
    },
    "Tan2024": {"eta": "positive", "alpha": "(1, 2]", "delta": "positive"},
    "FracAdam2025": {
        "eta": "positive",
        "alpha": "[0, 1]",
        "b1": "[0, 1)",
        "b2": "[0, 1)",
        "eps": "positive",
    },
    "Kan2021": {"eta": "positive", "alpha": "(0, 1]", "b": "[0, 1)"},
    "Xie2022": {"eta": "positive", "alpha": "(0, 1]"},
    "Shin2021": {"eta": "positive", "alpha": "(0, 1)", "beta": "any"},
    "Aggarwal2024": {"eta": "positive", "lam": "positive", "alpha": "(0, 1)", "beta": "any"},
}
RANGES["AdaGL2024"] = RANGES["FracAdam2025"]


@pytest.mark.every_case
@pytest.mark.parametrize("name", RANGES)
def test_each_number_has_its_published_range(name):
    kind, ranges = getattr(zoo, name), RANGES[name]
    numbers = [field for field in dataclasses.fields(kind) if "allowed" in field.metadata]
    assert [field.name for field in numbers] == list(ranges)
    needed = {field.name: 0.5 for field in numbers if field.default is dataclasses.MISSING}
    bounds = {"lower": 1e-9, "upper": 1e9} if name == "Liu2023" else {}
    for field, words in ranges.items():
        inside, outside = ENDS[words]
        for value in inside:
            kind(**{**needed, **bounds, field: value})
        for value in outside:
            with pytest.raises(ValueError, match=rf"^`{name}\(.*=...\)` must "):
                kind(**{**needed, **bounds, field: value})


def test_every_rule_has_its_ranges():
    assert RANGES.keys() == set(zoo.__all__) - {"UpdateRule", "parameter"}


@pytest.mark.slow
@pytest.mark.every_case
@each_rule
def test_a_sweep_over_the_numbers_of_a_rule(name):
    """Two rates and two orders as one batch, against one run for each."""
    rule, _ = CASES[name]
    order = next(field for field in ("alpha", "nu", "mu") if hasattr(rule, field))
    etas, orders = np.array([0.5, 1.1]) * rule.eta, np.array([0.98, 1.0]) * getattr(rule, order)
    batch = dataclasses.replace(rule, **{"eta": etas, order: orders})
    ends = cfgd.sweep(F, X0, batch, max_iterations=STEPS)
    for i in range(2):
        one = dataclasses.replace(rule, **{"eta": etas[i], order: orders[i]})
        end = cfgd.minimize(F, X0, one, max_iterations=STEPS)
        np.testing.assert_allclose(ends.x[i], end.x, rtol=1e-9)
    assert not np.allclose(ends.x[0], ends.x[1], rtol=1e-6)


def test_a_sweep_has_one_run_for_each_rate():
    etas = np.array([0.01, 0.02, 0.03])
    ends = cfgd.sweep(F, X0, zoo.Wang2017(etas, 0.9), max_iterations=STEPS)
    for i, eta in enumerate(etas):
        one = cfgd.minimize(F, X0, zoo.Wang2017(eta, 0.9), max_iterations=STEPS)
        np.testing.assert_allclose(ends.x[i], one.x, rtol=1e-12)


def test_a_new_number_compiles_nothing():
    traces = []

    def f(x):
        traces.append(x.shape)
        return jax.numpy.sum((x - 1.0) ** 2)

    def traced(rule):
        before = len(traces)
        cfgd.minimize(f, np.zeros(2), rule, max_iterations=3)
        return len(traces) - before

    assert traced(zoo.Lou2022(0.1, 0.7, 0.2)) > 0
    assert traced(zoo.Lou2022(0.2, 0.6, 0.3, 0.01)) == 0


def test_optax_says_what_is_missing():
    x, g = np.ones(2), np.ones(2)
    wang, shin = from_rule(zoo.Wang2017(0.1)), from_rule(zoo.Shin2021(0.1))
    with pytest.raises(ValueError, match=r"`Wang2017.update\(params=...\)` must be given"):
        wang.update(g, wang.init(x))
    with pytest.raises(ValueError, match=r"`Shin2021.update\(value_fn=...\)` must be a function"):
        shin.update(g, shin.init(x), x)
    with pytest.raises(ValueError, match=r"`from_rule\(rule=...\)` must be a rule"):
        from_rule(cfgd.GradientDescent())


def test_optax_leaves_what_has_no_gradient():
    optimizer = from_rule(zoo.Wang2017(0.5, 1.0))
    params = {"w": np.ones(2, np.float32), "fixed": np.ones(3, np.float32)}
    updates, _ = optimizer.update(
        {"w": np.array([1.0, -2.0], np.float32), "fixed": None}, optimizer.init(params), params
    )
    assert updates["fixed"] is None
    assert updates["w"].dtype == np.float32
    np.testing.assert_allclose(updates["w"], [-0.5, 1.0], rtol=1e-6)
