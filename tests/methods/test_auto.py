"""Auto: on quadratics conjugate gradients, and what it tells its user."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse.linalg

import cfgd
from problems import (
    BOWL,
    X as TALL,
    Y as TALL_Y,
    few,
    gas_table,
    identity,
    ill_conditioned,
    needs_gas,
)

RECORD = {"x": identity, "eta": "eta", "gamma": "gamma"}


# ---------------------------------------------------------------- quadratics: NumPy's own loop


def jacobi_cg(A, b, x, iterations):
    """Conjugate gradients for Ax + b = 0, preconditioned by diag(A): x_0, ..., x_iterations."""
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
    """objective, A, b, x0 of a quadratic whose scales differ from coordinate to coordinate."""
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


@pytest.mark.parametrize("kind", few(["quadratic", "wide", "sparse", "tall"], 3))
def test_quadratics_are_jacobi_preconditioned_conjugate_gradients(kind):
    objective, A, b, x0 = system(kind)
    ends = cfgd.minimize(objective, x0, cfgd.Auto(), record=RECORD, max_iterations=10)
    expected = jacobi_cg(A, b, x0, 10)
    np.testing.assert_allclose(ends.history["x"], expected, rtol=1e-8, atol=1e-8)
    # the same steps by the numbers in the history: the fractional direction in coordinates of D
    x, eta, gamma = (ends.history[name] for name in ("x", "eta", "gamma"))
    for k in range(9):
        terminal = x[k - 1] if k else x[0]
        d = (A @ x[k] + b) / np.diag(A) + gamma[k + 1] * (x[k] - terminal)
        np.testing.assert_allclose(x[k + 1], x[k] - eta[k + 1] * d, rtol=1e-7, atol=1e-9)
    assert np.isnan(eta[0])
    assert gamma[1] == 0
    assert np.all(gamma[2:] < 0)  # momentum


@pytest.mark.parametrize("seed", few(range(5)))
def test_iterations_on_the_papers_construction(seed):
    problem, _, minimiser = ill_conditioned(seed)
    x0, scale = problem.x0, 1 / np.sqrt(np.diag(problem.A))
    scaled, right = scale[:, None] * problem.A * scale, -scale * problem.b
    seen = []
    keep = {"rtol": 0, "maxiter": 80, "callback": lambda u: seen.append(u.copy())}
    scipy.sparse.linalg.cg(scaled, right, x0 / scale, **keep)
    theirs = 1 + np.flatnonzero([np.linalg.norm(scale * u - minimiser) < 1e-8 for u in seen])[0]
    ends = cfgd.minimize(problem.objective, x0, tolerance=0.0, max_iterations=80, record=RECORD)
    errors = np.linalg.norm(ends.history["x"] - minimiser, axis=1)
    ours = np.flatnonzero(errors < 1e-8)[0]
    assert ours <= 1.3 * theirs


def nearest(A, b, x0):
    """The solution of Ax + b = 0 nearest to x0 in the norm of D, by the pseudoinverse."""
    D = np.diag(A)
    scale = 1 / np.sqrt(np.where(D > 0, D, 1))
    return x0 - scale * (np.linalg.pinv(scale[:, None] * A * scale) @ (scale * (A @ x0 + b)))


@pytest.mark.parametrize("kind", few(["singular", "sparse", "zero column", "tall", "wide"], 3))
def test_singular_systems_give_the_nearest_solution(kind):
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
    ends = cfgd.minimize(objective, x0, tolerance=1e-10)
    np.testing.assert_allclose(ends.x, nearest(A, b, x0), rtol=1e-6, atol=1e-7)
    assert "singular" in ends.summary
    assert "nearest to x0" in ends.summary


def test_the_chosen_numbers_are_in_the_state():
    """x - eta (D^-1 g + gamma (x - c)), c being the point before, with the numbers of the state."""
    objective, A, b, x0 = system("quadratic")
    points, states = [x0], []
    with jax.enable_x64(True):
        state = cfgd.Auto().start(objective, jnp.asarray(x0))
        for _ in range(3):
            state, _ = cfgd.Auto().step(objective, state)
            points.append(np.asarray(state.point.x))
            states.append(state)
    for k in (1, 2):
        x, eta, gamma = points[k], float(states[k].eta), float(states[k].gamma)
        assert gamma < 0
        d = (A @ x + b) / np.diag(A) + gamma * (x - points[k - 1])
        np.testing.assert_allclose(points[k + 1], x - eta * d, rtol=1e-9)


def test_regular_systems_are_not_called_singular():
    problem, _, _ = ill_conditioned(0)
    assert "singular" not in cfgd.minimize(problem.objective, problem.x0).summary
    ridge = cfgd.LeastSquares(TALL[:2], TALL_Y[:2], l2=0.1)
    assert "singular" not in cfgd.minimize(ridge, np.zeros(3)).summary


@pytest.mark.slow
@needs_gas
def test_gas_data():
    table = gas_table()
    table = (table - table.mean(0)) / table.std(0)
    X, y = table[:, :-1], table[:, -1]
    minimiser = np.linalg.lstsq(X, y, rcond=None)[0]
    x0 = np.random.default_rng(0).uniform(-1, 1, 128)
    ends = cfgd.minimize(
        cfgd.LeastSquares(X, y), x0, tolerance=0.0, max_iterations=3000, record={"x": identity}
    )
    errors = np.linalg.norm(ends.history["x"] - minimiser, axis=1)
    assert np.flatnonzero(errors <= 1e-5)[0] <= 2500
    assert errors.min() <= 1e-8
    assert np.linalg.norm(ends.x - minimiser) <= 1e-7


# ---------------------------------------------------------------- what a user sees


def test_no_method_is_auto():
    ends, again = (cfgd.minimize(BOWL.objective, BOWL.x0, m) for m in (None, cfgd.Auto()))
    np.testing.assert_array_equal(ends.x, again.x)
    assert ends.how == again.how
    assert ends.how.startswith("Auto")


@pytest.mark.parametrize(
    "method",
    few(
        [
            cfgd.Auto(),
            cfgd.AdaptiveOrder([cfgd.Stage(20, gamma=0.3), cfgd.Stage(40, gamma=0.0)], BOWL.x0),
            cfgd.GradientDescent(),
            cfgd.AdaptiveTerminal(gamma=-0.25),
            cfgd.NonAdaptive(BOWL.x0, gamma=0.4),
        ],
        3,
    ),
    ids=lambda method: type(method).__name__,
)
def test_every_solution_says_in_one_line_what_was_done(method):
    ends = cfgd.minimize(BOWL.objective, BOWL.x0, method, max_iterations=30)
    assert "\n" not in ends.summary
    assert type(method).__name__ in ends.summary or "radient descent" in ends.summary
    assert f"{ends.iterations} iterations" in ends.summary
    assert f"{ends.evaluations:g} gradients" in ends.summary
    assert ends.summary.endswith(ends.status.name)
