"""Fits have the coefficients that scikit-learn and SciPy find."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special
from sklearn.linear_model import LogisticRegression

import cfgd
from cfgd import Status
from problems import quick

DATA = np.random.default_rng(5)
FEATURES = DATA.normal(size=(60, 5)) * [0.4, 1.0, 1.7, 0.8, 1.2] + [0.3, 0.0, -0.2, 0.1, 0.0]
FEATURES[:, 3] = 0.0  # a column without information: its coefficient does not change
TRUTH = np.array([1.5, -0.8, 0.3, 0.9, -0.5])
LINE = FEATURES @ TRUTH
CHANCES = DATA.uniform(size=60)
YES = (scipy.special.expit(LINE) > CHANCES).astype(int)
EVENTS = DATA.poisson(np.exp(0.5 * LINE))
HEIGHTS = LINE + 0.3 * DATA.standard_t(1.5, size=60)
TIMES = DATA.uniform(0.5, 2, 60)
METHOD = cfgd.AdaptiveTerminal(gamma=-0.1, nodes=5)


def solved(objective):
    """Return the solution with the accuracy that rounding of the values allows."""
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


@pytest.mark.parametrize(("labels", "weights", "l2"), quick(LOGISTIC, ["weights"]))
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


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "y", "parts"), quick(SCIPY, ["huber"]))
def test_a_fit_has_the_coefficients_of_scipys_minimiser(loss, y, parts):
    other = scipy.optimize.minimize(
        parts, np.zeros(5), jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-9}
    )
    assert np.max(np.abs(parts(other.x)[1])) < 1e-6
    end = solved(cfgd.LinearModel(FEATURES, y, loss))
    np.testing.assert_allclose(end.x, other.x, rtol=0, atol=1e-6)
    np.testing.assert_allclose(end.value, other.fun, rtol=1e-12)
