"""Whole runs on every objective: fits that others make too, networks, and the product of all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from sklearn.linear_model import LogisticRegression

import cfgd
from cfgd import Status
from cfgd.solve.run import Run
from objectives import COUNTS, FORMATS, LABELS, LOSSES, W0, WEIGHTS, X, Y, wave
from problems import few, look_on, quick

# ---------------------------------------------------------------------------- fits

DATA = np.random.default_rng(5)
FEATURES = DATA.normal(size=(60, 5)) * [0.4, 1.0, 1.7, 0.8, 1.2] + [0.3, 0.0, -0.2, 0.1, 0.0]
FEATURES[:, 3] = 0.0  # says nothing: its coefficient stays where it is
TRUTH = np.array([1.5, -0.8, 0.3, 0.9, -0.5])
LINE = FEATURES @ TRUTH
CHANCES = DATA.uniform(size=60)
YES = (scipy.special.expit(LINE) > CHANCES).astype(int)
EVENTS = DATA.poisson(np.exp(0.5 * LINE))
HEIGHTS = LINE + 0.3 * DATA.standard_t(1.5, size=60)
TIMES = DATA.uniform(0.5, 2, 60)
METHOD = cfgd.AdaptiveTerminal(gamma=-0.1, nodes=5)


def solved(objective):
    """To the accuracy that the values allow: their rounding hides smaller gradients."""
    end = cfgd.minimize(objective, np.zeros(5), METHOD, tolerance=1e-10)
    assert end.status in (Status.converged, Status.stalled)
    assert end.iterations < 500
    assert end.x[3] == 0
    return end


LOGISTIC = {  # labels, weights, penalty
    "0/1": (YES, None, 0.7),
    "-1/1": (2 * YES - 1, None, 0.7),
    "weights": (YES, TIMES, 2.5),
}


@pytest.mark.parametrize(("labels", "weights", "l2"), quick(LOGISTIC, ["-1/1", "weights"]))
def test_a_logistic_fit_has_the_coefficients_of_scikit_learn(labels, weights, l2):
    other = LogisticRegression(C=1 / l2, fit_intercept=False, tol=1e-12, max_iter=10_000)
    other.fit(FEATURES, labels, weights)
    end = solved(cfgd.LinearModel(FEATURES, labels, l2=l2, sample_weight=weights))
    np.testing.assert_allclose(end.x, other.coef_[0], rtol=0, atol=1e-6)


def poisson_parts(w):
    rate = np.exp(FEATURES @ w)
    return np.sum(rate - EVENTS * (FEATURES @ w)), FEATURES.T @ (rate - EVENTS)


def huber_parts(w):
    r = FEATURES @ w - HEIGHTS
    return np.sum(scipy.special.huber(1.0, r)), FEATURES.T @ np.clip(r, -1, 1)


SCIPY = {
    "poisson": ("poisson", EVENTS, poisson_parts),
    "huber": ("huber", HEIGHTS, huber_parts),
}


@pytest.mark.parametrize(("loss", "y", "parts"), SCIPY.values(), ids=SCIPY)
def test_a_fit_has_the_coefficients_of_scipys_minimiser(loss, y, parts):
    other = scipy.optimize.minimize(
        parts, np.zeros(5), jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-9}
    )
    assert np.max(np.abs(parts(other.x)[1])) < 1e-6
    end = solved(cfgd.LinearModel(FEATURES, y, loss))
    np.testing.assert_allclose(end.x, other.x, rtol=0, atol=1e-6)
    np.testing.assert_allclose(end.value, other.fun, rtol=1e-12)


# ---------------------------------------------------------------------------- NetworkStep

UNITS, NODES, ALPHA = 3, 4, 0.3
Z = np.linspace(-1, 1, 8) ** 3 + 0.1
TARGET = np.sin(4 * Z) + 0.2
CANDIDATES = [t * 10.0**-k for k in range(1, 9) for t in (1, 0.75, 0.5, 0.25)]


def layers(x):
    a_1, a_2, a_3 = np.split(x, 3)
    inside = np.outer(Z, a_1) + a_2
    phi = np.tanh(inside)
    return a_3, phi, phi @ a_3 - TARGET


def network_value(x):
    return np.sum(layers(x)[2] ** 2) / 2


def network_slopes(x):
    """The gradient, and the diagonal of the Hessian."""
    a_3, phi, r = layers(x)
    slope, bend = 1 - phi**2, -2 * phi * (1 - phi**2)
    by = np.stack([slope * Z[:, None], slope, phi / np.where(a_3 == 0, 1, a_3)]) * a_3
    twice = np.stack([bend * Z[:, None] ** 2, bend, 0 * phi]) * a_3
    first = np.einsum("i,kij->kj", r, by)
    return first.ravel(), (np.sum(by**2, 1) + np.einsum("i,kij->kj", r, twice)).ravel()


def fractional(x, c, alpha, gamma):
    """d with SciPy's nodes, one coordinate moved at a time."""
    u, w = scipy.special.roots_jacobi(NODES, -alpha, 0.0)
    beta = gamma + (1 - alpha) / (2 - alpha)
    d = np.zeros(x.size)
    for j in range(x.size):
        for node, weight in zip((1 + u) / 2, w / w.sum(), strict=True):
            t = x.copy()
            t[j] = c[j] + node * (x[j] - c[j])
            first, second = network_slopes(t)
            d[j] += weight * (first[j] + beta * (x[j] - c[j]) * second[j])
    return d


