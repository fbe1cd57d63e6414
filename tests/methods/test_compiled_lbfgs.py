"""The compiled L-BFGS and conjugate gradients beside dense matrices and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from cfgd._core.box import Box
from cfgd.methods.compiled import lbfgs
from cfgd.methods.compiled.conjugate_gradients import solve_by_products
from cfgd.status import STATUSES


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def valleys(x):
    """Rosenbrock's, chained, with an asymmetric pull."""
    bend, way = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    return jnp.sum(20 * bend**2 + way**2) + 0.3 * jnp.sum(jnp.sin(jnp.arange(x.size)) * x)


def solve(fn, x0, box=None, most=5000, tolerance=1e-8):
    run = jax.jit(lambda z: lbfgs.solve(fn, box, z, tolerance, most))
    state, is_regular, _ = run(jnp.asarray(x0, float))
    return state, STATUSES[int(state.status)].name, bool(is_regular)


# ------------------------------------------------------------------ the memory


@pytest.mark.parametrize("count", [0, 3, lbfgs.PAIRS + 4])
def test_the_direction_is_that_of_the_dense_matrix(count):
    """With fewer pairs than places, and with more; a pair of negative curvature is left out."""
    random = np.random.default_rng(count)
    d = 5
    A = random.normal(size=(d, d))
    A = A @ A.T + np.eye(d)
    memory, kept = lbfgs._empty(jnp.zeros(d)), []
    for k in range(count):
        s = random.normal(size=d)
        y = -s if k == 1 else A @ s
        memory = lbfgs._added(memory, jnp.asarray(s), jnp.asarray(y))
        kept += [(s, y)] if s @ y > 0 else []
    kept = kept[-lbfgs.PAIRS :]
    g, z = random.normal(size=d), random.normal(size=d)
    zero, code = jnp.zeros(()), jnp.int32(0)
    state = lbfgs.State(jnp.asarray(z), zero, jnp.asarray(g), memory, z, zero, code, code)
    H = np.eye(d)
    if kept:
        s, y = kept[-1]
        H = H * (s @ y) / (y @ y)
    for s, y in kept:  # Nocedal and Wright, (6.17)
        V = np.eye(d) - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    wanted = H @ g if kept else 0.1 * np.linalg.norm(z) / np.linalg.norm(g) * g
    np.testing.assert_allclose(lbfgs._direction(state, None), wanted, rtol=1e-10)


# ------------------------------------------------------------------ runs


@pytest.mark.slow
def test_a_chain_of_valleys():
    x0 = np.full(130, -0.5)
    state, status, is_regular = solve(valleys, x0)
    assert status == "converged"
    assert is_regular
    found = scipy.optimize.minimize(
        valleys, state.z, jac=jax.grad(valleys), method="BFGS", options={"gtol": 1e-10}
    )
    np.testing.assert_allclose(state.z, found.x, rtol=1e-7, atol=1e-8)
    assert np.abs(jax.grad(valleys)(state.z)).max() < 1e-9


def test_bounds_on_both_sides():
    """The conditions of Karush, Kuhn and Tucker; the function is convex."""
    n = 30
    shifts = 2 * np.sin(np.arange(n))
    box = Box(np.full(n, -0.4), np.where(np.arange(n) % 2, 0.5, np.inf))

    def fn(x):
        return jnp.sum(jnp.cosh(x - shifts)) + jnp.sum((x[1:] - x[:-1]) ** 2)

    state, status, is_regular = solve(fn, np.full(n, 5.0), box)
    assert status == "converged"
    assert is_regular
    x, g = np.asarray(state.z), np.asarray(jax.grad(fn)(state.z))
    lower, upper = x == box.lower, x == box.upper
    assert lower.any()
    assert upper.any()
    assert (~lower & ~upper).any()
    assert (g[lower] > 0).all()
    assert (g[upper] < 0).all()
    assert np.abs(g[~lower & ~upper]).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fn", "x0", "most", "name"),
    [
        (valleys, np.full(8, -0.5), 3, "max_iterations"),
        (lambda x: jnp.sum(jnp.log(x)), -np.ones(3), 10, "nonfinite"),
        (lambda x: x[0] ** 2 - x[1] ** 2 + x[1] ** 4, np.array([1.0, 0.0]), 100, "saddle"),
        (lambda x: jnp.sum((x - 1) ** 2), np.ones(4), 10, "converged"),
    ],
)
def test_statuses(fn, x0, most, name):
    state, status, _ = solve(fn, x0, most=most)
    assert status == name
    if name == "max_iterations":
        assert int(state.iteration) == 3
        assert float(state.value) < float(valleys(jnp.asarray(x0)))


@pytest.mark.slow
def test_a_start_that_is_far_and_units_that_differ():
    scale = np.logspace(-1, 1, 40)
    state, status, _ = solve(lambda x: jnp.sum((scale * x - 3) ** 2), np.full(40, 1e4))
    assert status == "converged"
    np.testing.assert_allclose(state.z, 3 / scale, rtol=1e-8)


# ------------------------------------------------------------------ conjugate gradients


def test_a_definite_system():
    random = np.random.default_rng(0)
    A = random.normal(size=(6, 6))
    A, b = A @ A.T + np.eye(6), 1e-200 * random.normal(size=6)
    found = solve_by_products(lambda v: A @ v, jnp.asarray(b))
    np.testing.assert_allclose(found.solution, np.linalg.solve(A, b), rtol=1e-9)
    assert found.is_definite
    assert not found.is_indefinite


@pytest.mark.parametrize(
    ("diagonal", "is_indefinite"), [([1.0, 2.0, 0.0], False), ([1.0, 2.0, -1.0], True)]
)
def test_a_matrix_that_is_not_definite(diagonal, is_indefinite):
    found = solve_by_products(lambda v: jnp.array(diagonal) * v, jnp.array([1.0, -2.0, 0.5]))
    assert not found.is_definite
    assert bool(found.is_indefinite) == is_indefinite


def test_a_right_side_that_is_not_finite():
    found = solve_by_products(lambda v: 2 * v, jnp.array([1.0, jnp.nan]))
    assert np.isnan(found.solution).all()
    assert not found.is_definite
