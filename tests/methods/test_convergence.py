"""Section 4.1 of the paper and its theorems: where the methods go."""

import numpy as np
import pytest

import cfgd
from cfgd import Status
from problems import BOWL, METHODS, STAGES, A, C, few, identity, ill_conditioned, least_squares

GAMMAS = (0.15, 10.0, 0.25, 0.5, 0.75, 1.0)


@pytest.fixture(scope="module")
def random_data():
    """d = m = 100, entries of W from N(0, 1/m), x0 standard normal."""
    rng = np.random.default_rng(0)
    X = rng.normal(scale=0.1, size=(100, 100))
    return least_squares(X, rng.normal(size=100), rng.normal(size=100))


@pytest.mark.one_case
@pytest.mark.parametrize("gamma", few(GAMMAS, 2))
@pytest.mark.parametrize("step", ["exact", "fixed"])
def test_non_adaptive_converges_to_the_tikhonov_solution(random_data, gamma, step):
    ones = np.ones(100)
    largest = np.linalg.eigvalsh(cfgd.theory.tilde_A(random_data.A, gamma))[-1]
    rule = cfgd.ExactStep() if step == "exact" else cfgd.FixedStep(1 / largest)
    solution = cfgd.minimize(
        random_data.objective,
        random_data.x0,
        cfgd.NonAdaptive(ones, gamma=gamma, step=rule),
        tolerance=1e-11,
    )
    want = cfgd.theory.tikhonov_solution(random_data.A, random_data.b, ones, gamma)
    assert solution.status is Status.converged
    assert np.linalg.norm(solution.x - want) <= 1e-8
    # and this is no minimiser of f
    assert solution.gradient_norm > 1e-2


def literal_iterates(problem, gamma, c, iterations):
    """The non-adaptive version with the paper's <g, d> / d'Ad."""
    x, D, points = problem.x0, np.diag(problem.A), [problem.x0]
    for _ in range(iterations):
        g = problem.A @ x + problem.b
        d = g + gamma * D * (x - c)
        x = x - g @ d / (d @ problem.A @ d) * d
        points.append(x)
    return np.array(points)


@pytest.mark.slow
def test_the_literal_line_search_misses_the_tikhonov_solution():
    want = cfgd.theory.tikhonov_solution(BOWL.A, BOWL.b, C, 0.5)
    literal = np.linalg.norm(literal_iterates(BOWL, 0.5, C, 2000) - want, axis=1)
    assert literal.min() > 1e-3
    ours = cfgd.minimize(
        BOWL.objective,
        BOWL.x0,
        cfgd.NonAdaptive(C, gamma=0.5),
        tolerance=1e-10,
        record={"x": identity},
    )
    assert ours.iterations < 200
    assert np.linalg.norm(ours.x - want) <= 1e-8


@pytest.mark.parametrize("seed", few(range(5)))
def test_adaptive_terminal_on_the_ill_conditioned_construction(seed):
    """gamma = -0.25 and lag 1 reach 1e-10 within 4e4 iterations."""
    problem, past, minimiser = ill_conditioned(seed)
    solution = cfgd.minimize(
        problem.objective,
        problem.x0,
        cfgd.AdaptiveTerminal(gamma=-0.25, past=past),
        max_iterations=40_000,
        tolerance=0,
        every=100,
        record={"x": identity},
    )
    errors = np.linalg.norm(solution.history["x"] - minimiser, axis=1)
    assert errors[0] > 1
    assert errors.min() <= 1e-10
    assert np.linalg.norm(solution.x - minimiser) <= 1e-10


def test_adaptive_order_stays_within_its_bound():
    """gamma falls by 0.4 from stage to stage; each ends within the bound of theorem 5."""
    gammas = [0.6 * 0.4**s for s in range(12)] + [0.0]
    stages = [(40, gamma) for gamma in gammas[:-1]] + [(300, 0.0)]
    # the theorem's step is eta_s / sigma_max(A + gamma_s D); one eta for all stages is smaller
    largest = [np.linalg.eigvalsh(cfgd.theory.tilde_A(A, gamma))[-1] for gamma in gammas]
    eta = 1 / max(largest)
    method = cfgd.AdaptiveOrder(
        [cfgd.Stage(n, gamma=gamma) for n, gamma in stages], C, step=cfgd.FixedStep(eta)
    )
    solution = cfgd.minimize(BOWL.objective, BOWL.x0, method, tolerance=0, record={"x": identity})
    bounds = cfgd.theory.adaptive_order_bound(
        BOWL.A, BOWL.b, C, BOWL.x0, stages, [eta * high for high in largest]
    )
    ends = np.cumsum([n for n, _ in stages])
    errors = np.linalg.norm(solution.history["x"][ends] - BOWL.minimiser, axis=1)
    assert np.all(errors <= bounds * (1 + 1e-12))
    assert errors[-1] <= 1e-8
    assert np.all(np.diff(errors) < 0)
    assert solution.status is Status.stages_done
    np.testing.assert_allclose(solution.x, BOWL.minimiser, atol=1e-8)


@pytest.mark.slow
def test_a_stage_ends_by_its_length_and_not_by_its_direction():
    """The first stage reaches its own limit, where d = 0 but f is not least: the run goes on."""
    stages = [cfgd.Stage(300, gamma=1.0), cfgd.Stage(300, gamma=0.0)]
    method = cfgd.AdaptiveOrder(stages, C)
    solution = cfgd.minimize(BOWL.objective, BOWL.x0, method)
    assert solution.iterations > 300
    assert solution.status is Status.converged
    np.testing.assert_allclose(solution.x, BOWL.minimiser, atol=1e-6)


def test_the_table_of_stages_is_what_the_method_holds():
    method = METHODS["adaptive order"].make(cfgd.ExactStep())
    assert method.traits.last_iteration == sum(n for n, _, _ in STAGES)
