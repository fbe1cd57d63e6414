"""L-BFGS: its memory, its steps and its ends on functions that are no quadratics."""

import gc
import tracemalloc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from oracles import inverse_bfgs, random_spd

import cfgd
from cfgd import Status
from cfgd.apps.bench.field.cases import smooth
from cfgd.apps.data.standard_problems import PROBLEMS
from cfgd.methods.auto import line_search
from cfgd.methods.auto.curvature_check import Probes
from cfgd.methods.auto.lbfgs_memory import (
    GROWTH,
    PAIRS,
    Memory,
    Pair,
    direction,
    first_step,
    secant_diagonal,
)
from cfgd.objectives.evaluation import Evaluation
from problems import few, identity, wave

RECORD = {"x": identity, "eta": "eta", "gamma": "gamma"}
EPS = np.finfo(float).eps

_value_and_gradient = eqx.filter_jit(lambda fn, x: jax.value_and_grad(fn)(x))


def evaluate(fn, x):
    """Return value and gradient in float64; functions with other numbers share a compilation."""
    with jax.enable_x64(True):
        value, gradient = _value_and_gradient(fn, jnp.asarray(x))
        return float(value), np.asarray(gradient)


# ---------------------------------------------------------------- the memory


def random_pairs(count, d=9, seed=4):
    """Return pairs of a quadratic, so that all have a positive product; and a gradient and P."""
    random = np.random.default_rng(seed)
    H = random_spd(random, d)
    steps = random.normal(size=(count, d))
    return [(s, H @ s) for s in steps], random.normal(size=d), random.uniform(0.5, 5, d)


def remember(pairs):
    memory = Memory.empty(pairs[0][0])
    for s, y in pairs:
        memory.add(Pair.of(s, y))
    return memory


def two_loop_recursion(pairs, g, P):
    """Return the inverse L-BFGS matrix times g: Nocedal and Wright, algorithm 7.4."""
    q, alphas = g.copy(), []
    for s, y in reversed(pairs):
        alphas.append(s @ q / (s @ y))
        q -= alphas[-1] * y
    s, y = pairs[-1]
    r = s @ y / (y @ (y / P)) * q / P
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        r += s * (alpha - y @ r / (s @ y))
    return r


# one pair, some, a full buffer, and buffers that were overwritten once and twice
@pytest.mark.parametrize("count", [1, 5, PAIRS, PAIRS + 3, 2 * PAIRS + 7])
def test_the_direction_is_that_of_the_two_loop_recursion(count):
    pairs, g, P = random_pairs(count)
    found = direction(remember(pairs), g, P, pairs[-1][0])
    np.testing.assert_allclose(found.p, two_loop_recursion(pairs[-PAIRS:], g, P), rtol=1e-8)
    assert found.slope == pytest.approx(g @ found.p)


def test_the_direction_is_that_of_the_inverse_matrix():
    pairs, g, P = random_pairs(6)
    s, y = pairs[-1]
    eta = s @ y / (y @ (y / P))
    found = direction(remember(pairs), g, P, s)
    np.testing.assert_allclose(found.p, inverse_bfgs(pairs, np.diag(eta / P)) @ g, rtol=1e-9)
    assert found.eta == pytest.approx(eta)


def test_without_pairs_the_direction_is_the_scaled_gradient():
    _, g, P = random_pairs(1)
    found = direction(Memory.empty(g), g, P, 0 * g)
    np.testing.assert_allclose(found.p, g / P, rtol=1e-15)
    assert (found.eta, found.gamma) == (1, 0)


def test_pairs_without_positive_curvature_are_left_out():
    """Their rows are empty: the direction is that of the other pairs."""
    pairs, g, P = random_pairs(6)
    s, y = pairs[2]
    negative = [*pairs[:2], (s, -y), *pairs[3:]]
    found = direction(remember(negative), g, P, pairs[-1][0])
    others = pairs[:2] + pairs[3:]
    np.testing.assert_allclose(found.p, two_loop_recursion(others, g, P), rtol=1e-9)


def test_after_a_step_without_curvature_the_next_one_is_longer():
    pairs, g, P = random_pairs(4)
    last = 100 * pairs[-1][0]
    memory = remember([*pairs, (last, -last)])
    assert memory.is_flat
    found = direction(memory, g, P, last)
    expected = two_loop_recursion(pairs, g, P)
    length = np.sqrt(P @ last**2)
    assert np.sqrt(P @ expected**2) < length
    np.testing.assert_allclose(
        found.p / np.sqrt(P @ found.p**2), expected / np.sqrt(P @ expected**2)
    )
    assert np.sqrt(P @ found.p**2) == pytest.approx(GROWTH * length)


