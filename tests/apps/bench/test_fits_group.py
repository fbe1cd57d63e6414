"""The fits of `cfgd bench`: starts, the best known sums of squares, solvers and false verdicts."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from cfgd.apps.bench.field import fit_solvers, fits, timing
from cfgd.apps.bench.field.fit_problems import (
    FitProblem,
    fit_names,
    fit_problem,
    half_sum,
    tight_descent,
)
from cfgd.apps.bench.field.fit_solvers import FitEnd
from cfgd.apps.bench.field.instance import AUTO
from cfgd.apps.data.nist import regressions


def valley(p):
    """Two minima: 0 at p = 2 and 1/2 near p = -2."""
    return jnp.stack([p[0] ** 2 - 4, (p[0] - 2) / 4, p[1]])


VALLEY = FitProblem("valley", valley, (np.array([3.0, 0.0]),), 0.0)


def test_perturbed_starts_keep_signs_and_are_fixed():
    problem = FitProblem("p", valley, (np.ones(2), np.array([-2.0, 0.0])), 0.0)
    np.testing.assert_array_equal(problem.start(0), [1, 1])
    np.testing.assert_array_equal(problem.start(1), [-2, 0])
    many = np.array([problem.start(seed) for seed in range(2, 400)])
    assert np.all(many[:, 0] < 0)
    # log-normal with deviation 1/2 about -2, and normal with deviation 1/2 about 0
    assert np.std(np.log(-many[:, 0] / 2)) == pytest.approx(0.5, rel=0.15)
    assert np.mean(np.log(-many[:, 0] / 2)) == pytest.approx(0, abs=0.1)
    assert np.std(many[:, 1]) == pytest.approx(0.5, rel=0.15)
    np.testing.assert_array_equal(problem.start(2), many[0])


def test_best_sum_of_squares_to_six_digits_and_zero():
    problem = FitProblem("p", valley, (np.array([3.0, 0.0]),), 2.0)
    assert problem.has_best(2.0)
    assert problem.has_best(1.9)
    assert problem.has_best(2 * (1 + 0.9e-6))
    assert not problem.has_best(2 * (1 + 1.1e-6))
    assert VALLEY.has_best(0.9e-12)  # the sum at the start is above one
    assert not VALLEY.has_best(1.1e-12)
    assert not VALLEY.has_best(float("nan"))


def test_tight_descent_finds_the_minimum_of_its_valley():
    assert tight_descent(valley, np.array([3.0, 1.0])) <= 1e-25
    other = tight_descent(valley, np.array([-2.1, 0.0]), 0.1)
    assert 0.45 < other < 0.5
    assert tight_descent(valley, np.array([-3.0, 0.0]), 0.1) == pytest.approx(
        half_sum(valley, [-2.7, 0.0])
    )
    assert half_sum(valley, [-2.0, 0.0]) == pytest.approx(0.5)
    assert half_sum(lambda p: jnp.log(p), [-1.0]) == np.inf


@pytest.mark.parametrize(
    ("x", "status"),
    [([2.0, 0.0], "converged"), ([-2.0, 0.0], "converged"), ([-2.5, 0.0], "false converged")],
)
@pytest.mark.every_case
def test_converged_is_false_only_where_a_descent_goes_on(x, status):
    x = np.array(x)
    if status == "converged" and x[0] < 0:  # the bottom of the other valley, by Newton's method
        for _ in range(20):
            slope = 4 * x[0] * (x[0] ** 2 - 4) + (x[0] - 2) / 8
            x[0] -= slope / (12 * x[0] ** 2 - 16 + 1 / 8)
    run = fits._run(VALLEY, 0, AUTO, FitEnd(x, 7.0, "converged"), 0.1)
    assert run.status == status
    assert run.solved == (x[0] == 2.0)
    assert run.work == (7.0 if run.solved else np.inf)


def test_an_error_of_a_solver_is_a_lost_run():
    def fails():
        raise ValueError("array must not contain infs or NaNs")

    end = fit_solvers.end_of(fails)
    run = fits._run(VALLEY, 0, "other", end, 0.1)
    assert not run.solved
    assert run.error == "ValueError: array must not contain infs or NaNs"
    with pytest.raises(KeyboardInterrupt):
        fit_solvers.end_of(lambda: (_ for _ in ()).throw(KeyboardInterrupt))


def test_fits_have_distinct_names_and_nist_its_certified_sums():
    names = fit_names()
    assert len(names) > 90
    assert names["NIST Misra1a"] == 2
    assert names["MGH Meyer"] == 1
    problem = fit_problem("NIST Misra1a")
    assert problem.best == regressions()["Misra1a"].sum_of_squares / 2
    assert problem.starts == 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["NIST Misra1a", "MGH Jennrich-Sampson", "two peaks"])
def test_all_solvers_solve_a_fit(monkeypatch, name):
    monkeypatch.setattr("cfgd.apps.bench.field.timing.REPEATS", 1)
    runs = {run.solver: run for run in fits.run_solvers(name, 0, lambda solver: None)}
    assert list(runs) == [AUTO, *fit_solvers.installed_solvers()]
    lm = runs["SciPy lm"]
    for solver, run in runs.items():
        assert not run.error, run.error
        if run.solved or solver != "optimistix LM":
            assert run.solved, solver
            assert lm.work / 5 <= run.work <= 20 * lm.work
            assert run.value == pytest.approx(lm.value, rel=1e-6)
    assert runs[AUTO].status == "converged"


def test_calls_are_counted_in_gradients():
    end = fit_solvers.scipy_solver("lm")(
        lambda p: jnp.stack([p[0] - 1, 10 * (p[1] - p[0]), p[1]]), np.zeros(2)
    )
    # a linear problem: a few residuals, of which each is a half, and at least two Jacobians of two
    assert 4.5 <= end.work <= 12
    assert end.work % 0.5 == 0


def test_repeats_of_all_calls_end_after_their_seconds(monkeypatch):
    now, called = [0.0], []

    def call(name, seconds):
        called.append(name)
        now[0] += seconds

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    timing.time_shortest_interleaved(lambda: call("a", 0.5), lambda: call("b", 0.25), seconds=1.0)
    assert "".join(called) == "ab" + 2 * "ab"  # the first calls compile
