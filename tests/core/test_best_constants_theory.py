"""Beyond the paper: the best constants."""

import numpy as np
import pytest
from quadratics import norms, problem, standardised

from cfgd import theory
from problems import gas_table, needs_gas


@pytest.mark.parametrize("seed", range(6))
def test_best_constants_have_the_rate_that_they_state(seed):
    A = standardised(seed)
    best = theory.best_constants(np.linalg.eigvalsh(A))
    radius = theory.spectral_radius(A, best.gamma, best.eta, 1)
    assert radius == pytest.approx(best.rate, abs=1e-6)
    # D = delta I: the same gamma, the step divided by delta
    scaled = theory.spectral_radius(7 * A, best.gamma, best.eta / 7, 1)
    assert scaled == pytest.approx(best.rate, abs=1e-6)
    for factor in (0.9, 1.1):
        assert theory.spectral_radius(A, factor * best.gamma, best.eta, 1) > best.rate + 1e-4
        assert theory.spectral_radius(A, best.gamma, factor * best.eta, 1) > best.rate + 1e-4


def test_a_matrix_has_the_constants_of_its_scaled_eigenvalues():
    A = problem(0).A
    known = np.linalg.eigvals(A / np.diag(A)[:, None]).real
    np.testing.assert_allclose(theory.best_constants(A), theory.best_constants(known), rtol=1e-9)


@pytest.mark.one_case
@pytest.mark.parametrize("seed", range(3))
def test_no_constants_on_a_grid_are_better(seed):
    A = standardised(seed, d=3)
    best = theory.best_constants(np.linalg.eigvalsh(A))
    grid = [
        theory.spectral_radius(A, gamma, eta, 1)
        for gamma in np.linspace(2, -1, 40) * best.gamma
        for eta in np.linspace(0.02, 2.5, 40) * best.eta
    ]
    assert best.rate - 1e-6 < min(grid) < best.rate + 0.05


@pytest.mark.parametrize("seed", range(6))
def test_best_constants_scale_the_direction_by_the_diagonal(seed):
    """D no multiple of I: the iteration x - eta D^-1 d, measured."""
    p = problem(seed)
    D = np.diag(p.A)
    best = theory.best_constants(np.linalg.eigvals(p.A / D[:, None]).real)
    x, previous = p.x0, p.terminal
    iterations = int(np.log(1e-9) / np.log(best.rate))
    for _ in range(iterations):
        direction = p.A @ x + p.b + best.gamma * D * (x - previous)
        x, previous = x - best.eta * direction / D, x
    size = norms(p.x0 - p.x_star) + norms(p.terminal - p.x_star)
    # the double root costs a factor of the order of k, and unequal D one of sqrt(max D / min D)
    assert norms(x - p.x_star) < best.rate**iterations * size * 100 * iterations


@needs_gas
def test_best_gamma_of_the_gas_data():
    """It explains the range [-100, -20] that the paper found by hand."""
    X = gas_table()[:, :-1]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    A = X.T @ X
    np.testing.assert_allclose(np.diag(A), 2565, rtol=1e-12)
    best = theory.best_constants(np.linalg.eigvalsh(A) / 2565)
    assert best.gamma == pytest.approx(-18.23, abs=5e-3)
    radius = theory.spectral_radius(A, best.gamma, best.eta / 2565, 1)
    assert radius == pytest.approx(best.rate, abs=1e-6)
