"""The runs of each group of `cfgd bench`, on one problem of each."""

from __future__ import annotations

import itertools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd._core.box import Box
from cfgd.apps.bench.field import (
    bounded,
    cases,
    cutest,
    estimators,
    glm,
    networks_timed,
    nist,
    timing,
)
from cfgd.apps.bench.field.instance import AUTO, AUTO_CONVERGED
from cfgd.apps.bench.field.variable_projection import ProjectedNetwork
from cfgd.apps.data.network_functions import STARTS
from cfgd.apps.data.nist import regressions
from problems import few

pytestmark = pytest.mark.slow


def silent(solver):
    pass


# ---------------------------------------------------------------------- nist


@pytest.mark.slow
def test_nist_regression_is_solved():
    runs = {run.solver: run for run in nist.run_solvers("DanWood", 1, silent)}
    assert list(runs) == [AUTO, "SciPy lm", "SciPy trf"]
    for run in runs.values():
        assert run.solved
        assert run.digits >= 6
        assert 4 <= run.work <= 20
        assert run.seconds > 0
        assert run.value == pytest.approx(0.0043173084083 / 2, rel=1e-6)
    # a start from which lm ends at another point
    runs = {run.solver: run for run in nist.run_solvers("BoxBOD", 0, silent)}
    assert runs[AUTO].solved
    assert not runs["SciPy lm"].solved
    assert runs["SciPy lm"].work == np.inf


def test_jacobians_are_counted():
    counter = nist.CallCounter()
    residuals = nist.CountedResiduals(lambda x: jnp.stack([x[0] ** 2 - 2, x[1]]), counter)
    solution = cfgd.minimize(residuals, [1.0, 1])
    jax.effects_barrier()
    # one in each iteration, one for the convergence test, one for the covariance
    assert solution.iterations + 1 <= counter.count <= solution.iterations + 3


# ---------------------------------------------------------------------- glm


@pytest.mark.parametrize(("name", "loss"), [("wine", "logistic"), ("diabetes", "poisson")])
def test_scikit_learn_solves_the_same_problem(name, loss):
    data = glm.load(name, "standardised")
    assert data.loss == loss
    objective = glm.linear_model(data)
    start = np.linalg.norm(objective.gradient(np.zeros(data.X.shape[1])))
    for solver in glm.scikit_learn_solvers(data):
        w = glm.fit_scikit_learn(data, solver, 1e-8)
        assert np.linalg.norm(objective.gradient(w)) <= 1e-4 * start, solver


def test_glm_data_are_raw_or_standardised_with_a_column_of_ones():
    raw, scaled = (glm.load("wine", form) for form in glm.FORMS)
    np.testing.assert_array_equal(raw.X[:, -1], 1)
    np.testing.assert_array_equal(scaled.X[:, -1], 1)
    np.testing.assert_allclose(scaled.X[:, :-1].std(0), 1)
    assert raw.X[:, :-1].std(0).max() > 100
    assert set(raw.y) == {0.0, 1.0}


def test_loosest_tolerance_is_found_by_bisection():
    tried = []

    def meets(limit):
        return lambda tolerance: tried.append(tolerance) or tolerance <= limit

    assert glm.loosest_tolerance(meets(1.1e-5)) == pytest.approx(1e-5)
    assert len(tried) <= 7
    assert glm.loosest_tolerance(meets(2.0)) == 1.0
    assert glm.loosest_tolerance(meets(1e-16)) == pytest.approx(1e-16)
    assert glm.loosest_tolerance(meets(1e-17)) is None


def test_glm_runs_agree_with_scikit_learn():
    runs = {run.solver: run for run in glm.run_solvers("wine", "standardised", silent)}
    assert runs[AUTO].solved
    assert runs["newton-cholesky"].solved
    assert runs[AUTO].value == pytest.approx(runs["newton-cholesky"].value, rel=1e-9)
    assert runs[AUTO].work == runs[AUTO].seconds > 0


# ---------------------------------------------------------------------- estimators


