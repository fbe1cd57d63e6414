"""Theorem 5, the adaptive order, as inequalities and where it is tight."""

import numpy as np
import pytest
from quadratics import assert_below, non_adaptive, norms, problem, seeds

from cfgd import theory


def staged(seed):
    """Stages whose gamma falls to zero: from above for even seeds, from below for odd ones."""
    p = problem(seed)
    rng = np.random.default_rng(3000 + seed)
    count = int(rng.integers(1, 6))
    gammas = p.gamma * np.sort(rng.uniform(0, 1, count))[::-1]
    lengths = rng.integers(1, 40, count)
    stages = [(int(k), float(g)) for k, g in zip(lengths, gammas, strict=True)]
    return p, stages, rng.uniform(0.1, 1.9, count)


def adaptive_order(p, stages, etas):
    """The points after each stage."""
    x, points = p.x0, []
    for (iterations, gamma), eta in zip(stages, etas, strict=True):
        step = eta / np.linalg.norm(p.A + gamma * np.diag(np.diag(p.A)), 2)
        x = non_adaptive(p.A, p.b, p.terminal, gamma, step, x, iterations)[-1]
        points.append(x)
    return np.array(points)


@seeds
@pytest.mark.parametrize("one_eta", [False, True])
def test_adaptive_order_bound_holds(seed, one_eta):
    p, stages, etas = staged(seed)
    eta = float(etas[0]) if one_eta else etas
    points = adaptive_order(p, stages, np.broadcast_to(eta, len(stages)))
    bound = theory.adaptive_order_bound(p.A, p.b, p.terminal, p.x0, stages, eta)
    assert_below(norms(points - p.x_star), bound, 1 + norms(p.x0) + norms(p.terminal))


@seeds
def test_adaptive_order_bound_is_the_formula_of_the_theorem(seed):
    """The closed sum as it is printed, but for R_s (erratum 5)."""
    p, stages, etas = staged(seed)
    gammas = np.array([gamma for _, gamma in stages])
    R = np.array(
        [
            theory.non_adaptive_rate(p.A, gamma, float(eta)) ** k
            for (k, gamma), eta in zip(stages, etas, strict=True)
        ]
    )
    C = theory.adaptive_order_constant(p.A, p.b, p.terminal, gammas)
    first = norms(p.x0 - theory.tikhonov_solution(p.A, p.b, p.terminal, gammas[0]))
    want = [
        np.prod(R[:s]) * first
        + C
        * sum(np.prod(R[s - i : s]) * abs(gammas[s - i - 1] - gammas[s - i]) for i in range(1, s))
        + C * abs(gammas[s - 1])
        for s in range(1, len(stages) + 1)
    ]
    got = theory.adaptive_order_bound(p.A, p.b, p.terminal, p.x0, stages, etas)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_adaptive_order_bound_is_attained():
    """In one dimension all distances add up if x0, the terminal and gamma lie on one side."""
    line = problem(0)._replace(
        A=np.array([[3.0]]), b=np.array([-6.0]), terminal=np.array([5.0]), x0=np.array([9.0])
    )
    stages, etas = [(3, 2e-3), (2, 1e-3), (4, 2.5e-4)], [0.3, 0.2, 0.1]
    observed = adaptive_order(line, stages, etas)[:, 0] - 2.0
    bound = theory.adaptive_order_bound(line.A, line.b, line.terminal, line.x0, stages, etas)
    # |x_g - x_h| = C |g - h| / ((1+g)(1+h)) is all that separates the two
    assert_below(observed, bound, 1)
    assert (observed > bound / (1 + 2e-3) ** 2).all()
    # gamma = 0 leaves nothing
    observed = adaptive_order(line, [(3, 0.0), (2, 0.0)], [0.3, 1.8])[:, 0] - 2.0
    bound = theory.adaptive_order_bound(
        line.A, line.b, line.terminal, line.x0, [(3, 0.0), (2, 0.0)], [0.3, 1.8]
    )
    np.testing.assert_allclose(observed, bound, rtol=1e-12)


def test_the_step_of_theorem_5_is_divided_by_sigma_max():
    """Its text has the step eta_s itself: with A = 10 and eta = 1 that diverges, but R_s = 0."""
    A, b, terminal, x0 = np.array([[10.0]]), np.array([-10.0]), np.zeros(1), np.array([2.0])
    bound = theory.adaptive_order_bound(A, b, terminal, x0, [(5, 0.0)], 1.0)[0]
    assert bound == pytest.approx(0, abs=1e-15)
    assert norms(non_adaptive(A, b, terminal, 0.0, 1.0, x0, 5)[-1] - 1.0) > 1e4
    assert norms(non_adaptive(A, b, terminal, 0.0, 1.0 / 10, x0, 5)[-1] - 1.0) <= 1e-15


@seeds
def test_adaptive_order_constant_bounds_the_path_of_tikhonov_solutions(seed):
    p = problem(seed)
    gammas = p.gamma * np.linspace(0, 1, 9)
    C = theory.adaptive_order_constant(p.A, p.b, p.terminal, gammas)
    x = np.array([theory.tikhonov_solution(p.A, p.b, p.terminal, gamma) for gamma in gammas])
    apart = norms(x[:, None] - x[None])
    assert_below(apart, C * np.abs(gammas[:, None] - gammas[None]), 1 + norms(p.terminal))


@seeds
def test_adaptive_order_constant_is_the_one_of_the_proof(seed):
    """B_max by a search over gamma: it is attained at the smallest, 0 for gamma >= 0."""
    p = problem(seed)
    D = np.diag(np.diag(p.A))
    path = p.gamma * np.linspace(0, 1, 101)
    B = [np.linalg.norm(np.linalg.inv(p.A + gamma * D), 2) for gamma in path]
    assert np.argmax(B) == (0 if p.gamma > 0 else 100)
    want = max(B) ** 2 * np.linalg.norm(p.X, 2) ** 2 * np.linalg.norm(np.sqrt(D), 2) ** 2
    want *= np.linalg.norm(p.x_star - p.terminal)
    got = theory.adaptive_order_constant(p.A, p.b, p.terminal, [p.gamma, p.gamma / 3])
    assert got == pytest.approx(want, rel=1e-8)


def test_adaptive_order_constant_is_attained():
    """In one dimension C |g - h| / |x_g - x_h| = (1 + g)(1 + h)."""
    A, b, terminal = [[3.0]], [-6.0], [5.0]
    C = theory.adaptive_order_constant(A, b, terminal, [1e-4])
    apart = theory.tikhonov_solution(A, b, terminal, 1e-4) - 2.0
    assert C * 1e-4 / apart[0] == pytest.approx(1 + 1e-4, rel=1e-10)