def network_step(x, d):
    """Erratum 8's <g, d>/(d'Ad) for the output layer; with it, the best candidate for the other."""
    hidden = np.arange(x.size) < 2 * UNITS
    g, (_, phi, _) = network_slopes(x)[0], layers(x)
    out = d[~hidden]
    output = g[~hidden] @ out / (out @ (phi.T @ phi) @ out)
    tried = [network_value(x - np.where(hidden, eta, output) * d) for eta in CANDIDATES]
    first, second = np.sort(tried)[:2]
    assert second - first > 1e-6  # no tie: the best candidate is known
    return CANDIDATES[int(np.argmin(tried))], output


STARTS = {seed: np.random.default_rng(seed).normal(size=3 * UNITS) for seed in (0, 4, 30)}
PAST = np.random.default_rng(99).normal(size=3 * UNITS)
STEPPED = {  # method, gamma of the direction; None is gradient descent
    "gradient descent": (cfgd.GradientDescent(cfgd.NetworkStep()), None),
    "adaptive terminal": (
        cfgd.AdaptiveTerminal(ALPHA, gamma=0.3, past=PAST, nodes=NODES, step=cfgd.NetworkStep()),
        0.3,
    ),
}


def identity(x):
    return x


@pytest.mark.parametrize("seed", few(STARTS, 2))
@pytest.mark.parametrize(("method", "gamma"), STEPPED.values(), ids=STEPPED)
def test_a_network_step_is_exact_outside_and_the_best_of_32_inside(method, gamma, seed):
    network = cfgd.ShallowNetwork(Z, TARGET, UNITS)
    end = cfgd.minimize(
        network, STARTS[seed], method, max_iterations=3, tolerance=0, record={"x": identity}
    )
    x, c = STARTS[seed], PAST
    for got in end.history["x"][1:]:
        g, _ = network_slopes(x)
        d = g if gamma is None else fractional(x, c, ALPHA, gamma)
        if gamma is not None:  # otherwise c = x would be taken
            assert g[: 2 * UNITS] @ d[: 2 * UNITS] > 0
        inside, output = network_step(x, d)
        eta = np.where(np.arange(x.size) < 2 * UNITS, inside, output)
        np.testing.assert_allclose((x - got) / d, eta, rtol=1e-6)
        x, c = x - eta * d, x
        np.testing.assert_allclose(got, x, rtol=1e-10, atol=1e-10)


def test_the_best_of_32_is_not_always_the_same():
    best = {network_step(x, network_slopes(x)[0])[0] for x in STARTS.values()}
    assert len(best) > 1
    assert max(best) < 0.1


@pytest.mark.parametrize(("method", "gamma"), STEPPED.values(), ids=STEPPED)
def test_a_shallow_network_trains(method, gamma):
    network = cfgd.ShallowNetwork(Z, TARGET, UNITS)
    end = cfgd.minimize(
        network, STARTS[0], method, max_iterations=500, tolerance=0, record={"x": identity}
    )
    values = end.history["value"]
    assert np.all(np.diff(values) <= 1e-12 * values[:-1])
    assert end.value < 0.02 * values[0]
    error = network.predict(end.x, Z) - TARGET
    np.testing.assert_allclose(end.value, error @ error / 2, rtol=1e-10)


# ---------------------------------------------------------------------------- a deep network

