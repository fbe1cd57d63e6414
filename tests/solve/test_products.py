"""Every objective runs with every method and every step."""

import numpy as np
import pytest
from networks import STARTS, TARGET, UNITS, Z

import cfgd
from cfgd import Status
from objectives import COUNTS, FORMATS, LABELS, W0, WEIGHTS, X, Y, wave
from problems import do_nothing, identity, quick

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
# each method and each step once
ONCE = [
    "local, hutchinson-gradient descent-exact",
    "poisson, csr-adaptive terminal-grid",
    "local, exact-adaptive order-fixed",
    "least squares, csr-non-adaptive-armijo",
]
QUICK = [*ONCE, "network-gradient descent-network"]
ITERATIONS = 10


def callback_of(objective, method):
    """Gradient descent goes by blocks all the same, so that these occur too."""
    return do_nothing if objective.traits.is_quadratic and method != "gradient descent" else None


@pytest.mark.one_case
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


def test_the_quick_ones_have_each_method_and_each_step():
    _, methods, steps = zip(*(PRODUCT[name] for name in ONCE), strict=True)
    assert set(methods) == set(METHODS)
    assert set(steps) == set(TURN)


def step_of(name):
    """The step that the product has for an objective and the adaptive terminal: one trace less."""
    return STEPS[TURN[(list(OBJECTIVES).index(name) + 2) % 4]](OBJECTIVES[name][2])


# its adaptive terminal is among the quick ones: no further compilation
LOOSE = ["poisson, csr"]
SWEPT = {name: name for name in OBJECTIVES if name not in ("least squares, csr", "local, exact")}


@pytest.mark.slow
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
        assert one.evaluations == alone.evaluations
        # random signs follow from the bits of x: what rounding changes in them draws others
        rows = slice(2 if name == "local, hutchinson" else None)
        for what in ("x", "value"):
            np.testing.assert_allclose(
                one.history[what][rows], alone.history[what][rows], rtol=1e-8, atol=1e-9
            )
        if rows.stop is None:
            np.testing.assert_allclose(one.x, alone.x, rtol=1e-8, atol=1e-9)
        assert one.status is alone.status is Status.max_iterations


@pytest.mark.slow
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
