"""Theorem 4, the adaptive terminal, as inequalities and where it is tight."""

import numpy as np
import pytest
from quadratics import (
    adaptive_terminal,
    assert_below,
    companion,
    lagged,
    lags,
    norms,
    problem,
    seeds,
    standardised,
)

from cfgd import theory
from problems import few


@seeds
@lags
def test_adaptive_terminal_bound_holds(seed, lag):
    p, gamma, eta, past = lagged(seed, lag)
    observed = norms(adaptive_terminal(p.A, p.b, gamma, eta, past, 60) - p.x_star)
    bound = theory.adaptive_terminal_bound(p.A, gamma, eta, norms(past - p.x_star), 60)
    assert_below(observed, bound, 1 + norms(p.x_star) + np.maximum.accumulate(observed))


@seeds
@lags
def test_adaptive_terminal_bound_holds_where_the_iteration_decouples(seed, lag):
    """D = 4 I: the branch of scalar iterations."""
    rng = np.random.default_rng(2000 + 10 * seed + lag)
    A, x_star = 4 * standardised(seed), rng.normal(size=5)
    past = x_star + rng.normal(size=(lag + 1, 5))
    gamma, eta = rng.uniform(-0.9, 2), rng.uniform(0.1, 1.3) / np.linalg.norm(A, 2)
    observed = norms(adaptive_terminal(A, -A @ x_star, gamma, eta, past, 60) - x_star)
    bound = theory.adaptive_terminal_bound(A, gamma, eta, norms(past - x_star), 60)
    assert_below(observed, bound, 1 + norms(x_star) + np.maximum.accumulate(observed))


@seeds
@lags
@pytest.mark.parametrize("equal_diagonal", [False, True])
def test_adaptive_terminal_bound_is_attained(seed, lag, equal_diagonal):
    """With a single error not zero, along the top right singular vector of its A_{k,j}."""
    A = standardised(seed) if equal_diagonal else problem(seed).A
    gamma, eta, k = (0.7, -0.4)[seed % 2], 0.9 / np.linalg.norm(A, 2), 1 + seed % 9
    M = np.linalg.matrix_power(companion(A, gamma, eta, lag), k)
    for j in range(lag + 1):
        block = M[: len(A), j * len(A) : (j + 1) * len(A)]
        past = np.zeros((lag + 1, len(A)))
        past[j] = 2 * np.linalg.svd(block)[2][0]
        observed = norms(adaptive_terminal(A, np.zeros(len(A)), gamma, eta, past, k))[k]
        bound = theory.adaptive_terminal_bound(A, gamma, eta, norms(past), k)[k]
        np.testing.assert_allclose(observed, bound, rtol=1e-10, atol=1e-13)


@lags
@pytest.mark.parametrize("k", [1, 2, 5, 12])
@pytest.mark.parametrize("gamma", [-0.6, 0.8])
def test_adaptive_terminal_bound_is_attained_with_all_errors_in_one_dimension(lag, k, gamma):
    A, eta = np.array([[3.0]]), 0.2
    M = np.linalg.matrix_power(companion(A, gamma, eta, lag), k)
    past = (np.where(M[0] < 0, -1.0, 1.0) * np.arange(1.0, lag + 2))[:, None]
    observed = norms(adaptive_terminal(A, np.zeros(1), gamma, eta, past, k))[k]
    bound = theory.adaptive_terminal_bound(A, gamma, eta, norms(past), k)[k]
    np.testing.assert_allclose(observed, bound, rtol=1e-12)


def test_a_diverging_bound_is_infinite():
    bound = theory.adaptive_terminal_bound(problem(1).A, 0.5, 50.0, [1.0, 1.0, 1.0], 400)
    assert not np.isnan(bound).any()
    assert np.isinf(bound[-1])


@seeds
@lags
def test_adaptive_terminal_matrices_are_the_first_block_row(seed, lag):
    p, gamma, eta, past = lagged(seed, lag)
    d = len(p.A)
    errors = (past - p.x_star).ravel()
    points = adaptive_terminal(p.A, p.b, gamma, eta, past, 17)
    for k in (0, 1, 2, 3, 17):
        M = np.linalg.matrix_power(companion(p.A, gamma, eta, lag), k)
        want = M[:d].reshape(d, lag + 1, d).swapaxes(0, 1)
        got = theory.adaptive_terminal_matrices(p.A, gamma, eta, lag, k)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12 * np.abs(M).max())
        # and they are what they are for: the error itself, not only a bound of it
        error = got.swapaxes(0, 1).reshape(d, -1) @ errors
        np.testing.assert_allclose(points[k] - p.x_star, error, rtol=1e-8, atol=1e-10)


@seeds
@lags
@pytest.mark.parametrize("equal_diagonal", [False, True])
def test_spectral_radius_is_the_growth_of_powers(seed, lag, equal_diagonal):
    p, gamma, eta, _ = lagged(seed, lag)
    A = standardised(seed) if equal_diagonal else p.A
    if equal_diagonal:
        eta = 1.1 / np.linalg.norm(A, 2)
    radius = theory.spectral_radius(A, gamma, eta, lag)
    # |(M/r)^k|^(1/k) tends to rho(M)/r; k = 2^18, by repeated squaring
    powers = np.linalg.matrix_power(companion(A, gamma, eta, lag) / radius, 2**18)
    assert np.linalg.norm(powers, 2) ** 2.0**-18 == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("seed", few(range(6)))
@lags
def test_spectral_radius_is_the_rate_of_a_long_run(seed, lag):
    p, gamma, eta, past = lagged(seed, lag)
    errors, length = past - p.x_star, 4000
    logs = 0.0
    for k in range(length + 500):
        newest = adaptive_terminal(p.A, np.zeros(len(p.A)), gamma, eta, errors, 1)[1]
        errors = np.vstack([newest, errors[:-1]])
        size = np.linalg.norm(errors)
        errors = errors / size  # the iteration is linear in the errors, so that they may be scaled
        logs += np.log(size) if k >= 500 else 0.0
    assert np.exp(logs / length) == pytest.approx(
        theory.spectral_radius(p.A, gamma, eta, lag), abs=2e-3
    )
