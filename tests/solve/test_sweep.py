"""A sweep is its runs, setting by setting."""

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd import AdaptiveTerminal, GradientDescent, NonAdaptive, Status
from problems import (
    BOWL,
    PAST,
    TREE,
    WAVE_X0,
    do_nothing,
    few,
    fixed_gd,
    identity,
    pytree_bowl,
    quick,
    stages_of,
    wave,
)

F, X0 = BOWL.objective, BOWL.x0
RECORD = {"x": identity}
GAMMAS = np.array([-0.4, -0.25, 0.0, 0.3])
ETAS = np.array([0.05, 0.11, 0.2, 0.3])
ROWS = np.array([[-0.3, 0.2, 0.1], [0.1, -0.2, 0.0], [0.3, 0.3, -0.2], [-0.1, 0.0, 0.2]])
STARTS = X0 + ROWS
# the methods of a sweep, its starts, and the settings one by one
SWEEPS = {
    "gamma": (AdaptiveTerminal(gamma=GAMMAS), X0, [AdaptiveTerminal(gamma=g) for g in GAMMAS]),
    "list": (
        [AdaptiveTerminal(gamma=g) for g in GAMMAS],
        X0,
        [AdaptiveTerminal(gamma=g) for g in GAMMAS],
    ),
    "x0": (AdaptiveTerminal(gamma=GAMMAS), STARTS, [AdaptiveTerminal(gamma=g) for g in GAMMAS]),
    "alpha and beta": (
        AdaptiveTerminal(GAMMAS + 0.5, beta=GAMMAS),
        X0,
        [AdaptiveTerminal(g + 0.5, beta=g) for g in GAMMAS],
    ),
    "gamma per coordinate": (
        AdaptiveTerminal(gamma=ROWS, past=PAST[:1]),
        X0,
        [AdaptiveTerminal(gamma=row, past=PAST[:1]) for row in ROWS],
    ),
    "past": (
        AdaptiveTerminal(gamma=-0.2, lag=2, past=STARTS[:, None] * [[1], [-1]]),
        X0,
        [AdaptiveTerminal(gamma=-0.2, lag=2, past=[row, -row]) for row in STARTS],
    ),
    "eta": (fixed_gd(ETAS), X0, [fixed_gd(eta) for eta in ETAS]),
    "terminal": (
        NonAdaptive(STARTS, gamma=0.4),
        X0,
        [NonAdaptive(row, gamma=0.4) for row in STARTS],
    ),
    "stages": (stages_of(1 + GAMMAS), X0, [stages_of(1 + gamma) for gamma in GAMMAS]),
}


def assert_same_runs(ends, x0, settings, **options):
    """Setting by setting: x, value, iterations and history of a sweep and of `minimize`."""
    assert len(ends) == len(settings) == 4
    assert ends.x.shape == (4, 3)
    assert ends.history["x"].shape == (4, len(ends.history["iteration"]), 3)
    for i, (end, method) in enumerate(zip(ends, settings, strict=True)):
        run = cfgd.minimize(F, x0[i] if np.ndim(x0) == 2 else x0, method, **options)
        n = len(run.history["iteration"])
        assert end.iterations == run.iterations
        assert end.status is run.status
        assert end.resets == run.resets
        np.testing.assert_allclose(end.x, run.x, rtol=1e-9)
        np.testing.assert_allclose(end.value, run.value, rtol=1e-12)
        labels = np.minimum(end.history["iteration"], run.iterations)
        np.testing.assert_array_equal(labels[:n], run.history["iteration"])
        np.testing.assert_allclose(end.history["x"][:n], run.history["x"], rtol=1e-8)
        np.testing.assert_allclose(end.history["value"][:n], run.history["value"], rtol=1e-9)
        # a run that is over stays where it is while others go on
        waits = end.history["x"][n:]
        np.testing.assert_allclose(waits, np.broadcast_to(run.x, waits.shape), rtol=1e-8)


@pytest.mark.parametrize(("methods", "x0", "settings"), quick(SWEEPS, ["stages"]))
def test_a_sweep_is_its_runs(methods, x0, settings):
    options = {"tolerance": 1e-7, "max_iterations": 60, "record": RECORD, "callback": do_nothing}
    assert_same_runs(cfgd.sweep(F, x0, methods, **options), x0, settings, **options)


@pytest.mark.slow
@pytest.mark.parametrize("every", few([4, 1]))
def test_a_sweep_in_blocks_is_its_runs(every):
    """One setting is over in the middle of a block: the others wait for nothing."""
    methods, x0, settings = SWEEPS["x0"]
    options = {"tolerance": 1e-7, "record": RECORD, "every": every}
    ends = cfgd.sweep(F, x0, methods, **options)
    assert len(set(ends.iterations)) == 4
    assert_same_runs(ends, x0, settings, **options)


@pytest.mark.slow
def test_a_sweep_on_a_function():
    etas = np.array([0.02, 0.05, 0.9])
    ends = cfgd.sweep(wave, WAVE_X0, fixed_gd(etas), max_iterations=50, record=RECORD)
    for end, eta in zip(ends, etas, strict=True):
        run = cfgd.minimize(wave, WAVE_X0, fixed_gd(eta), max_iterations=50, record=RECORD)
        assert end.status is run.status
        assert end.iterations == run.iterations
        np.testing.assert_allclose(end.x, run.x, rtol=1e-12)
    assert [end.status for end in ends] == ends.status
    assert ends.status[2] is Status.nonfinite
    assert ends.message[2].startswith(Status.nonfinite.value)
    np.testing.assert_array_equal(ends.success, [False, False, False])


