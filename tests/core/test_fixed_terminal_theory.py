"""Theorem 3 as inequalities on many problems, and as equalities where it is tight."""

import numpy as np
import pytest
from quadratics import (
    SEEDS,
    assert_below,
    companion,
    lagged,
    non_adaptive,
    norms,
    problem,
    seeds,
    standardised,
)

from cfgd import theory

# The problems are what they claim to be: otherwise the inequalities below say less.


def test_problems_are_not_special():
    problems = [problem(seed) for seed in SEEDS]
    assert len({len(p.A) for p in problems}) >= 4
    assert all(np.ptp(np.diag(p.A)) > 0.3 * np.diag(p.A).mean() for p in problems)
    assert sum(p.gamma < 0 for p in problems) == sum(p.gamma > 0 for p in problems) == 12
    assert sum(p.eta > 1.3 for p in problems) >= 5
    radii = []
    for seed in SEEDS:
        for lag in (1, 2, 3, 4):
            p, gamma, eta, _ = lagged(seed, lag)
            radii.append(np.abs(np.linalg.eigvals(companion(p.A, gamma, eta, lag))).max())
    assert sum(np.array(radii) < 1) >= 20 <= sum(np.array(radii) > 1)


# Theorem 3: the non-adaptive method.


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.2), (0.9, -0.4), (0.5, 1.0)])
def test_tilde_a_is_the_matrix_of_the_theorem(alpha, beta):
    A = problem(0).A
    want = A.copy()
    np.fill_diagonal(want, (beta + 1 / (2 - alpha)) * np.diag(A))
    got = theory.tilde_A(A, beta - (1 - alpha) / (2 - alpha))
    np.testing.assert_allclose(got, want, rtol=1e-14)


@seeds
def test_tikhonov_solution_is_augmented_least_squares(seed):
    p = problem(seed)
    gamma = abs(p.gamma)
    R = np.diag(np.sqrt(np.diag(p.A)))
    rows = np.vstack([p.X, np.sqrt(gamma) * R])
    targets = np.concatenate([p.y, np.sqrt(gamma) * R @ p.terminal])
    want = np.linalg.lstsq(rows, targets)[0]
    got = theory.tikhonov_solution(p.A, p.b, p.terminal, gamma)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
    minimiser = theory.tikhonov_solution(p.A, p.b, p.terminal, 0.0)
    np.testing.assert_allclose(minimiser, p.x_star, rtol=1e-9, atol=1e-10)


@seeds
def test_tikhonov_solution_is_the_limit_of_the_iteration(seed):
    p = problem(seed)
    step = 1 / np.linalg.norm(p.A + p.gamma * np.diag(np.diag(p.A)), 2)
    rate = theory.non_adaptive_rate(p.A, p.gamma, 1.0)
    iterations = int(np.log(1e-14) / np.log(rate)) + 1
    last = non_adaptive(p.A, p.b, p.terminal, p.gamma, step, p.x0, iterations)[-1]
    want = theory.tikhonov_solution(p.A, p.b, p.terminal, p.gamma)
    np.testing.assert_allclose(last, want, rtol=1e-8, atol=1e-9)


def test_tikhonov_solution_with_one_gamma_for_each_coordinate():
    p = problem(4)
    gamma = np.linspace(-0.01, 2, len(p.A))
    x = theory.tikhonov_solution(p.A, p.b, p.terminal, gamma)
    direction = p.A @ x + p.b + gamma * np.diag(p.A) * (x - p.terminal)
    np.testing.assert_allclose(direction, 0, atol=1e-11)


