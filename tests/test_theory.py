"""The theorems as inequalities on many problems, and as equalities where they are tight.

The iterations are plain NumPy loops written here: neither side of an inequality may come from
the solver.
"""

import re
from typing import NamedTuple

import numpy as np
import pytest

from cfgd import theory
from problems import few, gas_table, needs_gas

SEEDS = range(24)
seeds = pytest.mark.parametrize("seed", few(SEEDS, 4))
lags = pytest.mark.parametrize("lag", [1, 2, 3, 4])


class Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    A: np.ndarray
    b: np.ndarray
    terminal: np.ndarray
    x0: np.ndarray
    gamma: float  # even seeds: positive; odd seeds: negative, with A + gamma D positive definite
    eta: float  # in (0, 2)

    @property
    def x_star(self):
        return np.linalg.lstsq(self.X, self.y)[0]


def problem(seed):
    """Least squares with columns of different sizes: diag(A) is no multiple of I, A is full."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    X = rng.normal(size=(d + 6, d)) * rng.permutation(np.linspace(0.5, 3, d)) + 0.3
    y = rng.normal(size=d + 6)
    A = X.T @ X
    root = np.sqrt(np.diag(A))
    lowest = -np.linalg.eigvalsh(A / np.outer(root, root))[0]  # there A + gamma D is singular
    gamma = rng.uniform(0.05, 3) if seed % 2 == 0 else rng.uniform(0.1, 0.8) * lowest
    terminal, x0 = rng.normal(size=(2, d)) * 3
    return Problem(X, y, A, -X.T @ y, terminal, x0, gamma, rng.uniform(0.05, 1.95))


def standardised(seed, d=5):
    """A correlation matrix: D = I."""
    X = np.random.default_rng(seed).normal(size=(d + 3, d)) + 0.8
    A = X.T @ X
    root = np.sqrt(np.diag(A))
    A = A / np.outer(root, root)
    np.fill_diagonal(A, 1.0)
    return A


def non_adaptive(A, b, terminal, gamma, step, x, iterations):
    """x_0, ..., x_iterations of the non-adaptive method."""
    points = [x]
    for _ in range(iterations):
        x = x - step * (A @ x + b + gamma * np.diag(A) * (x - terminal))
        points.append(x)
    return np.array(points)


def adaptive_terminal(A, b, gamma, eta, past, iterations):
    """x_0, ..., x_iterations of the adaptive terminal from past[j] = x_{-j}, j = 0, ..., lag."""
    points = list(past[::-1])
    lag = len(points) - 1
    for _ in range(iterations):
        x, terminal = points[-1], points[-1 - lag]
        points.append(x - eta * (A @ x + b + gamma * np.diag(A) * (x - terminal)))
    return np.array(points[lag:])


def companion(A, gamma, eta, lag):
    """The matrix M in the proof of Theorem 4, block by block."""
    d = len(A)
    G = gamma * np.diag(np.diag(A))
    M = np.zeros((lag + 1, d, lag + 1, d))
    M[0, :, 0] = np.eye(d) - eta * (A + G)
    M[0, :, lag] += eta * G
    for j in range(lag):
        M[j + 1, :, j] = np.eye(d)
    return M.reshape((lag + 1) * d, (lag + 1) * d)


def norms(errors):
    return np.linalg.norm(errors, axis=-1)


def assert_below(observed, bound, scale):
    """At every k; `scale` is the size of the numbers whose rounding shows in `observed`."""
    observed, bound = np.asarray(observed), np.asarray(bound)
    assert observed.shape == bound.shape
    np.testing.assert_array_less(observed, bound * (1 + 1e-12) + 1e-12 * scale)


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


# Theorem 4: the adaptive terminal.


def lagged(seed, lag):
    """A problem, a step on either side of stability, and lag + 1 starting points."""
    p = problem(seed)
    rng = np.random.default_rng(1000 + 10 * seed + lag)
    gamma = p.gamma if seed % 2 == 0 else -rng.uniform(0.02, 0.9)
    eta = rng.uniform(0.1, 2.6) / np.linalg.norm(p.A + abs(gamma) * np.diag(np.diag(p.A)), 2)
    return p, gamma, eta, p.x_star + rng.normal(size=(lag + 1, len(p.A)))


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
    """D = 4 I: another way through the code."""
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


@pytest.mark.parametrize("seed", range(6))
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


# Theorem 5: the adaptive order.


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


# Beyond the paper: the best constants.


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


# Bad input.

I2 = np.eye(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.tilde_A([[1.0, 2.0, 3.0]], 0.0),
            "`tilde_A(A=...)` must be a square matrix, got shape (1, 3).",
        ),
        (
            lambda: theory.tilde_A([[1.0, 2.0], [0.0, 1.0]], 0.0),
            "`tilde_A(A=...)` must be symmetric, got a gap of 2.",
        ),
        (
            lambda: theory.tilde_A(I2, [1.0, 2.0, 3.0]),
            "`tilde_A(gamma=...)` must have shape () or (2,), got (3,).",
        ),
        (
            lambda: theory.tikhonov_solution(I2, [1.0, 2.0], [0.0], 1.0),
            "`tikhonov_solution(terminal=...)` must have shape (2,), got (1,).",
        ),
        (
            lambda: theory.non_adaptive_rate(I2, 0.0, 2.0),
            "`non_adaptive_rate(eta=...)` must lie in (0, 2), got 2.0.",
        ),
        (
            lambda: theory.non_adaptive_rate(I2, -1.5, 1.0),
            "`non_adaptive_rate(gamma=...)` must make A + gamma diag(A) positive definite, "
            "got a smallest eigenvalue of -0.5.",
        ),
        (
            lambda: theory.spectral_radius(I2, 0.0, 1.0, 0),
            "`spectral_radius(lag=...)` must be at least 1, got 0.",
        ),
        (
            lambda: theory.adaptive_terminal_matrices(I2, 0.0, 1.0, 1, -1),
            "`adaptive_terminal_matrices(iterations=...)` must be at least 0, got -1.",
        ),
        (
            lambda: theory.adaptive_terminal_bound(I2, 0.0, 1.0, [1.0], 3),
            "`adaptive_terminal_bound(errors=...)` must hold at least two numbers, got shape (1,).",
        ),
        (
            lambda: theory.adaptive_order_bound(I2, [1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [], 1.0),
            "`adaptive_order_bound(stages=...)` must hold at least one stage, got none.",
        ),
        (
            lambda: theory.best_constants([1.0, -2.0]),
            "`best_constants(eigenvalues=...)` must be positive, got -2.0.",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_message(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