PYTREES = {
    "past": lambda gamma, c: AdaptiveTerminal(gamma=gamma, nodes=1, past=[c]),
    "terminal": lambda gamma, c: NonAdaptive(c, gamma=gamma, nodes=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("method", quick(PYTREES, ["past"]))
def test_a_sweep_of_a_pytree(method):
    point, options = {"a": np.array([1.0, 3.0]), "b": np.array(-1.0)}, {"max_iterations": 6}
    ends = cfgd.sweep(pytree_bowl, TREE, method([0.1, 0.2], point), **options)
    assert ends.x["a"].shape == (2, 2)
    assert ends.x["b"].shape == (2,)
    run = cfgd.minimize(pytree_bowl, TREE, method(0.2, point), **options)
    np.testing.assert_allclose(ends[1].x["a"], run.x["a"], rtol=1e-12)
    np.testing.assert_allclose(ends[1].x["b"], run.x["b"], rtol=1e-12)
    assert np.all(ends.x["a"][0] != ends.x["a"][1])


def test_rows_are_starts_of_residuals_of_any_shape():
    t = np.linspace(0, 4, 30)
    y = 3 * np.exp(-t)
    f = cfgd.Residuals(lambda p: p[0] * jnp.exp(-p[1] * t) - y)
    ends = cfgd.sweep(f, np.array([[1.0, 1.0], [2.0, 0.5], [4.0, 3.0]]), cfgd.Auto())
    np.testing.assert_allclose(ends.x, [[3.0, 1.0]] * 3, rtol=1e-6)


def test_a_matrix_is_one_start_of_a_function_that_takes_it():
    # x[:, :1] of a row raises an error: nobody can mean rows
    ends = cfgd.sweep(lambda x: jnp.sum((x[:, :1] * x - 1) ** 2), np.ones((3, 2)), cfgd.Auto())
    assert ends.x.shape == (1, 3, 2)


def test_a_matrix_whose_rows_a_function_takes_too_is_one_start_with_a_warning():
    with pytest.warns(UserWarning, match=r"shape \(3, 2\) is one start.*give an `Objective`"):
        ends = cfgd.sweep(lambda x: jnp.sum((x @ x.T - 1) ** 2), np.ones((3, 2)), cfgd.Auto())
    assert ends.x.shape == (1, 3, 2)


def test_rows_are_starts_of_an_objective_with_a_shape():
    class Bowl(cfgd.Objective):
        shape = (2,)

        def value(self, x):
            return jnp.sum(jnp.cosh(x - jnp.array([1.0, -2.0])))

    # without a method the runs are those of Auto
    ends = cfgd.sweep(Bowl(), np.array([[0.0, 0.0], [2.0, 1.0], [1.5, -1.0]]))
    assert ends.how.startswith("Auto: ")
    np.testing.assert_allclose(ends.x, [[1.0, -2.0]] * 3, rtol=1e-6)


def test_settings_of_a_sweep_cannot_be_counted_for_one_run():
    with pytest.raises(TypeError, match=r"^A solution of one setting has no length\.$"):
        len(cfgd.minimize(F, X0, GradientDescent(), max_iterations=7))


AUTO = {
    "quadratic": (F, STARTS),
    "logistic": (
        cfgd.LinearModel(np.array([[1.0, 0.5], [-0.4, 1.1], [0.8, -0.9]]), [0, 1, 1], l2=0.3),
        np.array([[0.0, 0.0], [2.0, -1.0], [-3.0, 0.5], [0.1, 4.0]]),
    ),
}


MANY = {
    f"{name}-{kind}": (*AUTO[name], methods)
    for name in AUTO
    for kind, methods in {"one": cfgd.Auto(), "list": [cfgd.Auto()] * 4}.items()
}


@pytest.mark.parametrize(
    ("f", "starts", "methods"), quick(MANY, ["quadratic-list", "logistic-one"])
)
def test_auto_from_many_starts(f, starts, methods):
    ends = cfgd.sweep(f, starts, methods)
    assert len(ends) == 4
    for end, x0 in zip(ends, starts, strict=True):
        run = cfgd.minimize(f, x0)
        assert end.success
        assert end.iterations == run.iterations
        np.testing.assert_allclose(end.x, run.x, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(end.history["value"][0], f.value(x0))


@pytest.mark.slow
def test_one_setting_runs_from_as_many_starts_as_there_are():
    ends = cfgd.sweep(F, STARTS, AdaptiveTerminal(gamma=-0.2))
    runs = [cfgd.minimize(F, x0, AdaptiveTerminal(gamma=-0.2)) for x0 in STARTS]
    np.testing.assert_array_equal(ends.iterations, [run.iterations for run in runs])


@pytest.mark.slow
def test_a_list_of_one_setting_runs_from_many_starts():
    ends = cfgd.sweep(F, STARTS, [AdaptiveTerminal(gamma=-0.2)])
    np.testing.assert_allclose(ends.x, np.broadcast_to(BOWL.minimiser, (4, 3)), rtol=1e-6)


def test_starts_that_fit_no_setting_are_refused():
    with pytest.raises(ValueError, match=r"x0=\.\.\.\)` must have shape \(3,\) or \(4, 3\)"):
        cfgd.sweep(F, STARTS[:2], AdaptiveTerminal(gamma=GAMMAS))
    with pytest.raises(ValueError, match=r"x0=\.\.\.\)` must have shape \(3,\) or \(n, 3\)"):
        cfgd.sweep(F, STARTS[:, :2], cfgd.Auto())