def test_more_coordinates_than_samples():
    """A is singular; gamma > 0 makes A + gamma D definite, which is all that Theorem 3 asks."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(3, 5)), rng.normal(size=3)
    A, b, terminal = X.T @ X, -X.T @ y, rng.normal(size=5)
    x_gamma = theory.tikhonov_solution(A, b, terminal, 0.4)
    step = 1.2 / np.linalg.norm(theory.tilde_A(A, 0.4), 2)
    points = non_adaptive(A, b, terminal, 0.4, step, rng.normal(size=5), 200)
    errors = norms(points - x_gamma)
    assert_below(errors, errors[0] * theory.non_adaptive_rate(A, 0.4, 1.2) ** np.arange(201), 1)
    assert errors[-1] < 1e-3 * errors[0]


@seeds
def test_non_adaptive_bound_holds(seed):
    p = problem(seed)
    x_gamma = theory.tikhonov_solution(p.A, p.b, p.terminal, p.gamma)
    step = p.eta / np.linalg.norm(theory.tilde_A(p.A, p.gamma), 2)
    points = non_adaptive(p.A, p.b, p.terminal, p.gamma, step, p.x0, 60)
    errors = norms(points - x_gamma)
    bound = errors[0] * theory.non_adaptive_rate(p.A, p.gamma, p.eta) ** np.arange(61)
    assert_below(errors, bound, 1 + norms(p.x0) + norms(x_gamma))


@seeds
@pytest.mark.parametrize("eta", [0.4, 1.0, 1.9])
def test_non_adaptive_rate_is_attained(seed, eta):
    """Along the eigenvector of the smallest or of the largest eigenvalue, whichever is slower."""
    p = problem(seed)
    values, vectors = np.linalg.eigh(theory.tilde_A(p.A, p.gamma))
    slower = np.argmax(np.abs(1 - eta * values / values[-1]))
    assert slower in (0, len(values) - 1)
    x_gamma = theory.tikhonov_solution(p.A, p.b, p.terminal, p.gamma)
    start = x_gamma + 5 * vectors[:, slower]
    points = non_adaptive(p.A, p.b, p.terminal, p.gamma, eta / values[-1], start, 10)
    bound = 5 * theory.non_adaptive_rate(p.A, p.gamma, eta) ** np.arange(11)
    scale = 1e-13 * (norms(x_gamma) + norms(p.terminal))
    np.testing.assert_allclose(norms(points - x_gamma), bound, rtol=1e-10, atol=scale)


def test_the_papers_rate_is_violated_and_ours_holds():
    """Erratum 5: kappa = 2, eta = 1.99, k = 20, equal start components."""
    A, eta, k = np.diag([2.0, 1.0]), 1.99, 20
    errors = norms(non_adaptive(A, np.zeros(2), np.zeros(2), 0.0, eta / 2, np.ones(2), k))
    ratio = (errors[k] / errors[0]) ** 2
    papers = abs(1 - eta / 2) ** k
    ours = theory.non_adaptive_rate(A, 0.0, eta) ** (2 * k)
    assert ratio == pytest.approx(0.334, abs=5e-4)
    assert papers == pytest.approx(9.5e-47, rel=5e-3)
    assert papers < ratio <= ours == pytest.approx(0.99**40, rel=1e-12)


@seeds
def test_non_adaptive_bound_holds_where_the_papers_fails(seed):
    """eta near 2 and a small kappa: (1 - eta)^2 > |1 - eta/kappa|."""
    rng = np.random.default_rng(4000 + seed)
    sizes = rng.uniform(1, 1.2, 5)
    A, terminal, x0 = standardised(seed) * np.outer(sizes, sizes), *rng.normal(size=(2, 5))
    b, gamma, eta = rng.normal(size=5), rng.uniform(4, 8), 1.97
    x_gamma = theory.tikhonov_solution(A, b, terminal, gamma)
    values = np.linalg.eigvalsh(theory.tilde_A(A, gamma))
    errors = norms(non_adaptive(A, b, terminal, gamma, eta / values[-1], x0, 150) - x_gamma)
    k = np.arange(151)
    assert_below(errors, errors[0] * theory.non_adaptive_rate(A, gamma, eta) ** k, 1)
    papers = abs(1 - eta * values[0] / values[-1]) ** k
    assert ((errors / errors[0]) ** 2 > 10 * papers).any()
