"""Auto on quadratics: preconditioned conjugate gradients."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from oracles import oracle_for, random_spd

import cfgd
from cfgd import Status
from cfgd.methods.auto.conjugate_gradients import REFRESH, ConjugateGradients
from cfgd.methods.auto.state import Goal
from judge.families import problem_of
from problems import (
    X as TALL,
    Y as TALL_Y,
    few,
    gas_table,
    identity,
    ill_conditioned,
    needs_gas,
)

RECORD = {"x": identity, "eta": "eta", "gamma": "gamma"}


def jacobi_cg(A, b, x, iterations):
    """Return the iterates of conjugate gradients for Ax + b = 0, preconditioned by diag(A)."""
    D, points = np.diag(A), [x]
    r = -(A @ x + b)
    z = r / np.where(D > 0, D, 1)
    p, rz = z, r @ z
    for _ in range(iterations):
        Ap = A @ p
        step = rz / (p @ Ap)
        x, r = x + step * p, r - step * Ap
        z = r / np.where(D > 0, D, 1)
        rz, old = r @ z, rz
        p = z + rz / old * p
        points.append(x)
    return np.array(points)


def system(kind):
    """Return objective, A, b and x0 of a quadratic whose coordinates differ in scale."""
    random = np.random.default_rng(5)
    m, d = {"quadratic": (40, 25), "tall": (40, 25), "wide": (15, 25), "sparse": (60, 25)}[kind]
    X = random.normal(size=(m, d)) * np.geomspace(0.1, 10, d)
    if kind == "sparse":
        X[random.random(X.shape) < 0.7] = 0.0
    y, x0 = random.normal(size=m), random.normal(size=d)
    A, b = X.T @ X, -X.T @ y
    given = scipy.sparse.csr_array(X) if kind == "sparse" else X
    objective = cfgd.Quadratic(A, b) if kind == "quadratic" else cfgd.LeastSquares(given, y)
    return objective, A, b, x0


# ---------------------------------------------------------------- iterates


@pytest.mark.parametrize("kind", few(["quadratic", "wide", "sparse", "tall"], 3))
def test_iterates_are_those_of_preconditioned_conjugate_gradients(kind):
    objective, A, b, x0 = system(kind)
    end = cfgd.minimize(objective, x0, cfgd.Auto(), record=RECORD, max_iterations=10)
    expected = jacobi_cg(A, b, x0, 10)
    np.testing.assert_allclose(end.history["x"], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", few(["quadratic", "wide", "sparse", "tall"], 2))
def test_eta_and_gamma_of_the_history_make_the_steps(kind):
    """They are those of the paper's direction in coordinates scaled by D, with lag 1."""
    objective, A, b, x0 = system(kind)
    end = cfgd.minimize(objective, x0, cfgd.Auto(), record=RECORD, max_iterations=10)
    x, eta, gamma = (end.history[name] for name in ("x", "eta", "gamma"))
    for k in range(9):
        terminal = x[k - 1] if k else x[0]
        d = (A @ x[k] + b) / np.diag(A) + gamma[k + 1] * (x[k] - terminal)
        np.testing.assert_allclose(x[k + 1], x[k] - eta[k + 1] * d, rtol=1e-7, atol=1e-9)
    assert np.isnan(eta[0])
    assert gamma[1] == 0
    assert np.all(gamma[2:] < 0)  # momentum


def test_eta_and_gamma_of_the_state_make_the_next_step():
    objective, A, b, x0 = system("quadratic")
    oracle, solver = oracle_for(objective, x0), ConjugateGradients()
    states = [solver.init(oracle, x0)]
    for _ in range(3):
        states.append(solver.step(oracle, states[-1], Goal(0.0)))
    points = [state.evaluation.x for state in states]
    for k in (1, 2):
        x, eta, gamma = points[k], states[k + 1].eta, states[k + 1].gamma
        assert gamma < 0
        d = (A @ x + b) / np.diag(A) + gamma * (x - points[k - 1])
        np.testing.assert_allclose(points[k + 1], x - eta * d, rtol=1e-9)


def test_residuals_are_those_of_scipys_conjugate_gradients():
    """SciPy's with M = diag(A)^-1, for as long as rounding leaves both directions conjugate."""
    random = np.random.default_rng(8)
    A, b, x0 = random_spd(random, 30, 1e3), random.normal(size=30), random.normal(size=30)
    theirs = [np.linalg.norm(A @ x0 + b)]
    scipy.sparse.linalg.cg(
        A,
        -b,
        x0,
        rtol=0,
        maxiter=12,
        M=np.diag(1 / np.diag(A)),
        callback=lambda x: theirs.append(np.linalg.norm(A @ x + b)),
    )
    end = cfgd.minimize(cfgd.Quadratic(A, b), x0, tolerance=0.0, max_iterations=12)
    np.testing.assert_allclose(end.history["gradient_norm"], theirs, rtol=1e-6)


