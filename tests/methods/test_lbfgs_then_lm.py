"""Linear models whose matrix costs many gradients: L-BFGS, then Levenberg-Marquardt."""

import numpy as np
import pytest
import scipy.sparse

import cfgd
from cfgd.methods.auto import lbfgs_then_lm
from cfgd.methods.auto.lbfgs_then_lm import LM_ITERATIONS
from cfgd.methods.auto.levenberg_marquardt import LevenbergMarquardt
from cfgd.methods.auto.select import MANY_COLUMNS
from cfgd.objectives.linear import design

M, D = 400, MANY_COLUMNS + 30
RNG = np.random.default_rng(3)
GOOD = RNG.normal(size=(M, D))
BAD = GOOD * np.logspace(-3, 3, D) + 0.9 * GOOD[:, :1]
LABELS = (RNG.random(M) < 0.4).astype(float)
COLUMNS_PER_GRADIENT = 30  # of which the products cost a gradient
BUDGET = LM_ITERATIONS * (2 + D / COLUMNS_PER_GRADIENT)


def model(X, l2=1.0):
    return cfgd.LinearModel(X, LABELS, l2=l2)


def newton(X, l2):
    """Return the minimiser by Newton's method."""
    w = np.zeros(X.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-X @ w))
        H = (X.T * (p * (1 - p))) @ X + l2 * np.eye(len(w))
        w = w - np.linalg.solve(H, X.T @ (p - LABELS) + l2 * w)
    return w


def test_on_well_scaled_data_lbfgs_converges_before_a_matrix_is_formed(monkeypatch):
    f = model(GOOD, 30.0)

    def refuse(*args):
        pytest.fail("Levenberg-Marquardt was started")

    monkeypatch.setattr(LevenbergMarquardt, "init", refuse)
    ends = cfgd.minimize(f, np.zeros(D))
    assert ends.success
    assert ends.iterations <= BUDGET
    np.testing.assert_allclose(ends.x, newton(GOOD, 30.0), rtol=1e-5, atol=1e-7)


# a sparse matrix may have few columns
SCALED = {"dense": (BAD, np.asarray), "sparse": (BAD[:, ::5], scipy.sparse.csr_array)}


@pytest.mark.parametrize(("X", "form"), SCALED.values(), ids=SCALED)
def test_on_badly_scaled_data_levenberg_marquardt_follows(X, form):
    d = X.shape[1]
    ends = cfgd.minimize(model(form(X)), np.zeros(d), record={"gamma": "gamma"})
    assert ends.success
    assert ends.iterations > LM_ITERATIONS * (2 + d / COLUMNS_PER_GRADIENT)
    np.testing.assert_allclose(X @ ends.x, X @ newton(X, 1.0), rtol=1e-4, atol=1e-6)
    assert np.all(np.diff(ends.history["value"]) <= 0)
    assert np.all(np.diff(ends.history["iteration"]) == 1)


def test_the_switch_comes_when_the_budget_is_spent(monkeypatch):
    """The iteration count goes on, and the first step of Levenberg-Marquardt is the next one."""
    started = []
    init = LevenbergMarquardt.init

    def record(self, oracle, x0):
        started.append(x0)
        return init(self, oracle, x0)

    monkeypatch.setattr(LevenbergMarquardt, "init", record)
    ends = cfgd.minimize(model(BAD), np.zeros(D), record={"x": lambda x: x})
    switch = int(np.ceil(BUDGET))
    assert len(started) == 1
    np.testing.assert_array_equal(started[0], ends.history["x"][switch])


@pytest.mark.slow
def test_a_matrix_that_is_too_large_counts_as_products(monkeypatch):
    """Then 20 gradients are the cost of a step, whatever the number of columns."""
    monkeypatch.setattr(lbfgs_then_lm, "can_factor", lambda curvature: False)
    started = []
    init = LevenbergMarquardt.init
    monkeypatch.setattr(
        LevenbergMarquardt, "init", lambda *args: started.append(args[2]) or init(*args)
    )
    ends = cfgd.minimize(model(BAD), np.zeros(D), record={"x": lambda x: x}, max_iterations=140)
    np.testing.assert_array_equal(started[0], ends.history["x"][LM_ITERATIONS * 22])


@pytest.mark.slow
def test_a_sweep_is_its_runs():
    f, starts = model(BAD), np.stack([np.zeros(D), np.ones(D) / 100])
    ends = cfgd.sweep(f, starts, cfgd.Auto())
    for x0, x, iterations in zip(starts, ends.x, ends.iterations, strict=True):
        alone = cfgd.minimize(f, x0)
        np.testing.assert_array_equal(x, alone.x)
        assert iterations == alone.iterations
        np.testing.assert_allclose(BAD @ x, BAD @ newton(BAD, 1.0), rtol=1e-4, atol=1e-6)


def test_blocks_of_rows_sum_up_to_the_matrix(monkeypatch):
    X, weight = RNG.normal(size=(50, 3)), RNG.random(50)
    monkeypatch.setattr(design, "BLOCK_NUMBERS", 21)
    got = design.Dense(X).gram(weight, np.asarray(0.5))
    want = sum(w * np.outer(row, row) for w, row in zip(weight, X, strict=True)) + 0.5 * np.eye(3)
    np.testing.assert_allclose(got, want, rtol=1e-13)
