"""What the groups of `cfgd bench` measure, on one problem of each."""

from __future__ import annotations

import time
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd.apps.bench.field import cases, clock, clocked, cutest, estimators, glm, nist
from cfgd.apps.bench.field.projection import Projected
from cfgd.apps.bench.field.standing import ENDED, OURS
from cfgd.apps.data.network_functions import STARTS
from problems import few


def silent(what):
    pass


# ---------------------------------------------------------------------- nist


@pytest.mark.slow
def test_a_regression():
    runs = {run.solver: run for run in nist.measured("DanWood", 1, silent)}
    assert list(runs) == [OURS, "SciPy lm", "SciPy trf"]
    for run in runs.values():
        assert run.solved
        assert run.digits >= 6
        assert 4 <= run.work <= 20
        assert 0 < run.seconds < 5
        assert run.value == pytest.approx(0.0043173084083 / 2, rel=1e-6)
    # a start from which lm ends at the wrong place
    runs = {run.solver: run for run in nist.measured("BoxBOD", 0, silent)}
    assert runs[OURS].solved
    assert not runs["SciPy lm"].solved
    assert runs["SciPy lm"].work == np.inf


def test_jacobians_are_counted():
    tally = nist.Tally()
    ends = cfgd.minimize(nist.Watched(lambda x: jnp.stack([x[0] ** 2 - 2, x[1]]), tally), [1.0, 1])
    jax.effects_barrier()
    # one in each iteration, one for the verdict, one for the covariance
    assert ends.iterations + 1 <= tally.count <= ends.iterations + 3


# ---------------------------------------------------------------------- glm


@pytest.mark.parametrize(("name", "loss"), [("wine", "logistic"), ("diabetes", "poisson")])
def test_scikit_learn_solves_the_same_problem(name, loss):
    given = glm.read(name, "standardised")
    assert given.loss == loss
    objective = glm.model(given)
    start = np.linalg.norm(objective.gradient(np.zeros(given.X.shape[1])))
    for solver in glm.solvers(given):
        w = glm.fitted(given, solver, 1e-8)
        assert np.linalg.norm(objective.gradient(w)) <= 1e-4 * start, solver


def test_data_are_raw_or_standardised_and_have_an_intercept():
    raw, scaled = (glm.read("wine", form) for form in glm.FORMS)
    np.testing.assert_array_equal(raw.X[:, -1], 1)
    np.testing.assert_array_equal(scaled.X[:, -1], 1)
    np.testing.assert_allclose(scaled.X[:, :-1].std(0), 1)
    assert raw.X[:, :-1].std(0).max() > 100
    assert set(raw.y) == {0.0, 1.0}


def test_the_loosest_tolerance_is_found_by_halving():
    asked = []

    def meets(limit):
        return lambda tolerance: asked.append(tolerance) or tolerance <= limit

    assert glm.loosest(meets(1.1e-5)) == pytest.approx(1e-5)
    assert len(asked) <= 7
    assert glm.loosest(meets(2.0)) == 1.0
    assert glm.loosest(meets(1e-16)) == pytest.approx(1e-16)
    assert glm.loosest(meets(1e-17)) is None


def test_a_linear_model():
    runs = {run.solver: run for run in glm.measured("wine", "standardised", silent)}
    assert runs[OURS].solved
    assert runs["newton-cholesky"].solved
    assert runs[OURS].value == pytest.approx(runs["newton-cholesky"].value, rel=1e-9)
    assert runs[OURS].work == runs[OURS].seconds > 0


# ---------------------------------------------------------------------- estimators


@pytest.mark.parametrize(
    ("name", "classes"), few([("digits", 10), ("diabetes", 1), ("cancer, standardised", 1)], 2)
)
def test_the_judge_of_fits_agrees_with_the_core(name, classes):
    given = estimators.read(name)
    W = 0.01 * np.random.default_rng(0).normal(size=(given.X.shape[1] + 1, classes))
    f = cfgd.LinearModel(given.X, given.y, given.loss, estimators.L2, intercept=True)
    x = W if classes > 1 else W[:, 0]
    value, norm = estimators.seen(given, W)
    assert value == pytest.approx(float(f.value(x)), rel=1e-9)
    assert norm == pytest.approx(np.linalg.norm(f.gradient(x)), rel=1e-9)


@pytest.mark.usefixtures("unchecked")
def test_fits_beside_scikit_learn():
    runs = {run.solver: run for run in estimators.beside_scikit_learn("diabetes", silent)}
    assert runs[OURS].solved
    assert runs["cholesky"].solved
    assert runs[OURS].value == pytest.approx(runs["cholesky"].value, rel=1e-9)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", estimators.BY_HAND)
