"""L-BFGS: its steps and its ends on functions that are no quadratics."""

import gc
import tracemalloc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from oracles import inverse_bfgs
from scipy.interpolate import CubicHermiteSpline

import cfgd
from cfgd import Status
from cfgd.apps.bench.field.cases import smooth
from cfgd.apps.data.standard_problems import PROBLEMS
from problems import few, identity, wave

RECORD = {"x": identity, "eta": "eta", "gamma": "gamma"}
EPS = np.finfo(float).eps

_value_and_gradient = eqx.filter_jit(lambda fn, x: jax.value_and_grad(fn)(x))


def evaluate(fn, x):
    """Return value and gradient in float64; functions with other numbers share a compilation."""
    with jax.enable_x64(True):
        value, gradient = _value_and_gradient(fn, jnp.asarray(x))
        return float(value), np.asarray(gradient)


# ---------------------------------------------------------------- the step


def explicit_iterates(value, gradient, hessian, x, iterations):
    """Return iterates and etas of full steps, with the matrix that L-BFGS never forms."""
    points, pairs, etas = [x], [], []
    for _ in range(iterations):
        g, P = gradient(x), np.diag(hessian(x))
        s, y = pairs[-1] if pairs else (1.0, 1.0)
        etas.append(s @ y / (y @ (y / P)) if pairs else 1.0)
        x = x - inverse_bfgs(pairs, np.diag(etas[-1] / P)) @ g
        assert value(x) < value(points[-1]) - 1e-3 * (
            g @ (points[-1] - x)
        )  # so that it is accepted
        s, y = x - points[-1], gradient(x) - g
        slopes = [g @ s, gradient(x) @ s]
        cubic = CubicHermiteSpline([0, 1], [value(points[-1]), value(x)], slopes)
        pairs.append((s, cubic(1, 2) / (s @ y) * y))
        points.append(x)
    return np.array(points), etas


class Logistic:
    def __init__(self):
        random = np.random.default_rng(2)
        self.X = random.normal(size=(60, 9)) * np.geomspace(0.3, 3, 9)
        self.y = (random.random(60) < 1 / (1 + np.exp(-self.X @ random.normal(size=9)))) * 1.0
        self.l2, self.x0 = 0.5, 0.3 * random.normal(size=9)
        self.objective = cfgd.LinearModel(self.X, self.y, "logistic", l2=self.l2)

    def value(self, w):
        p = self.X @ w
        return np.sum(np.logaddexp(0, p) - self.y * p) + self.l2 * w @ w / 2

    def gradient(self, w):
        return self.X.T @ (1 / (1 + np.exp(-self.X @ w)) - self.y) + self.l2 * w

    def hessian(self, w):
        s = 1 / (1 + np.exp(-self.X @ w))
        return (self.X.T * (s * (1 - s))) @ self.X + self.l2 * np.eye(9)


LOGISTIC = Logistic()


@pytest.fixture(scope="module")
def logistic_run():
    return cfgd.minimize(LOGISTIC.objective, LOGISTIC.x0, cfgd.Auto("lbfgs"), record=RECORD)


