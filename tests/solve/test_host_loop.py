"""Runs of Auto: rows of the history, sweeps in turns, and stops in the middle of a step."""

import os
import signal

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from fake_clock import fake_clock
from solver_cases import CASES, SWEPT

import cfgd
from cfgd import Status
from cfgd.methods.auto.oracle import Oracle
from problems import few, identity, quick


def valley(x):
    return jnp.sum(30 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


X0 = np.array([-0.7, 0.4, 1.3, -0.2])
RECORD = {"x": identity, "eta": "eta", "gamma": "gamma"}
DISTINCT = ["conjugate gradients in the residual form", "L-BFGS", "variable projection"]


# ------------------------------------------------------------------------------------- sweeps


@pytest.mark.parametrize(("objective", "starts"), quick(SWEPT, DISTINCT))
def test_a_sweep_gives_what_its_runs_give(objective, starts):
    options = {"max_iterations": 40, "record": RECORD, "tolerance": 1e-12}
    ends = cfgd.sweep(objective, starts, cfgd.Auto(), **options)
    runs = [cfgd.minimize(objective, x0, **options) for x0 in starts]
    longest = max(run.iterations for run in runs)
    np.testing.assert_array_equal(ends.history["iteration"], np.arange(longest + 1))
    assert ends.history["x"].shape == (len(starts), longest + 1, starts.shape[1])
    for end, run in zip(ends, runs, strict=True):
        np.testing.assert_array_equal(end.x, run.x)
        for field in ("value", "gradient_norm", "iterations", "evaluations", "status", "message"):
            assert getattr(end, field) == getattr(run, field), field
        for entry in ("value", "gradient_norm", "x", "eta", "gamma"):
            rows = run.history[entry]
            # a run that has ended repeats its last row
            wanted = rows[np.minimum(np.arange(longest + 1), len(rows) - 1)]
            np.testing.assert_array_equal(end.history[entry], wanted, err_msg=entry)


def test_a_sweep_ends_where_every_run_has_ended():
    """One run is at its minimum, one is stopped by `max_iterations`."""
    objective, starts = CASES["L-BFGS"]
    starts = np.stack([np.ones(4), starts[0]])
    ends = cfgd.sweep(objective, starts, [cfgd.Auto()] * 2, max_iterations=5)
    assert ends.status == [Status.converged, Status.max_iterations]
    np.testing.assert_array_equal(ends.iterations, [0, 5])


# ------------------------------------------------------------------------------------- history


@pytest.mark.parametrize("every", few([4, 1]))
def test_rows_of_the_history(every):
    ends = cfgd.minimize(valley, X0, record=RECORD, every=every)
    labels = ends.history["iteration"]
    np.testing.assert_array_equal(labels[:-1], np.arange(0, ends.iterations, every))
    assert labels[-1] == ends.iterations
    np.testing.assert_allclose(ends.history["x"][-1], ends.x)
    assert np.isnan(ends.history["eta"][0])
    assert np.isfinite(ends.history["eta"][1:]).all()


def test_records_have_the_structure_and_precision_of_x0():
    def tree_valley(p):
        return valley(jnp.concatenate([p["a"], p["b"][None]]))

    x0 = {"a": np.float32([-0.7, 0.4]), "b": np.float32(0.3)}
    record = {"sum": lambda p: p["a"].sum() + p["b"], "eta": "eta"}
    ends = cfgd.minimize(tree_valley, x0, record=record, tolerance=1e-4)
    assert ends.success
    assert ends.x["a"].dtype == ends.history["sum"].dtype == ends.history["eta"].dtype == np.float32
    np.testing.assert_allclose(ends.history["sum"][[0, -1]], [0, 3], atol=1e-2)


# ------------------------------------------------------------------------------------- tolerances


@pytest.mark.parametrize("c", few([1e120, 1.0]))
def test_an_absolute_tolerance_is_in_the_units_of_f(c):
    """Beyond 1e60 the objective is scaled inside."""
    ends = cfgd.minimize(lambda x: c * valley(x), X0, tolerance=0, gradient_tolerance=1e-3 * c)
    assert ends.success
    assert 1e-9 * c < ends.gradient_norm <= 1e-3 * c


@pytest.mark.parametrize("most", [1, 7])
def test_no_more_iterations_than_max_iterations(most):
    ends = cfgd.minimize(valley, X0, max_iterations=most)
    assert ends.status is Status.max_iterations
    assert ends.iterations == most
    assert ends.history["iteration"][-1] == most


# ------------------------------------------------------------------------------------- stops


def external(at, act):
    """Return an external function that calls `act` in evaluation number `at`."""
    calls = []

    def fn(x):
        calls.append(x)
        if len(calls) == at:
            act()
        r = x - np.arange(4.0)
        return np.sum(r**4 + r**2), 4 * r**3 + 2 * r

    return cfgd.External(fn), calls


def fail():
    raise RuntimeError("mine")


@pytest.mark.parametrize("every", [1, 100])
def test_an_error_of_the_objective_comes_with_the_best_point(every):
    whole = cfgd.minimize(external(0, fail)[0], X0, record=RECORD)
    f, calls = external(9, fail)
    with pytest.raises(RuntimeError, match="mine") as raised:
        cfgd.minimize(f, X0, record=RECORD, every=every)
    ends = raised.value.solution
    assert len(calls) == 9
    assert ends.status is Status.nonfinite
    assert 0 < ends.iterations < 9
    np.testing.assert_array_equal(ends.x, whole.history["x"][ends.iterations])
    # no row is lost, whether or not a chunk had ended
    labels = np.arange(ends.iterations + 1) if every == 1 else [0, ends.iterations]
    np.testing.assert_array_equal(ends.history["iteration"], labels)


def test_an_interrupt_ends_a_run_before_the_next_evaluation():
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        f, calls = external(9, lambda: os.kill(os.getpid(), signal.SIGINT))
        ends = cfgd.minimize(f, X0)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert ends.status is Status.interrupted
    assert len(calls) == 9
    assert ends.value == min(ends.history["value"]) < ends.history["value"][0]
    assert ends.history["iteration"][-1] == ends.iterations


def test_a_time_limit_ends_a_run_in_the_middle_of_a_step():
    """A step of L-BFGS that checks the curvature takes an evaluation for each coordinate."""
    with fake_clock() as clock:
        f, calls = external(0, fail)
        whole = cfgd.minimize(f, X0)
        taken = len(calls)
        ticking = cfgd.External(lambda x: (clock.advance(1.0), f.fn(x))[1])
        for limit in range(2, taken):
            calls.clear()
            ends = cfgd.minimize(ticking, X0, time_limit=float(limit))
            assert ends.status is Status.time_limit
            assert len(calls) == limit
            assert ends.seconds == limit
        calls.clear()
        again = cfgd.minimize(ticking, X0, time_limit=float(taken + 1))
    assert again.status is whole.status is Status.converged
    np.testing.assert_array_equal(again.x, whole.x)


def by_products():
    """A Levenberg-Marquardt step by products takes up to 200 of them for each trial."""
    rng = np.random.default_rng(3)
    X = scipy.sparse.csr_array(rng.normal(size=(60, 20)) * np.geomspace(1, 1e3, 20))
    return cfgd.LinearModel(X, rng.random(60) < 0.5, l2=1e-3), np.zeros(20)


LONG_STEPS = {
    "products": by_products(),
    "variable projection": (CASES["variable projection"][0], CASES["variable projection"][1][0]),
}


@pytest.mark.parametrize("name", LONG_STEPS)
def test_a_time_limit_ends_a_run_between_products_and_factorisations(name):
    f, x0 = LONG_STEPS[name]
    check, method = Oracle.check_stop, None
    if name == "products":
        method = cfgd.Auto("levenberg_marquardt")

    def ticking(self):
        clock.advance(1.0)
        check(self)

    with fake_clock() as clock, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Oracle, "check_stop", ticking)
        ends = cfgd.minimize(f, x0, method, time_limit=20.0, tolerance=0)
    assert ends.status is Status.time_limit
    assert 20 <= ends.seconds <= 21


# ------------------------------------------------------------------------------------- compiling


def test_a_function_is_checked_once():
    traced = []

    def counted(x):
        traced.append(1)
        return valley(x)

    cfgd.minimize(counted, X0, max_iterations=3)
    before = len(traced)
    cfgd.minimize(counted, 2 * X0, max_iterations=3)
    assert len(traced) == before
    with pytest.raises(ValueError, match="return a scalar"):
        cfgd.minimize(lambda x: x, X0)
