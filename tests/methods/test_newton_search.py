"""The search along a Newton step: its minimum, its limits, and when it is left out."""

import numpy as np
import pytest
from oracles import oracle_for

import cfgd
from cfgd.methods.auto import levenberg_marquardt
from cfgd.methods.auto.newton_search import MOST_DOUBLINGS, search_along


def newton_multiple(t):
    """Return least squares, a point, and t times the Newton step: the best fraction is 1/t."""
    random = np.random.default_rng(3)
    X, y = random.normal(size=(12, 3)), random.normal(size=12)
    x = np.array([1.0, -2.0, 0.5])
    oracle = oracle_for(cfgd.LinearModel(X, y, "squared"), x)
    return oracle, oracle.evaluate(x), t * np.linalg.solve(X.T @ X, X.T @ (X @ x - y))


@pytest.mark.parametrize("t", [0.125, 0.5, 2.0, 64.0])
def test_the_search_finds_the_minimum_along_the_step(t):
    oracle, at, p = newton_multiple(t)
    value = oracle.value(at.x - p)
    fraction, found = search_along(oracle, at, p, value, t < 1)
    assert fraction == 1 / t
    assert found == pytest.approx(oracle.value(at.x - p / t), rel=1e-12)


def test_the_search_doubles_a_step_a_few_times_only():
    oracle, at, p = newton_multiple(1e-3)
    fraction, _ = search_along(oracle, at, p, oracle.value(at.x - p), True)
    assert fraction == 2**MOST_DOUBLINGS


def test_a_step_whose_prediction_is_right_is_not_searched_along(monkeypatch):
    """Along the first Newton step on nearly linear data, and not along the other one."""
    searched = []

    def record(oracle, evaluation, p, value, is_too_short):
        searched.append(is_too_short)
        return search_along(oracle, evaluation, p, value, is_too_short)

    monkeypatch.setattr(levenberg_marquardt, "search_along", record)
    X = np.random.default_rng(0).normal(size=(80, 3))
    near = cfgd.LinearModel(X, np.exp(X @ [0.01, 0.02, 0.0]), "poisson")
    assert cfgd.minimize(near, np.zeros(3)).success
    assert not searched
    far = cfgd.LinearModel(X, np.exp(4 + X @ [0.3, -0.2, 0.1]), "poisson")
    cfgd.minimize(far, np.zeros(3))
    assert searched[0] is False


def test_counts_that_are_far_from_one_take_few_matrices():
    """The first Newton step from zero leads to exp(150)."""
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=(80, 3)), np.ones(80)])
    y = random.poisson(np.exp(5 + X[:, :3] @ [0.3, -0.2, 0.1])).astype(float)
    ends = cfgd.minimize(cfgd.LinearModel(X, y, "poisson"), np.zeros(4))
    assert ends.success
    assert ends.iterations <= 8
    rate = np.exp(X @ ends.x)
    np.testing.assert_allclose(X.T @ rate, X.T @ y, rtol=1e-7)