SHAPES = [(2, 8), (8, 8), (8, 6), (6, 1)]  # three hidden layers
POINTS = np.random.default_rng(1).uniform(-1, 1, (40, 2))
HILLS = np.sin(3 * POINTS[:, 0]) * POINTS[:, 1] + 0.3


def deep_start():
    rng = np.random.default_rng(2)
    return [
        {"W": rng.normal(size=shape) / np.sqrt(shape[0]), "b": np.zeros(shape[1])}
        for shape in SHAPES
    ]


def deep_loss(layers):
    h = POINTS
    for layer in layers[:-1]:
        h = jnp.tanh(h @ layer["W"] + layer["b"])
    return jnp.mean((h @ layers[-1]["W"] + layers[-1]["b"] - HILLS[:, None]) ** 2) / 2


DEEP = {  # gradients of an iteration: one, two for a probe, and half of one for each try
    "fixed": (cfgd.FixedStep(0.2), 3.0),
    "armijo": (cfgd.ArmijoStep(), 4.0),
}


@pytest.mark.parametrize(("step", "cost"), quick(DEEP, ["armijo"]))
def test_a_deep_network_trains_with_a_local_model_at_four_gradients_an_iteration(step, cost):
    f = cfgd.Local(deep_loss, "hutchinson", key=0)
    method = cfgd.AdaptiveTerminal(gamma=-0.1, step=step)
    x0 = deep_start()
    end = cfgd.minimize(f, x0, method, max_iterations=300)
    assert end.value < 0.3 * end.history["value"][0]
    assert 3 * end.iterations <= end.evaluations <= cost * end.iterations + 3  # and the start
    assert jax.tree.structure(end.x) == jax.tree.structure(x0)
    assert all(
        got.shape == start.shape and got.dtype == np.float64
        for got, start in zip(jax.tree.leaves(end.x), jax.tree.leaves(x0), strict=True)
    )


# ---------------------------------------------------------------------------- the product

ZERO = X.copy()
ZERO[:, 1] = 0.0  # an all-zero column: its coordinate keeps the gradient step, which is 0
SHALLOW = cfgd.ShallowNetwork(Z, TARGET, UNITS)
# objective, start, fixed step, coordinate of an all-zero column
OBJECTIVES = {
    "smooth": (cfgd.Smooth(wave), np.array([1.6, -1.2]), 0.05, None),
    "least squares": (cfgd.LeastSquares(ZERO, Y), W0, 0.02, 1),
    "least squares, csr": (cfgd.LeastSquares(FORMATS["csr"](ZERO), Y, 0, WEIGHTS), W0, 0.02, 1),
    "logistic": (cfgd.LinearModel(ZERO, LABELS, sample_weight=WEIGHTS), W0, 0.05, 1),
    "poisson, csr": (cfgd.LinearModel(FORMATS["csr"](ZERO), COUNTS, "poisson"), W0, 0.02, 1),
    "network": (SHALLOW, STARTS[4], 0.02, None),
    "local, exact": (cfgd.Local(wave), np.array([1.6, -1.2]), 0.05, None),
    "local, gauss_newton": (cfgd.Local(SHALLOW, "gauss_newton"), STARTS[4], 0.02, None),
    "local, hutchinson": (cfgd.Local(SHALLOW, "hutchinson", key=3), STARTS[4], 0.02, None),
}
STEPS = {
    "exact": lambda eta: cfgd.ExactStep(),
    "fixed": cfgd.FixedStep,
    "grid": lambda eta: cfgd.GridStep(),
    "armijo": lambda eta: cfgd.ArmijoStep(),
    "network": lambda eta: cfgd.NetworkStep(),
}
STAGES = [cfgd.Stage(4, 0.4, gamma=0.3), cfgd.Stage(3, gamma=0.05)]
METHODS = {  # of a step; whether it descends on f
    "gradient descent": (cfgd.GradientDescent, True),
    "non-adaptive": (lambda step: cfgd.NonAdaptive(0.3, 0.4, gamma=0.2, nodes=3, step=step), False),
    "adaptive terminal": (
        lambda step: cfgd.AdaptiveTerminal(0.4, gamma=-0.1, nodes=3, step=step),
        True,
    ),
    "adaptive order": (lambda step: cfgd.AdaptiveOrder(STAGES, 0.3, nodes=3, step=step), False),
}
# each objective with each method and each step: steps turn round, so that all pairs occur
TURN = list(STEPS)[:4]
PRODUCT = {
    f"{objective}-{method}-{TURN[(i + k) % 4]}": (objective, method, TURN[(i + k) % 4])
    for i, objective in enumerate(OBJECTIVES)
    for k, method in enumerate(METHODS)
} | {
    f"{objective}-{method}-network": (objective, method, "network")
    for objective, method in [
        ("network", "non-adaptive"),
        ("local, gauss_newton", "adaptive terminal"),
        ("network", "gradient descent"),
    ]
}
# one method for each objective, so that each method and each step is there twice
ONCE = [
    f"{objective}-{method}-{TURN[(i + k) % 4]}"
    for i, objective in enumerate(OBJECTIVES)
    for k, method in enumerate(METHODS)
    if k == i // 2 % 4
]
QUICK = [*ONCE, "network-gradient descent-network"]
ITERATIONS = 10