def test_iterates_are_those_of_the_explicit_matrix(logistic_run):
    of = LOGISTIC
    expected, etas = explicit_iterates(of.value, of.gradient, of.hessian, of.x0, 5)
    np.testing.assert_allclose(logistic_run.history["x"][:6], expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(logistic_run.history["eta"][1:6], etas, rtol=1e-7)
    # with one terminal eta and gamma of the history make the step
    x, eta, gamma = (logistic_run.history[name] for name in ("x", "eta", "gamma"))
    g, P, c = LOGISTIC.gradient(x[1]), np.diag(LOGISTIC.hessian(x[1])), x[0]
    y = g - LOGISTIC.gradient(c)  # a factor of it is of no importance here
    a = (x[1] - c) @ g / ((x[1] - c) @ y)  # the weight of y
    d = (g - a * y) / P + gamma[2] * (x[1] - c)
    np.testing.assert_allclose(x[2], x[1] - eta[2] * d, rtol=1e-9, atol=1e-10)
    assert gamma[1] == 0
    assert gamma[2] != 0


def test_logistic_regression_reaches_scipys_optimum(logistic_run):
    theirs = scipy.optimize.minimize(
        LOGISTIC.value,
        LOGISTIC.x0,
        jac=LOGISTIC.gradient,
        method="trust-exact",
        hess=LOGISTIC.hessian,
        options={"gtol": 1e-10},
    )
    assert logistic_run.success
    np.testing.assert_allclose(logistic_run.x, theirs.x, rtol=1e-6, atol=1e-7)
    assert np.all(np.diff(logistic_run.history["value"]) <= 0)


# ---------------------------------------------------------------- runs


def saddle(x):
    """Return a function that is indefinite around 0, with minima at x_0 = +-a."""
    return x[0] ** 4 - x[0] ** 2 + x[1] ** 2 + 0.5 * x[0] * x[1] + 0.2 * x[0] ** 2 * x[1]


SMALL = ["Rosenbrock 2", "Powell singular", "Wood", "Beale", "Helical valley", "Brown badly scaled"]
STARTS = {name: PROBLEMS[name].x0 for name in SMALL} | {"saddle": np.array([0.01, 0.3])}


class OneOf(eqx.Module):
    """The small problems as one function of four coordinates, compiled once."""

    number: jax.Array | np.ndarray

    def __call__(self, x):
        functions = [lambda x, name=name: PROBLEMS[name](x[: STARTS[name].size]) for name in SMALL]
        return jax.lax.switch(self.number, [*functions, saddle], x)


def small(name):
    number = np.asarray(list(STARTS).index(name), np.int32)
    x0 = np.zeros(4)
    x0[: STARTS[name].size] = STARTS[name]
    return OneOf(number), x0


def scipys_lbfgs(fn, x0):
    options = {"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-10, "ftol": 0.0}
    return scipy.optimize.minimize(
        lambda x: evaluate(fn, x), x0, jac=True, method="L-BFGS-B", options=options
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTS)
def test_small_problems_decrease_and_are_solved(name):
    fn, x0 = small(name)
    ends = cfgd.minimize(fn, x0, tolerance=1e-10)
    assert np.all(np.diff(ends.history["value"]) <= 0)
    assert ends.success, ends.message
    g, g0 = evaluate(fn, ends.x)[1], evaluate(fn, x0)[1]
    assert np.linalg.norm(g) <= 1.01e-10 * np.linalg.norm(g0)
    theirs = scipys_lbfgs(fn, x0)
    assert ends.value <= theirs.fun + 1e-8 * max(1, abs(theirs.fun))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), few([("Beale", 1), ("Biggs", 4), ("Beale", 6)], 2))
def test_an_indefinite_start_does_not_lead_to_infinity_along_a_valley(name, seed):
    case = smooth(name, seed)
    assert np.linalg.eigvalsh(jax.hessian(case.fn)(case.x0))[0] < 0
    ends = cfgd.minimize(case.fn, case.x0)
    assert ends.success
    assert ends.value < 1e-2
    assert ends.iterations < 1000


def test_runs_go_on_by_slopes_where_rounding_hides_the_decrease():
    """At the local minimum f = 2.8e-5 is known to 1e-18, and |g|^2 is as small."""
    case = smooth("Trigonometric 10", 0)
    ends = cfgd.minimize(case.fn, case.x0, tolerance=1e-10)
    assert ends.success
    assert ends.iterations < 100
    assert np.all(np.diff(ends.history["value"]) <= 0)
    assert ends.value == evaluate(case.fn, ends.x)[0]


def test_evaluations_are_counted():
    calls = []

    def counted(x):
        jax.debug.callback(lambda _: calls.append(1), x[0])
        return PROBLEMS["Rosenbrock 2"](x)

    made, reported = [], []
    for iterations in (5, 12, 25):
        calls.clear()
        ends = cfgd.minimize(counted, [-1.2, 1.0], tolerance=0.0, max_iterations=iterations)
        jax.effects_barrier()
        made.append(len(calls))
        reported.append(ends.evaluations)
    np.testing.assert_array_equal(np.diff(made), np.diff(reported))
    assert made[-1] > made[0] + 20  # some steps were shortened