@pytest.mark.parametrize(
    ("name", "classes"), few([("digits", 10), ("diabetes", 1), ("cancer, standardised", 1)], 2)
)
def test_loss_and_gradient_norm_match_linear_model(name, classes):
    data = estimators.load(name)
    W = 0.01 * np.random.default_rng(0).normal(size=(data.X.shape[1] + 1, classes))
    f = cfgd.LinearModel(data.X, data.y, data.loss, estimators.L2, intercept=True)
    x = W if classes > 1 else W[:, 0]
    value, norm = estimators.loss_and_gradient_norm(data, W)
    assert value == pytest.approx(float(f.value(x)), rel=1e-9)
    assert norm == pytest.approx(np.linalg.norm(f.gradient(x)), rel=1e-9)


@pytest.mark.usefixtures("unchecked")
def test_estimator_and_scikit_learn_find_the_same_minimum():
    runs = {run.solver: run for run in estimators.run_against_scikit_learn("diabetes", silent)}
    assert runs[AUTO].solved
    assert runs["cholesky"].solved
    assert runs[AUTO].value == pytest.approx(runs["cholesky"].value, rel=1e-9)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", estimators.ESTIMATORS)
def test_estimator_and_core_fit_the_same_model(monkeypatch, name):
    monkeypatch.setattr(estimators, "ROWS", 300)
    monkeypatch.setattr(estimators, "COLUMNS", 5)
    ours, core = estimators.run_overhead(name, silent)
    assert (ours.solver, core.solver) == (AUTO, estimators.CORE)
    assert ours.value == pytest.approx(core.value, rel=1e-8)


def test_calls_are_timed_in_turns(monkeypatch):
    called, now = [], [0.0]

    def call(name, seconds):
        called.append(name)
        now[0] += seconds
        return name

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    [(a, first), (b, second)] = timing.time_shortest_interleaved(
        lambda: call("a", 0.5), lambda: call("b", 0.25)
    )
    assert (a, b) == ("a", "b")
    assert called[:4] == ["a", "b", "a", "b"]
    assert (first, second) == (0.5, 0.25)


# ---------------------------------------------------------------------- networks


def test_projected_network_and_its_gradient():
    z = np.linspace(-1, 1, 30)
    network = cfgd.ShallowNetwork(z, np.sin(4 * z), 3)
    projected, w = ProjectedNetwork(network), network.init(0)[:6]
    value, slope = projected.value_and_gradient(w)
    assert value == pytest.approx(float(network.value(projected.all_weights(w))), rel=1e-9)
    # no other output weights do better
    assert np.abs(network.gradient(projected.all_weights(w))[6:]).max() < 1e-9
    for j in range(6):
        h = 1e-6 * np.eye(6)[j]
        difference = (
            projected.value_and_gradient(w + h)[0] - projected.value_and_gradient(w - h)[0]
        ) / 2e-6
        assert slope[j] == pytest.approx(difference, rel=1e-4, abs=1e-7)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("solver", ["SciPy lm", "variable projection LM"])
def test_solver_reduces_the_loss_of_a_network_in_time(monkeypatch, solver):
    ticks = itertools.count()  # each reading of the clock is a millisecond later
    monkeypatch.setattr(timing.time, "perf_counter", lambda: 1e-3 * next(ticks))
    few = {name: networks_timed.SOLVERS[name] for name in (AUTO, solver)}
    monkeypatch.setattr(networks_timed, "SECONDS", 0.3)
    monkeypatch.setattr(networks_timed, "SOLVERS", few)
    start = STARTS["N(0, 1)"]
    case = cases.network("h2", start, 1, 0)
    for run in networks_timed.run_solvers("h2", start, 0, silent):
        assert run.value < case.objective.value(case.x0) / 2
        assert np.isnan(run.to_reference) or 0 <= run.to_reference <= 0.4
        assert run.measure == "timed loss"
        assert few.pop(run.solver)
    assert not few
    assert pytest.approx(1e-2) == networks_timed.PAPER_LOSS