def callback_of(objective, method):
    """Gradient descent goes by blocks all the same, so that these occur too."""
    return look_on if objective.is_quadratic and method != "gradient descent" else None


@pytest.mark.parametrize(("objective", "method", "step"), quick(PRODUCT, QUICK))
def test_every_objective_runs_with_every_method_and_every_step(objective, method, step):
    f, x0, eta, zero = OBJECTIVES[objective]
    make, descends = METHODS[method]
    end = cfgd.minimize(
        f,
        x0,
        make(STEPS[step](eta)),
        max_iterations=ITERATIONS,
        tolerance=0,
        record={"x": identity},
        callback=callback_of(f, method),
    )
    values, points = end.history["value"], end.history["x"]
    assert points.shape == (end.iterations + 1, x0.size)
    assert isinstance(end.x, np.ndarray)
    assert end.x.dtype == np.float64
    assert np.all(np.isfinite(points))
    np.testing.assert_array_equal(end.history["iteration"], np.arange(end.iterations + 1))
    np.testing.assert_array_equal(points[0], x0)
    np.testing.assert_allclose(values[-1], f.value(points[-1]), rtol=1e-10)
    if descends:
        assert end.status is Status.max_iterations
        assert end.iterations == ITERATIONS
        assert np.all(np.diff(points, axis=0).any(1))  # it moves every time
        assert np.all(np.diff(values) <= 1e-13 * values[0])
        assert end.value < values[0]
    else:
        # stages end by themselves; where f can fall no more, a step by values stalls
        assert end.status in (Status.max_iterations, Status.stages_done, Status.stalled)
        assert np.any(points[-1] != x0)
    if zero is not None:
        np.testing.assert_array_equal(points[:, zero], x0[zero])
    assert end.evaluations > end.iterations


def test_the_product_has_each_objective_with_each_method_and_each_method_with_each_step():
    rows = PRODUCT.values()
    pairs = {(method, step) for _, method, step in rows if step in TURN}
    assert len(pairs) == len(METHODS) * len(TURN)
    assert len({row[:2] for row in rows}) == len(OBJECTIVES) * len(METHODS)


def test_the_quick_ones_have_each_objective_and_twice_each_method_and_each_step():
    objectives, methods, steps = zip(*(PRODUCT[name] for name in ONCE), strict=True)
    assert sorted(objectives) == sorted(OBJECTIVES)
    assert min(methods.count(method) for method in METHODS) >= 2
    assert min(steps.count(step) for step in TURN) >= 2


def step_of(name):
    """The step that the product has for an objective and the adaptive terminal: one trace less."""
    return STEPS[TURN[(list(OBJECTIVES).index(name) + 2) % 4]](OBJECTIVES[name][2])


# those whose adaptive terminal is among the quick ones: no compilation more
LOOSE = ["poisson, csr", "network"]
SWEPT = {name: name for name in OBJECTIVES if name not in ("least squares, csr", "local, exact")}