def test_rosenbrock_in_100_dimensions(unchecked):
    problem = PROBLEMS["Rosenbrock 100"]
    ends = cfgd.minimize(problem, problem.x0)
    assert ends.success
    np.testing.assert_allclose(ends.x, 1.0, rtol=1e-4)
    assert np.all(np.diff(ends.history["value"]) <= 0)
    assert "L-BFGS" in ends.summary


@pytest.mark.slow
def test_a_network():
    z = np.linspace(-1, 1, 40)
    network = cfgd.ShallowNetwork(z, np.sin(5 * z), 8)
    x0 = network.init(1)
    ends = cfgd.minimize(network, x0, cfgd.Auto("lbfgs"), max_iterations=1500)
    assert np.all(np.diff(ends.history["value"]) <= 0)
    assert ends.value < 1e-3 * network.value(x0)
    assert "Gauss-Newton" in ends.summary


def test_a_local_objective_is_scaled_by_its_own_diagonal():
    local = cfgd.Local(LOGISTIC.objective, curvature="gauss_newton")
    ends = cfgd.minimize(local, LOGISTIC.x0)
    assert ends.success
    assert np.linalg.norm(LOGISTIC.gradient(ends.x)) < 1e-6
    assert "given diagonal" in ends.summary


def test_float32_stays_float32():
    ends = cfgd.minimize(wave, np.array([1.6, -1.2], np.float32), tolerance=1e-5)
    assert ends.x.dtype == np.float32
    assert ends.success
    assert np.linalg.norm(evaluate(wave, ends.x.astype(float))[1]) < 1e-4
    assert np.all(np.diff(ends.history["value"]) <= 0)


def tree_wave(tree):
    return wave(jnp.stack([tree["a"], tree["b"][0]]))


def test_pytrees():
    tree = {"a": np.array(1.6), "b": np.array([-1.2])}
    ends = cfgd.minimize(tree_wave, tree)
    assert ends.success
    assert ends.x["a"].shape == ()
    x = np.array([ends.x["a"], ends.x["b"][0]])
    np.testing.assert_allclose(x, scipys_lbfgs(wave, np.array([1.6, -1.2])).x, rtol=1e-5)


@pytest.mark.slow
def test_a_start_at_a_saddle_is_left():
    fn, x0 = small("saddle")
    ends = cfgd.minimize(fn, 0 * x0)
    assert ends.success
    assert ends.value < -0.2
    hessian = jax.hessian(fn)(ends.x)[:2, :2]
    assert np.linalg.eigvalsh(hessian)[0] > 0


T = np.linspace(0, 4, 30)
TARGET = 2 * np.exp(-0.5 * T) - np.exp(-2.0 * T)


def two_exponentials(b):
    return jnp.sum((b[0] * jnp.exp(-b[2] * T) + b[1] * jnp.exp(-b[3] * T) - TARGET) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.3, 0.5])
def test_the_curvature_is_checked_along_a_flat_valley(part):
    """Where two terms are one there is a minimum, and a saddle further along its valley."""
    one = cfgd.minimize(lambda b: jnp.sum((b[0] * jnp.exp(-b[1] * T) - TARGET) ** 2), [1.0, 0.3])
    height, rate = one.x
    merged = np.array([part * height, (1 - part) * height, rate, rate])
    with jax.enable_x64(True):
        curvatures = np.linalg.eigvalsh(jax.hessian(two_exponentials)(merged))
    assert abs(curvatures[0]) < 1e-6 < 1e-3 < curvatures[1]
    # of two directions off the saddle one leads to the minimum, the other to infinity
    assert cfgd.minimize(two_exponentials, merged, max_iterations=500).value < one.value / 2


def test_a_valley_that_is_flat_all_along_is_a_minimum():
    """The check does not move x."""

    def valley(x):
        return (x[0] + x[1] - 1) ** 2 + (x[2] - 2) ** 2 + (x[0] + x[1]) ** 2 * x[2] ** 2

    ends = cfgd.minimize(valley, [3.0, 1.0, 1.0], record={"x": lambda x: x})
    assert ends.status.name == "converged"
    np.testing.assert_array_equal(ends.x, ends.history["x"][-1])
    assert abs(ends.x[0] - ends.x[1] - 2) < 1e-6  # as at the start: no step moves along the valley


