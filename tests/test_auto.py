"""Auto: on quadratics conjugate gradients, elsewhere the best step of a span, always a decrease."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg

import cfgd
from cfgd.bench.cases import smooth
from cfgd.bench.problems import PROBLEMS
from problems import BOWL, X as TALL, Y as TALL_Y, identity, ill_conditioned, wave

GAS = Path(__file__).parents[2] / "shared/data/gas.csv.gz"
RECORD = {"x": identity, "eta": "eta", "gamma": "gamma"}
EPS = np.finfo(float).eps


_value_and_gradient = eqx.filter_jit(lambda fn, x: jax.value_and_grad(fn)(x))


def seen_at(fn, x):
    """Value and gradient in float64; functions that differ in their numbers share a compilation."""
    with jax.enable_x64(True):
        value, gradient = _value_and_gradient(fn, jnp.asarray(x))
        return float(value), np.asarray(gradient)


# ---------------------------------------------------------------- quadratics: NumPy's own loop


def jacobi_cg(A, b, x, iterations):
    """Conjugate gradients for Ax + b = 0, preconditioned by diag(A): x_0, ..., x_iterations."""
    D, points = np.diag(A), [x]
    r = -(A @ x + b)
    z = r / np.where(D > 0, D, 1)
    p, rz = z, r @ z
    for _ in range(iterations):
        Ap = A @ p
        step = rz / (p @ Ap)
        x, r = x + step * p, r - step * Ap
        z = r / np.where(D > 0, D, 1)
        rz, old = r @ z, rz
        p = z + rz / old * p
        points.append(x)
    return np.array(points)


def system(kind):
    """objective, A, b, x0 of a quadratic whose scales differ from coordinate to coordinate."""
    random = np.random.default_rng(5)
    m, d = {"quadratic": (40, 25), "tall": (40, 25), "wide": (15, 25), "sparse": (60, 25)}[kind]
    X = random.normal(size=(m, d)) * np.geomspace(0.1, 10, d)
    if kind == "sparse":
        X[random.random(X.shape) < 0.7] = 0.0
    y, x0 = random.normal(size=m), random.normal(size=d)
    A, b = X.T @ X, -X.T @ y
    given = scipy.sparse.csr_array(X) if kind == "sparse" else X
    objective = cfgd.Quadratic(A, b) if kind == "quadratic" else cfgd.LeastSquares(given, y)
    return objective, A, b, x0


@pytest.mark.parametrize("kind", ["quadratic", "tall", "wide", "sparse"])
def test_quadratics_are_jacobi_preconditioned_conjugate_gradients(kind):
    objective, A, b, x0 = system(kind)
    ends = cfgd.minimize(objective, x0, cfgd.Auto(), record=RECORD, max_iterations=10)
    expected = jacobi_cg(A, b, x0, 10)
    np.testing.assert_allclose(ends.history["x"], expected, rtol=1e-8, atol=1e-8)
    # the same steps by the numbers in the history: the fractional direction in coordinates of D
    x, eta, gamma = (ends.history[name] for name in ("x", "eta", "gamma"))
    for k in range(9):
        terminal = x[k - 1] if k else x[0]
        d = (A @ x[k] + b) / np.diag(A) + gamma[k + 1] * (x[k] - terminal)
        np.testing.assert_allclose(x[k + 1], x[k] - eta[k + 1] * d, rtol=1e-7, atol=1e-9)
    assert np.isnan(eta[0])
    assert gamma[1] == 0
    assert np.all(gamma[2:] < 0)  # momentum


@pytest.mark.parametrize("seed", range(5))
def test_iterations_on_the_papers_construction(seed):
    problem, _, minimiser = ill_conditioned(seed)
    x0, scale = problem.x0, 1 / np.sqrt(np.diag(problem.A))
    scaled, right = scale[:, None] * problem.A * scale, -scale * problem.b
    seen = []
    keep = {"rtol": 0, "maxiter": 80, "callback": lambda u: seen.append(u.copy())}
    scipy.sparse.linalg.cg(scaled, right, x0 / scale, **keep)
    theirs = 1 + np.flatnonzero([np.linalg.norm(scale * u - minimiser) < 1e-8 for u in seen])[0]
    ends = cfgd.minimize(problem.objective, x0, tolerance=0.0, max_iterations=80, record=RECORD)
    errors = np.linalg.norm(ends.history["x"] - minimiser, axis=1)
    ours = np.flatnonzero(errors < 1e-8)[0]
    assert ours <= 1.3 * theirs


def nearest(A, b, x0):
    """The solution of Ax + b = 0 nearest to x0 in the norm of D, by the pseudoinverse."""
    D = np.diag(A)
    scale = 1 / np.sqrt(np.where(D > 0, D, 1))
    return x0 - scale * (np.linalg.pinv(scale[:, None] * A * scale) @ (scale * (A @ x0 + b)))


@pytest.mark.parametrize("kind", ["singular", "tall", "wide", "sparse", "zero column"])
def test_singular_systems_give_the_nearest_solution(kind):
    random = np.random.default_rng(3)
    scales = np.array([1.0, 4.0, 0.3, 2.0, 1.5, 0.7])
    X = random.normal(size=(4, 6)) * scales
    if kind == "tall":
        X = random.normal(size=(20, 3)) @ random.normal(size=(3, 6)) * scales
    if kind == "zero column":
        X[:, 2] = 0
    y, x0 = random.normal(size=len(X)), random.normal(size=6)
    A, b = X.T @ X, -X.T @ y
    given = scipy.sparse.csr_array(X) if kind == "sparse" else X
    objective = cfgd.Quadratic(A, b) if kind == "singular" else cfgd.LeastSquares(given, y)
    ends = cfgd.minimize(objective, x0, tolerance=1e-10)
    np.testing.assert_allclose(ends.x, nearest(A, b, x0), rtol=1e-6, atol=1e-7)
    assert "singular" in ends.summary
    assert "nearest to x0" in ends.summary


def test_the_chosen_numbers_are_in_the_info_of_a_step():
    """x - eta (D^-1 g + gamma (x - c)), c being the point before, with the numbers of the info."""
    objective, A, b, x0 = system("quadratic")
    points, infos = [x0], []
    with jax.enable_x64(True):
        state = cfgd.Auto().start(objective, jnp.asarray(x0))
        for _ in range(3):
            state, info = cfgd.Auto().step(objective, state)
            points.append(np.asarray(state.point.x))
            infos.append(info)
    for k in (1, 2):
        x, eta, gamma = points[k], float(infos[k].eta), float(infos[k].gamma)
        assert gamma < 0
        d = (A @ x + b) / np.diag(A) + gamma * (x - points[k - 1])
        np.testing.assert_allclose(points[k + 1], x - eta * d, rtol=1e-9)


def test_regular_systems_are_not_called_singular():
    problem, _, _ = ill_conditioned(0)
    assert "singular" not in cfgd.minimize(problem.objective, problem.x0).summary
    ridge = cfgd.LeastSquares(TALL[:2], TALL_Y[:2], l2=0.1)
    assert "singular" not in cfgd.minimize(ridge, np.zeros(3)).summary


@pytest.mark.skipif(not GAS.exists(), reason="the gas data is not here")
def test_gas_data():
    table = np.loadtxt(GAS, delimiter=",")
    table = (table - table.mean(0)) / table.std(0)
    X, y = table[:, :-1], table[:, -1]
    minimiser = np.linalg.lstsq(X, y, rcond=None)[0]
    x0 = np.random.default_rng(0).uniform(-1, 1, 128)
    ends = cfgd.minimize(
        cfgd.LeastSquares(X, y), x0, tolerance=0.0, max_iterations=4000, record={"x": identity}
    )
    errors = np.linalg.norm(ends.history["x"] - minimiser, axis=1)
    assert np.flatnonzero(errors <= 1e-5)[0] <= 2500
    assert errors.min() <= 1e-8
    assert np.linalg.norm(ends.x - minimiser) <= 1e-7


# ---------------------------------------------------------------- general objectives: the step


def span_walk(value, gradient, hessian, x, iterations):
    """The iteration where every whole step is taken, as one quadratic model in the norm of P.

    P = diag(H). On the steps the model is what the gradients have shown; the new direction adds
    what couples it to them and, as Schur complement, the curvature of the last change.
    """
    points, changes, g = [x], [], gradient(x)
    for _ in range(iterations):
        P = np.diag(hessian(x))
        steps = list(np.diff(np.array(points), axis=0)[::-1])
        basis, images = [], []
        for b, image in zip([*steps, g / P], [*changes[::-1], np.zeros_like(x)], strict=True):
            for q, other in zip(basis, images, strict=True):
                part = b @ (P * q)
                b, image = b - part * q, image - part * other
            length = np.sqrt(b @ (P * b))
            basis.append(b / length)
            images.append(image / length)
        Q, n = np.array(basis), len(steps)
        among = Q[:n] @ np.reshape(images[:n], (n, x.size)).T
        curvatures, axes = np.linalg.eigh((among + among.T) / 2)
        among = (axes * np.abs(curvatures)) @ axes.T  # means along old steps may be indefinite
        coupling = np.reshape(images[:n], (n, x.size)) @ Q[n]
        sigma = changes[-1] @ (changes[-1] / P) / (changes[-1] @ steps[0]) if n else 1.0
        last = sigma + coupling @ np.linalg.solve(among, coupling)
        model = np.block([[among, coupling[:, None]], [coupling[None], np.array([[last]])]])
        x = x - Q.T @ np.linalg.solve(model, Q @ g)
        assert value(x) < value(points[-1]) - 1e-3 * (g @ (points[-1] - x))  # chosen to be so
        new = gradient(x)
        points.append(x)
        changes.append(new - g)
        g = new
    return np.array(points)


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
    return cfgd.minimize(LOGISTIC.objective, LOGISTIC.x0, record=RECORD)


def test_the_step_is_the_best_of_the_span(logistic_run):
    expected = span_walk(LOGISTIC.value, LOGISTIC.gradient, LOGISTIC.hessian, LOGISTIC.x0, 5)
    np.testing.assert_allclose(logistic_run.history["x"][:6], expected, rtol=1e-9, atol=1e-10)
    # with one terminal the numbers in the history are the step
    x, eta, gamma = (logistic_run.history[name] for name in ("x", "eta", "gamma"))
    for k in range(2):
        d = LOGISTIC.gradient(x[k]) / np.diag(LOGISTIC.hessian(x[k]))
        d = d + gamma[k + 1] * (x[k] - x[0])
        np.testing.assert_allclose(x[k + 1], x[k] - eta[k + 1] * d, rtol=1e-9, atol=1e-10)
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


# ---------------------------------------------------------------- general objectives: the end


def saddle(x):
    """Indefinite around 0, with cross terms; minima at x_0 = +-a."""
    return x[0] ** 4 - x[0] ** 2 + x[1] ** 2 + 0.5 * x[0] * x[1] + 0.2 * x[0] ** 2 * x[1]


SMALL = ["Rosenbrock 2", "Powell singular", "Wood", "Beale", "Helical valley", "Brown badly scaled"]
STARTS = {name: PROBLEMS[name].x0 for name in SMALL} | {"saddle": np.array([0.01, 0.3])}


class OneOf(eqx.Module):
    """The small problems as one function of four coordinates: one compilation for all."""

    number: jax.Array | np.ndarray

    def __call__(self, x):
        functions = [lambda x, name=name: PROBLEMS[name](x[: STARTS[name].size]) for name in SMALL]
        return jax.lax.switch(self.number, [*functions, saddle], x)


def small(name):
    number = np.asarray(list(STARTS).index(name), np.int32)
    x0 = np.zeros(4)
    x0[: STARTS[name].size] = STARTS[name]
    return OneOf(number), x0


def lbfgs(fn, x0):
    options = {"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-10, "ftol": 0.0}
    return scipy.optimize.minimize(
        lambda x: seen_at(fn, x), x0, jac=True, method="L-BFGS-B", options=options
    )


@pytest.mark.parametrize("name", STARTS)
def test_small_problems_decrease_and_are_solved(name):
    fn, x0 = small(name)
    ends = cfgd.minimize(fn, x0, tolerance=1e-10)
    assert np.all(np.diff(ends.history["value"]) <= 0)
    assert ends.success, ends.message
    g, g0 = seen_at(fn, ends.x)[1], seen_at(fn, x0)[1]
    assert np.linalg.norm(g) <= 1.01e-10 * np.linalg.norm(g0)
    theirs = lbfgs(fn, x0)
    assert ends.value <= theirs.fun + 1e-8 * max(1, abs(theirs.fun))


@pytest.mark.parametrize(("name", "seed"), [("Beale", 1), ("Beale", 6), ("Biggs", 4)])
def test_an_indefinite_start_does_not_run_off_along_a_valley(name, seed):
    case = smooth(name, seed)
    assert np.linalg.eigvalsh(jax.hessian(case.fn)(case.x0))[0] < 0
    ends = cfgd.minimize(case.fn, case.x0)
    assert ends.success
    assert ends.value < 1e-2
    assert ends.iterations < 1000


def test_slopes_go_on_where_rounding_hides_the_decrease():
    """At the local minimum f = 2.8e-5 is known to 1e-18, and |g|^2 is as small."""
    case = smooth("Trigonometric 10", 0)
    ends = cfgd.minimize(case.fn, case.x0, tolerance=1e-10)
    assert ends.success
    assert ends.iterations < 100
    assert np.all(np.diff(ends.history["value"]) <= 0)
    assert ends.value == seen_at(case.fn, ends.x)[0]


def test_evaluations_are_the_looks_that_were_taken():
    looks = []

    def watched(x):
        jax.debug.callback(lambda _: looks.append(1), x[0])
        return PROBLEMS["Rosenbrock 2"](x)

    taken, said = [], []
    for iterations in (5, 12, 25):
        looks.clear()
        ends = cfgd.minimize(watched, [-1.2, 1.0], tolerance=0.0, max_iterations=iterations)
        jax.effects_barrier()
        taken.append(len(looks))
        said.append(ends.evaluations)
    np.testing.assert_array_equal(np.diff(taken), np.diff(said))
    assert taken[-1] > taken[0] + 20  # some steps were shortened


def test_rosenbrock_in_100_dimensions():
    problem = PROBLEMS["Rosenbrock 100"]
    ends = cfgd.minimize(problem, problem.x0)
    assert ends.success
    np.testing.assert_allclose(ends.x, 1.0, rtol=1e-4)
    assert np.all(np.diff(ends.history["value"]) <= 0)
    assert "span" in ends.summary


def test_a_network():
    z = np.linspace(-1, 1, 40)
    network = cfgd.ShallowNetwork(z, np.sin(5 * z), 8)
    x0 = network.init(1)
    ends = cfgd.minimize(network, x0, max_iterations=1500)
    assert np.all(np.diff(ends.history["value"]) <= 0)
    assert ends.value < 1e-3 * network.value(x0)
    assert "Gauss-Newton" in ends.summary


def test_a_local_objective_is_walked_with_its_own_diagonal():
    local = cfgd.Local(LOGISTIC.objective, curvature="gauss_newton")
    ends = cfgd.minimize(local, LOGISTIC.x0)
    assert ends.success
    assert np.linalg.norm(LOGISTIC.gradient(ends.x)) < 1e-6
    assert "the given diagonal" in ends.summary


def test_float32_stays_float32():
    ends = cfgd.minimize(wave, np.array([1.6, -1.2], np.float32), tolerance=1e-5)
    assert ends.x.dtype == np.float32
    assert ends.success
    assert np.linalg.norm(seen_at(wave, ends.x.astype(float))[1]) < 1e-4
    assert np.all(np.diff(ends.history["value"]) <= 0)


def tree_wave(tree):
    return wave(jnp.stack([tree["a"], tree["b"][0]]))


def test_pytrees():
    tree = {"a": np.array(1.6), "b": np.array([-1.2])}
    ends = cfgd.minimize(tree_wave, tree)
    assert ends.success
    assert ends.x["a"].shape == ()
    x = np.array([ends.x["a"], ends.x["b"][0]])
    np.testing.assert_allclose(x, lbfgs(wave, np.array([1.6, -1.2])).x, rtol=1e-5)


def test_a_start_at_a_saddle_ends_there_with_a_true_message():
    fn, x0 = small("saddle")
    ends = cfgd.minimize(fn, 0 * x0)
    assert ends.iterations == 0
    assert ends.gradient_norm == 0
    np.testing.assert_array_equal(ends.x, 0 * x0)
    assert "norm" in ends.message  # says what was looked at, and claims no minimum
    assert "minimum" not in ends.message


class Mixed(eqx.Module):
    """Five kinds of smooth functions of s * x, convex and not, bounded below."""

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


@pytest.mark.parametrize("number", range(200))
def test_random_problems_end_with_a_true_message(number):
    fn, x0 = mixed(number)
    ends = cfgd.minimize(fn, x0, max_iterations=3000)
    assert np.all(np.diff(ends.history["value"]) <= 0)
    (value, g), (_, g0) = seen_at(fn, ends.x), seen_at(fn, x0)
    assert ends.value == pytest.approx(value, rel=1e-12)
    assert ends.gradient_norm == pytest.approx(np.linalg.norm(g), rel=1e-3, abs=1e-12)
    if ends.success:
        assert np.linalg.norm(g) <= 1.001e-8 * np.linalg.norm(g0)
    elif ends.status is cfgd.Status.stalled:
        lengths = np.geomspace(1e-12, 1e3, 60)
        lowest = min(seen_at(fn, ends.x - t * g)[0] for t in lengths)
        assert lowest >= ends.value - 50 * EPS * abs(ends.value)
    else:
        assert ends.status is cfgd.Status.max_iterations
        assert ends.iterations == 3000


# ---------------------------------------------------------------- what a user sees


def test_no_method_is_auto():
    ends, again = (cfgd.minimize(BOWL.objective, BOWL.x0, m) for m in (None, cfgd.Auto()))
    np.testing.assert_array_equal(ends.x, again.x)
    assert ends.how == again.how
    assert ends.how.startswith("Auto")


@pytest.mark.parametrize(
    "method",
    [
        cfgd.Auto(),
        cfgd.GradientDescent(),
        cfgd.AdaptiveTerminal(gamma=-0.25),
        cfgd.NonAdaptive(BOWL.x0, gamma=0.4),
        cfgd.AdaptiveOrder([cfgd.Stage(20, gamma=0.3), cfgd.Stage(40, gamma=0.0)], BOWL.x0),
    ],
    ids=lambda method: type(method).__name__,
)
def test_every_solution_says_in_one_line_what_was_done(method):
    ends = cfgd.minimize(BOWL.objective, BOWL.x0, method, max_iterations=30)
    assert "\n" not in ends.summary
    assert type(method).__name__ in ends.summary or "radient descent" in ends.summary
    assert f"{ends.iterations} iterations" in ends.summary
    assert f"{ends.evaluations:g} gradients" in ends.summary
    assert ends.summary.endswith(ends.status.name)
