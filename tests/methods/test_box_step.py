"""Steps under bounds: the minimiser of a quadratic model in a box, and the matrix of L-BFGS."""

import itertools

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import cfgd
from cfgd._core.box import Box
from cfgd.methods.auto import box_step
from cfgd.methods.auto.bounded_system import system_at
from cfgd.methods.auto.box_step import minimise_in_box
from cfgd.methods.auto.lbfgs_memory import CompactMatrix, Memory, Pair, direction, next_direction
from cfgd.methods.auto.oracle import Oracle
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.host import host_objective


def random_model(seed, d):
    """Return M, g and bounds; about a quarter of the bounds are missing."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d))
    lower, upper = -rng.exponential(size=d), rng.exponential(size=d)
    lower[rng.random(d) < 0.25], upper[rng.random(d) < 0.25] = -np.inf, np.inf
    return A @ A.T + 0.1 * np.eye(d), 3 * rng.normal(size=d), lower, upper


def by_enumeration(M, g, lower, upper):
    """Try every set of active bounds, and return the best feasible minimiser."""
    best, least = None, np.inf
    for sides in itertools.product((-1, 0, 1), repeat=len(g)):
        side = np.array(sides)
        p = np.where(side < 0, lower, np.where(side > 0, upper, 0.0))
        if not np.isfinite(p).all():
            continue
        free = side == 0
        if free.any():
            right = (g - M[:, ~free] @ p[~free])[free]
            p[free] = np.linalg.solve(M[np.ix_(free, free)], right)
        value = p @ M @ p / 2 - g @ p
        if ((p >= lower - 1e-12) & (p <= upper + 1e-12)).all() and value < least:
            best, least = p, value
    return best


def in_box(M, g, lower, upper):
    def solve(free, fixed):
        p = fixed.copy()
        p[free] = np.linalg.solve(M[np.ix_(free, free)], (g - M @ fixed)[free])
        return p

    return minimise_in_box(solve, lambda p: g - M @ p, np.linalg.solve(M, g), lower, upper)


@pytest.mark.parametrize("seed", range(8))
def test_the_minimiser_in_a_box_is_that_of_all_active_sets(seed):
    model = random_model(seed, 5)
    np.testing.assert_allclose(in_box(*model), by_enumeration(*model), atol=1e-10)


def test_the_minimiser_of_a_large_model_meets_the_optimality_conditions():
    M, g, lower, upper = random_model(3, 200)
    p = in_box(M, g, lower, upper)
    slope = g - M @ p
    assert ((p >= lower) & (p <= upper)).all()
    assert (p == lower).any()
    assert (p == upper).any()
    assert (slope[p == lower] <= 1e-9).all()
    assert (slope[p == upper] >= -1e-9).all()
    assert abs(slope[(p > lower) & (p < upper)]).max() < 1e-9


def test_equal_bounds_keep_a_coordinate():
    M, g, lower, upper = random_model(1, 4)
    lower[2] = upper[2] = 0.25
    found = in_box(M, g, lower, upper)
    assert found[2] == 0.25
    np.testing.assert_allclose(found, by_enumeration(M, g, lower, upper), atol=1e-10)


# ------------------------------------------------------------------ L-BFGS


def memory_of(pairs, x):
    memory = Memory.empty(x)
    for step, change in pairs:
        memory.add(Pair.of(step, change))
    return memory


def bfgs_matrix(pairs, start):
    """Update a dense matrix by the formula of BFGS."""
    B = np.diag(start)
    for s, y in pairs:
        Bs = B @ s
        B = B - np.outer(Bs, Bs) / (s @ Bs) + np.outer(y, y) / (s @ y)
    return B


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(7, 7))
    H = A @ A.T + np.eye(7)
    steps = rng.normal(size=(20, 7))  # more than the memory holds
    return [(s, H @ s) for s in steps]


def test_the_compact_matrix_is_that_of_bfgs(pairs):
    rng = np.random.default_rng(0)
    P, v = rng.uniform(0.5, 2, 7), rng.normal(size=7)
    kept = pairs[-16:]
    s, y = kept[-1]
    B = bfgs_matrix(kept, P * (y @ (y / P)) / (s @ y))
    compact = CompactMatrix(memory_of(pairs, v), P)
    np.testing.assert_allclose(compact.times(v), B @ v, rtol=1e-8)
    free = np.array([1, 0, 1, 1, 0, 1, 1], bool)
    want = np.linalg.solve(B[np.ix_(free, free)], v[free])
    np.testing.assert_allclose(compact.solve(free, v), want, rtol=1e-7)
    p = direction(memory_of(pairs, v), v, P, np.zeros(7)).p
    np.testing.assert_allclose(compact.solve(np.ones(7, bool), v), p, rtol=1e-7)


def test_a_step_of_lbfgs_minimises_its_model_in_the_box(pairs):
    rng = np.random.default_rng(4)
    P, g, x = np.ones(7), rng.normal(size=7), rng.normal(size=7)
    box = Box(x - rng.exponential(size=7) / 50, x + rng.exponential(size=7) / 50)
    s, y = pairs[2]
    B = bfgs_matrix(pairs[:3], P * (y @ y) / (s @ y))
    found = next_direction(memory_of(pairs[:3], x), Evaluation(x, g[0], g), P, np.zeros(7), box)
    want = by_enumeration(B, g, x - box.upper, x - box.lower)
    np.testing.assert_allclose(found.p, want, atol=1e-9)
    assert found.slope == pytest.approx(g @ want)


# ------------------------------------------------------------------ Levenberg-Marquardt


@pytest.mark.parametrize("m", [12, 4])  # tall and wide
def test_a_damped_step_is_a_bounded_least_squares_solution(m):
    rng = np.random.default_rng(m)
    d, damping = 6, 1e-2
    J, r, x = rng.normal(size=(m, d)), rng.normal(size=m), rng.normal(size=d)
    oracle = Oracle(host_objective(cfgd.Residuals(lambda z: J @ z - (J @ x - r))), x)
    oracle.box = Box(x - rng.exponential(size=d) / 5, x + rng.exponential(size=d) / 5)
    at = oracle.evaluate(x)
    system = system_at(oracle, oracle.curvature(at), at, np.zeros(d), np.float64(1.0))
    D = (J**2).sum(0)
    stacked = np.concatenate([J, np.sqrt(damping) * np.diag(np.sqrt(D))])
    bounds = x - oracle.box.upper, x - oracle.box.lower
    want = lsq_linear(stacked, np.concatenate([r, np.zeros(d)]), bounds, tol=1e-14).x
    found = system.solve(damping)
    np.testing.assert_allclose(found.p, want, atol=1e-7)
    after = r - J @ found.p
    assert found.decrease == pytest.approx((r @ r - after @ after) / 2)


def test_bounds_are_changed_one_at_a_time_where_guesses_cycle(monkeypatch):
    monkeypatch.setattr(box_step, "MOST_GUESSES", 1)
    for seed in range(4):
        model = random_model(seed, 5)
        np.testing.assert_allclose(in_box(*model), by_enumeration(*model), atol=1e-10)