@pytest.mark.parametrize("name", quick(SWEPT, LOOSE))
def test_a_sweep_is_its_runs_one_by_one(name):
    f, x0, _, _ = OBJECTIVES[name]
    step = step_of(name)
    gammas = np.array([-0.2, 0.0, 0.35])
    options = {
        "max_iterations": ITERATIONS,
        "tolerance": 0,
        "record": {"x": identity},
        "callback": callback_of(f, "adaptive terminal"),
    }
    swept = cfgd.sweep(
        f, x0, cfgd.AdaptiveTerminal(0.4, gamma=gammas, nodes=3, step=step), **options
    )
    assert len(swept) == len(gammas)
    for one, gamma in zip(swept, gammas, strict=True):
        alone = cfgd.minimize(
            f, x0, cfgd.AdaptiveTerminal(0.4, gamma=gamma, nodes=3, step=step), **options
        )
        np.testing.assert_allclose(one.history["x"], alone.history["x"], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(one.history["value"], alone.history["value"], rtol=1e-8)
        np.testing.assert_allclose(one.x, alone.x, rtol=1e-8, atol=1e-9)
        assert one.evaluations == alone.evaluations
        assert one.status is alone.status is Status.max_iterations


@pytest.mark.parametrize("name", quick({name: name for name in OBJECTIVES}, LOOSE))
def test_every_objective_converges_to_a_loose_tolerance(name):
    f, x0, _, _ = OBJECTIVES[name]
    step = step_of(name)
    method = cfgd.AdaptiveTerminal(0.4, gamma=-0.1, nodes=3, step=step)
    end = cfgd.minimize(
        f,
        x0,
        method,
        tolerance=0.5,
        max_iterations=500,
        record={"x": identity},
        callback=callback_of(f, "adaptive terminal"),
    )
    assert end.status is Status.converged
    g = np.linalg.norm(f.gradient(end.history["x"][-1]))
    assert g <= 0.5 * np.linalg.norm(f.gradient(x0)) * (1 + 1e-9)


# ---------------------------------------------------------------------------- the cost, said


def cheap(x):
    return jnp.sum(jnp.cosh(x)) + x[0] * x[1]


COST = r"costs about 10000 gradients.*cfgd\.Local\("
COSTLY = {
    "adaptive terminal": cfgd.AdaptiveTerminal(gamma=-0.1),
    "non-adaptive": cfgd.NonAdaptive(0.5, gamma=0.1, step=cfgd.FixedStep(0.1)),
    "adaptive order": cfgd.AdaptiveOrder([cfgd.Stage(2, gamma=0.1)], 0.5),
}


def test_a_costly_direction_is_announced():
    with pytest.warns(UserWarning, match=COST) as seen:
        cfgd.minimize(
            cheap, np.linspace(-1, 1.5, 1000), COSTLY["adaptive terminal"], max_iterations=1
        )
    assert len(seen) == 1
    assert seen[0].filename == __file__


@pytest.mark.parametrize("method", COSTLY.values(), ids=COSTLY)
@pytest.mark.parametrize("run", [cfgd.minimize, cfgd.sweep], ids=["minimize", "sweep"])
def test_a_costly_direction_is_announced_before_it_starts(run, method):
    """As an error the warning ends the call: not even the start has been looked at."""
    looked = []

    def watched(x):
        jax.debug.callback(looked.append, x[0])
        return cheap(x)

    with pytest.raises(UserWarning, match=COST):
        run(watched, np.ones(1000), method, max_iterations=1)
    assert not looked


UNSAID = {  # what costs less than 10,000 gradients a direction
    "gradient descent": (cheap, cfgd.GradientDescent()),
    "exact": (cfgd.Local(cheap), cfgd.AdaptiveTerminal(gamma=-0.1)),
    "hutchinson": (cfgd.Local(cheap, "hutchinson", key=0), cfgd.AdaptiveTerminal(gamma=-0.1)),
    "fewer nodes": (cheap, cfgd.AdaptiveTerminal(gamma=-0.1, nodes=9)),
    "structure": (
        cfgd.LinearModel(np.ones((2, 1000)), [0, 1], l2=1.0),
        cfgd.AdaptiveTerminal(gamma=-0.1),
    ),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("f", "method"), UNSAID.values(), ids=UNSAID)
def test_a_cheap_direction_is_not(monkeypatch, f, method):
    """Warnings are errors. The run itself does not matter."""
    monkeypatch.setattr(Run, "go", lambda run: None)
    cfgd.minimize(f, np.linspace(-1, 1.5, 1000), method, max_iterations=1)


def test_a_costly_local_model_names_the_cheap_ones():
    """Local itself is no help to one who has it already."""
    f = cfgd.Local(lambda x: jnp.sum(x**2), "exact")
    with pytest.raises(UserWarning, match="hutchinson"):
        cfgd.minimize(f, np.ones(10_000), cfgd.AdaptiveTerminal(gamma=-0.1), max_iterations=1)


def test_the_costs_are_those_of_the_losses():
    for loss, row in LOSSES.items():
        f = cfgd.LinearModel(X, row.y, row.given)
        assert f.slopes_cost(5, 4) == (0 if loss == "squared" else 5)  # linear slopes are free