def test_by_hand_is_what_an_estimator_does(monkeypatch, name):
    monkeypatch.setattr(estimators, "ROWS", 300)
    monkeypatch.setattr(estimators, "COLUMNS", 5)
    ours, core = estimators.over_the_core(name, silent)
    assert (ours.solver, core.solver) == (OURS, estimators.CORE)
    assert ours.value == pytest.approx(core.value, rel=1e-8)


def test_calls_are_timed_in_turns():
    called = []
    [(a, first), (b, second)] = clock.timed_together(
        lambda: called.append("a") or time.sleep(0.02) or 1, lambda: called.append("b") or 2
    )
    assert (a, b) == (1, 2)
    assert called[:4] == ["a", "b", "a", "b"]
    assert first > 0.02 > second


# ---------------------------------------------------------------------- networks


def test_the_projected_misfit_and_its_slope():
    z = np.linspace(-1, 1, 30)
    network = cfgd.ShallowNetwork(z, np.sin(4 * z), 3)
    left, w = Projected(network), network.init(0)[:6]
    value, slope = left.value(w)
    assert value == pytest.approx(float(network.value(left.whole(w))), rel=1e-9)
    # no other output weights do better
    assert np.abs(network.gradient(left.whole(w))[6:]).max() < 1e-9
    for j in range(6):
        h = 1e-6 * np.eye(6)[j]
        difference = (left.value(w + h)[0] - left.value(w - h)[0]) / 2e-6
        assert slope[j] == pytest.approx(difference, rel=1e-4, abs=1e-7)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("solver", ["SciPy lm", "variable projection LM"])
def test_a_network_in_time(monkeypatch, solver):
    few = {name: clocked.SOLVERS[name] for name in (OURS, solver)}
    monkeypatch.setattr(clocked, "SECONDS", 0.3)
    monkeypatch.setattr(clocked, "SOLVERS", few)
    start = STARTS["N(0, 1)"]
    case = cases.network("h2", start, 1, 0)
    for run in clocked.measured("h2", start, 0, silent):
        assert run.value < case.objective.value(case.x0) / 2
        assert np.isnan(run.to_reference) or 0 <= run.to_reference <= 0.4
        assert run.measure == "timed loss"
        assert few.pop(run.solver)
    assert not few
    assert pytest.approx(1e-2) == clocked.PAPER


def test_a_clock_keeps_the_least_and_ends_the_run(monkeypatch):
    now = iter([0.0, 0.1, 0.2, 0.3, 0.4, 1.5])
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(now))
    watch = clock.Clock(1.0, reference=2.0)
    for value in (3.0, 2.0, 1.0, np.nan):
        watch.look(value, np.array([value]))
    with pytest.raises(clock.TimeOverError):
        watch.look(0.0, np.zeros(1))
    assert (watch.least, watch.reached) == (1.0, 0.2)
    np.testing.assert_array_equal(watch.x, [1.0])


def test_the_least_of_a_few_times_counts(monkeypatch):
    now = iter([0.0, 0.3, 1.0, 1.1, 2.0, 2.9])
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(now))
    assert clock.timed(lambda: "found") == ("found", pytest.approx(0.1))


# ---------------------------------------------------------------------- cutest


def test_looks_are_counted_to_the_first_small_gradient():
    looks = cutest.Looks(lambda x: (x @ x / 2, x), np.array([1.0]), ends=False)
    for x in (1.0, 1.0, 0.5, 1e-9, 1e-9, 0.5, 1e-10):
        looks(np.array([x]))
    assert (looks.count, looks.first) == (5, 3)
    # a plateau above the start is no solution
    high = cutest.Looks(lambda x: (1 - np.exp(-x @ x), x * np.exp(-x @ x)), np.array([1.0]), False)
    for x in (1.0, 9.0, 0.0):
        high(np.array([x]))
    assert high.first == 3
    ending = cutest.Looks(lambda x: (x @ x / 2, x), np.array([1.0]), ends=True)
    ending(np.array([1.0]))
    with pytest.raises(cutest.EnoughError):
        ending(np.array([0.0]))


def test_a_problem_of_cutest():
    problem = types.SimpleNamespace(
        name="ROSENBR",
        y0=jnp.array([-1.2, 1.0]),
        args=100.0,
        objective=lambda y, a: a * (y[1] - y[0] ** 2) ** 2 + (1 - y[0]) ** 2,
    )
    runs = {run.solver: run for run in cutest.measured(problem, silent)}
    assert all(run.solved for run in runs.values())
    assert 30 < runs[OURS].work < runs[ENDED].work < 100
    assert 30 < runs["L-BFGS-B"].work < 70
    assert runs[OURS].dimension == 2
    assert runs[OURS].error == "converged"