def test_the_last_pair_may_be_overwritten_by_steps_without_curvature():
    pairs, g, P = random_pairs(1)
    memory = remember(pairs)
    for _ in range(PAIRS):
        memory.add(Pair.of(g, -g))
    found = direction(memory, g, P, 0 * g)
    np.testing.assert_allclose(found.p, g / P)


@pytest.mark.parametrize("count", [3, 9])
def test_probes_are_pairs(count):
    pairs, g, P = random_pairs(count)
    s, y = pairs[1]
    pairs[1] = s, -y  # is left out
    probes = Probes(np.array([s for s, _ in pairs]), np.array([y for _, y in pairs]))
    found = direction(Memory.of_probes(g, probes), g, P, 0 * g)
    used = [pairs[0], *pairs[2:]]
    np.testing.assert_allclose(found.p, two_loop_recursion(used, g, P), rtol=1e-9)


def test_the_memory_of_long_vectors_has_fewer_pairs():
    assert len(Memory.empty(np.zeros(9_999)).steps) == PAIRS
    assert len(Memory.empty(np.zeros(10_000)).steps) == 11


# ---------------------------------------------------------------- the preconditioner


def test_the_secant_diagonal_is_that_of_the_bfgs_matrix():
    pairs, _, D = random_pairs(1)
    s, y = pairs[0]
    B = np.diag(D) - np.outer(D * s, D * s) / (s @ (D * s)) + np.outer(y, y) / (s @ y)
    assert np.diag(B).min() > 0
    np.testing.assert_allclose(secant_diagonal(D, Pair.of(s, y)), np.diag(B), rtol=1e-12)
    assert secant_diagonal(D, Pair.of(s, -y)) is D


def test_the_first_step_moves_coordinates_by_a_tenth_at_most():
    x, g = np.array([1.0, -20.0, 0.0]), np.array([3.0, 5.0, 0.001])
    step = first_step(x, g)
    sizes = np.maximum(abs(x), 1e-3 * np.sqrt(np.mean(x**2)))
    assert np.max(abs(step) / sizes) == pytest.approx(0.1)
    np.testing.assert_allclose(step / g, step[0] / g[0])
    assert np.linalg.norm(first_step(0 * x, g)) == pytest.approx(1)


# ---------------------------------------------------------------- the line search


def search_from(f, x, p, **options):
    """Return what `decreases` says of the trial x - p, for value and gradient f."""
    ends = [Evaluation(at, *map(np.asarray, f(at))) for at in (x, x - p)]
    ends = [at._replace(value=at.value[()]) for at in ends]
    slope = ends[0].gradient @ p
    return line_search.decreases(
        line_search.Search(p, slope, 1.0, **options), 1.0, *ends, resolution=1.0
    )


def test_a_step_must_achieve_a_share_of_the_predicted_decrease():
    def bowl(x):
        return x @ x, 2 * x

    x = np.array([1.0, 2.0])
    assert search_from(bowl, x, x) == (True, 0)
    assert not search_from(bowl, x, 2 * x)[0]  # as high as before
    assert not search_from(bowl, x, (2 - 1e-5) * x)[0]  # a decrease below the share
    assert search_from(bowl, x, (2 - 1e-3) * x)[0]


def test_where_rounding_hides_the_decrease_slopes_decide():
    """1 + x^2 near 0: the value is one for all x below 1e-8, the gradient is not."""

    def valley(x):
        return 1 + x @ x + 2 * np.finfo(float).eps * (abs(x[0]) < 4e-9), 2 * x

    x = np.array([8e-9])
    accepted, value = search_from(valley, x, x)
    assert accepted
    assert value == 1  # and not 1 + 2 eps
    assert not search_from(valley, x, 4 * x)[0]  # the slope at the end is steeper
    assert not search_from(valley, x, x, leaves_saddle=True)[0]


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
        pairs.append((x - points[-1], gradient(x) - g))
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
    y = g - LOGISTIC.gradient(c)
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
    assert "the given diagonal" in ends.summary


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
    assert peak / (8 * d) < 42  # two are those of the function
    assert left / (8 * d) < 3  # the run itself is freed