@pytest.mark.parametrize("kind", few(["quadratic", "tall", "sparse"], 2))
def test_the_solution_is_that_of_a_direct_solver(kind):
    objective, A, b, x0 = system(kind)
    end = cfgd.minimize(objective, x0, tolerance=1e-12)
    assert end.success
    np.testing.assert_allclose(end.x, np.linalg.solve(A, -b), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("seed", few(range(5)))
def test_iterations_on_the_papers_ill_conditioned_construction(seed):
    problem, _, minimiser = ill_conditioned(seed)
    x0, scale = problem.x0, 1 / np.sqrt(np.diag(problem.A))
    scaled, right = scale[:, None] * problem.A * scale, -scale * problem.b
    seen = []
    options = {"rtol": 0, "maxiter": 80, "callback": lambda u: seen.append(u.copy())}
    scipy.sparse.linalg.cg(scaled, right, x0 / scale, **options)
    theirs = 1 + np.flatnonzero([np.linalg.norm(scale * u - minimiser) < 1e-8 for u in seen])[0]
    end = cfgd.minimize(problem.objective, x0, tolerance=0.0, max_iterations=80, record=RECORD)
    errors = np.linalg.norm(end.history["x"] - minimiser, axis=1)
    ours = np.flatnonzero(errors < 1e-8)[0]
    assert ours <= 1.3 * theirs


def test_the_evaluation_is_computed_again_after_many_recurrences():
    """One in every REFRESH iterations, and one more where the gradient is small."""
    random = np.random.default_rng(2)
    A, b, x0 = random_spd(random, 300, 1e10), random.normal(size=300), np.zeros(300)
    oracle, solver = oracle_for(cfgd.Quadratic(A, b), x0), ConjugateGradients()
    state, computed = solver.init(oracle, x0), []
    evaluate = oracle.evaluate
    oracle.evaluate = lambda x: computed.append(state.iteration) or evaluate(x)
    while state.iteration < 2 * REFRESH + 1:
        state = solver.step(oracle, state, Goal(0.0))
        assert state.status is Status.running
    assert computed == [REFRESH, 2 * REFRESH]


# ---------------------------------------------------------------- singular systems


def nearest(A, b, x0):
    """Return the solution of Ax + b = 0 nearest to x0 in the norm of D, by the pseudoinverse."""
    D = np.diag(A)
    scale = 1 / np.sqrt(np.where(D > 0, D, 1))
    return x0 - scale * (np.linalg.pinv(scale[:, None] * A * scale) @ (scale * (A @ x0 + b)))


@pytest.mark.parametrize("kind", few(["singular", "sparse", "zero column", "tall", "wide"], 3))
def test_singular_systems_have_the_nearest_solution(kind):
    random = np.random.default_rng(3)
    scales = np.array([1.0, 4.0, 0.3, 2.0, 1.5, 0.7])
    X = random.normal(size=(4, 6)) * scales
    if kind == "tall":
        X = random.normal(size=(20, 3)) @ random.normal(size=(3, 6)) * scales
    if kind == "zero column":
        X[:, 2] = 0
    y, x0 = random.normal(size=len(X)), random.normal(size=6)
    A, b = X.T @ X, -X.T @ y
    given = scipy.sparse.csr_array(X) if kind == "sparse" else X
    objective = cfgd.Quadratic(A, b) if kind == "singular" else cfgd.LeastSquares(given, y)
    end = cfgd.minimize(objective, x0, tolerance=1e-10)
    np.testing.assert_allclose(end.x, nearest(A, b, x0), rtol=1e-6, atol=1e-7)
    assert "singular" in end.summary
    assert "nearest to x0" in end.summary


def test_regular_systems_are_not_described_as_singular():
    problem, _, _ = ill_conditioned(0)
    assert "singular" not in cfgd.minimize(problem.objective, problem.x0).summary
    ridge = cfgd.LeastSquares(TALL[:2], TALL_Y[:2], l2=0.1)
    assert "singular" not in cfgd.minimize(ridge, np.zeros(3)).summary


def test_a_slope_without_curvature_is_unbounded():
    f = cfgd.Quadratic(np.diag([1.0, 0.0]), [1.0, 1.0])
    assert cfgd.minimize(f, [0.0, 0.0]).status is Status.unbounded


@pytest.mark.slow
@needs_gas
def test_gas_data():
    table = gas_table()
    table = (table - table.mean(0)) / table.std(0)
    X, y = table[:, :-1], table[:, -1]
    minimiser = np.linalg.lstsq(X, y, rcond=None)[0]
    x0 = np.random.default_rng(0).uniform(-1, 1, 128)
    end = cfgd.minimize(
        cfgd.LeastSquares(X, y), x0, tolerance=0.0, max_iterations=3000, record={"x": identity}
    )
    errors = np.linalg.norm(end.history["x"] - minimiser, axis=1)
    assert np.flatnonzero(errors <= 1e-5)[0] <= 2500
    assert errors.min() <= 1e-8
    assert np.linalg.norm(end.x - minimiser) <= 1e-7


def test_a_sum_of_squares_is_not_unbounded():
    """Column sizes differ by so much that rounding hides the curvature along a direction."""
    problem = problem_of("least_squares", 5029)
    solution = cfgd.minimize(problem.objective, problem.x0)
    assert solution.status is not Status.unbounded