def test_timed_best_records_the_least_value_and_stops_in_time(monkeypatch):
    now = iter([0.0, 0.1, 0.2, 0.3, 0.4, 1.5])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(now))
    best = timing.TimedBest(1.0, reference=2.0)
    for value in (3.0, 2.0, 1.0, np.nan):
        best.record(value, np.array([value]))
    with pytest.raises(timing.TimeLimitError):
        best.record(0.0, np.zeros(1))
    assert (best.least, best.reached) == (1.0, 0.2)
    np.testing.assert_array_equal(best.x, [1.0])


def test_shortest_call_counts(monkeypatch):
    now = iter([0.0, 0.3, 1.0, 1.1, 2.0, 2.9])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(now))
    assert timing.time_shortest(lambda: "found") == ("found", pytest.approx(0.1))


# ---------------------------------------------------------------------- bounds


def test_a_bound_excludes_the_certified_values():
    lower, upper = bounded.active_bounds(np.array([2.0, 5.0, 1.0]), np.array([1.0, 1.0, 4.0]))
    np.testing.assert_allclose(lower, [-np.inf, -np.inf, 1.1])
    assert np.isinf(upper).all()
    lower, upper = bounded.active_bounds(np.array([-2.0, 5.0]), np.array([-2.1, 1.0]))
    np.testing.assert_allclose(upper, [-2.05, np.inf])
    assert np.isinf(lower).all()


def test_a_regression_with_an_active_bound_is_solved():
    runs = {run.solver: run for run in bounded.run_solvers("Misra1a", 1, silent)}
    assert list(runs) == [AUTO, *bounded.SCIPY]
    least = min(run.value for run in runs.values())
    for run in runs.values():
        assert run.solved == (run.value <= least * (1 + 1e-8))
        assert np.isfinite(run.work) == run.solved
    assert runs[AUTO].solved
    assert least > 1.01 * regressions()["Misra1a"].sum_of_squares / 2


# ---------------------------------------------------------------------- cutest


EVERYWHERE = Box(np.array([-np.inf]), np.array([np.inf]))


def test_gradients_are_counted_to_the_first_small_one():
    counted = cutest.CountedGradient(lambda x: (x @ x / 2, x), np.array([1.0]), EVERYWHERE, False)
    for x in (1.0, 1.0, 0.5, 1e-9, 1e-9, 0.5, 1e-10):
        counted(np.array([x]))
    assert (counted.count, counted.first) == (5, 3)
    # a plateau above the start is no solution
    high = cutest.CountedGradient(
        lambda x: (1 - np.exp(-x @ x), x * np.exp(-x @ x)), np.array([1.0]), EVERYWHERE, False
    )
    for x in (1.0, 9.0, 0.0):
        high(np.array([x]))
    assert high.first == 3
    ending = cutest.CountedGradient(lambda x: (x @ x / 2, x), np.array([1.0]), EVERYWHERE, True)
    ending(np.array([1.0]))
    with pytest.raises(cutest.TargetReachedError):
        ending(np.array([0.0]))


def test_cutest_problem_is_solved():
    problem = types.SimpleNamespace(
        name="ROSENBR",
        y0=jnp.array([-1.2, 1.0]),
        args=100.0,
        objective=lambda y, a: a * (y[1] - y[0] ** 2) ** 2 + (1 - y[0]) ** 2,
    )
    bounded = types.SimpleNamespace(**vars(problem), bounds=(jnp.array([-2.0]), jnp.array([0.5])))
    found = cutest.run_solvers(bounded, "cutest-bounds", silent)
    assert all(run.solved for run in found)
    assert [run.value for run in found] == pytest.approx([0.25] * 3)
    runs = {run.solver: run for run in cutest.run_solvers(problem, "cutest", silent)}
    assert all(run.solved for run in runs.values())
    assert 30 < runs[AUTO].work < runs[AUTO_CONVERGED].work < 100
    assert 30 < runs["L-BFGS-B"].work < 70
    assert runs[AUTO].dimension == 2
    assert runs[AUTO].error == "converged"