class Mixed(eqx.Module):
    """Five kinds of smooth functions, convex and not, bounded below."""

    kind: jax.Array | np.ndarray
    X: jax.Array | np.ndarray
    y: jax.Array | np.ndarray

    def __call__(self, x):
        p = self.X @ x
        ridge = 1e-4 * jnp.sum(x * x)
        kinds = [
            lambda: jnp.sum(jnp.logaddexp(p, -p) - self.y * p / 2) + ridge,
            lambda: jnp.sum((p - self.y) ** 4) + ridge,
            lambda: jnp.sum((jnp.tanh(p) - self.y) ** 2) + ridge,
            lambda: jnp.sum(1 - jnp.cos(p)) + jnp.sum(p * p) / 50 + ridge,
            lambda: jnp.sum(jnp.exp(p / 2) - self.y * p / 2 + jnp.sqrt(1 + p * p)) + ridge,
        ]
        return jax.lax.switch(self.kind, kinds)


def mixed(number):
    random = np.random.default_rng(number)
    d = (3, 40, 12, 150)[number % 4]
    m = 2 * d
    U, _, V = np.linalg.svd(random.normal(size=(m, d)), full_matrices=False)
    X = (U * np.geomspace(1, 10.0 ** -random.uniform(0, 4), d)) @ V * 10 ** random.uniform(-1, 1)
    kind = np.asarray(number % 5, np.int32)
    return Mixed(kind, X, random.uniform(-0.9, 0.9, m)), random.normal(size=d)


def predicted_decrease(fn, x, g):
    """Return what a Newton step with the absolute value of the Hessian would lower f by."""
    with jax.enable_x64(True):
        curvatures, axes = np.linalg.eigh(np.asarray(jax.hessian(fn)(jnp.asarray(x))))
    return np.sum((axes.T @ g) ** 2 / np.abs(curvatures)) / 2


# five have each kind and each dimension, twenty have each kind in each dimension
@pytest.mark.one_case
@pytest.mark.parametrize("number", few(range(200), 5))
def test_random_problems_end_with_a_true_status(number, unchecked):
    fn, x0 = mixed(number)
    most = 3000 if number >= 20 else 300
    ends = cfgd.minimize(fn, x0, max_iterations=most)
    assert np.all(np.diff(ends.history["value"]) <= 0)
    (value, g), (_, g0) = evaluate(fn, ends.x), evaluate(fn, x0)
    assert ends.value == pytest.approx(value, rel=1e-12)
    assert ends.gradient_norm == pytest.approx(np.linalg.norm(g), rel=1e-3, abs=1e-12)
    if ends.success:
        fallen = np.linalg.norm(g) <= 1.001e-8 * np.linalg.norm(g0)
        assert fallen or predicted_decrease(fn, ends.x, g) <= 1e-10 * abs(
            value
        )  # rounding hides the rest
    elif ends.status is Status.stalled:
        lengths = np.geomspace(1e-12, 1e3, 60)
        lowest = min(evaluate(fn, ends.x - t * g)[0] for t in lengths)
        assert lowest >= ends.value - 50 * EPS * abs(ends.value)
    else:
        assert ends.status is Status.max_iterations
        assert ends.iterations == most


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")  # the checker holds vectors, too
def test_a_run_takes_the_memory_of_forty_vectors():
    """This includes the probes of the check at the end, but not what the function itself takes."""
    d = 60_000
    weights, ones = np.linspace(1, 9, d), np.ones(d)

    def quartic(x):  # allocates two vectors
        g = x - ones
        value = weights @ (g * g) / 2 + (g @ g) ** 2 / d
        g *= weights + 4 * (g @ g) / d
        return value, g

    f = cfgd.External(quartic)
    cfgd.minimize(f, np.zeros(d), max_iterations=2)
    gc.collect()
    tracemalloc.start()
    end = cfgd.minimize(f, np.zeros(d))
    peak = tracemalloc.get_traced_memory()[1]
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert end.status is Status.converged
    # two are those of the function, two those of the diagonal; 44.1 were measured
    assert peak / (8 * d) < 44.5
    assert left / (8 * d) < 3  # the run itself is freed
