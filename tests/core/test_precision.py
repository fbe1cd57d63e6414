"""Precision follows the data, and x has the array type of x0."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd import AdaptiveTerminal, GradientDescent, Status
from problems import (
    BOWL,
    TREE,
    WAVE_X0,
    A,
    B,
    do_nothing,
    pytree_bowl,
    quick,
    wave,
)

F, X0 = BOWL.objective, BOWL.x0


@pytest.fixture(params=[False, True], ids=["x64 off", "x64 on"])
def global_x64(request):
    """Set JAX's x64 flag as a user may, and check that it is unchanged afterwards."""
    with jax.enable_x64(request.param):
        yield request.param
        assert jax.config.jax_enable_x64 is request.param


def small_quadratic(dtype):
    return cfgd.Quadratic(A.astype(dtype), B.astype(dtype))


# x0, the precision of A and b, and what x must be
KINDS = {
    "float64": (X0, np.float64, np.ndarray, np.float64),
    "float32": (X0.astype(np.float32), np.float32, np.ndarray, np.float32),
    "jax float32": (lambda: jnp.asarray(X0, jnp.float32), np.float32, jax.Array, np.float32),
    "list of integers": ([1, -2, 1], np.float64, np.ndarray, np.float64),
    "integers": (np.array([1, -2, 1]), np.float64, np.ndarray, np.float64),
    "float32 start on float64 data": (
        X0.astype(np.float32),
        np.float64,
        np.ndarray,
        np.float64,
    ),
}


@pytest.mark.one_case
@pytest.mark.parametrize(("x0", "data", "kind", "dtype"), KINDS.values(), ids=KINDS)
def test_precision_follows_the_data(global_x64, x0, data, kind, dtype):
    x0 = x0() if callable(x0) else x0
    solution = cfgd.minimize(
        small_quadratic(data), x0, GradientDescent(), tolerance=1e-6, callback=do_nothing
    )
    assert isinstance(solution.x, kind)
    assert solution.x.dtype == dtype
    assert solution.status is Status.converged
    assert solution.history["value"].dtype == dtype
    np.testing.assert_allclose(solution.x, BOWL.minimiser, rtol=1e-4)


SEARCHES = {"armijo, x64 off": (cfgd.ArmijoStep(), False), "grid, x64 on": (cfgd.GridStep(), True)}


@pytest.mark.slow
@pytest.mark.parametrize(("step", "x64"), quick(SEARCHES, ["armijo, x64 off"]))
def test_float32_stays_float32_on_a_function(step, x64):
    """The method has several nodes, a lag and a line search."""
    method = AdaptiveTerminal(gamma=-0.1, lag=2, nodes=3, step=step)
    x0 = WAVE_X0.astype(np.float32)
    with jax.enable_x64(x64):
        solution = cfgd.minimize(wave, x0, method, max_iterations=20)
    assert solution.x.dtype == np.float32
    assert solution.value < float(wave(x0)) - 1


def test_float64_data_is_computed_in_float64_with_x64_off():
    """In float32 the error could not be below 1e-7."""
    assert not jax.config.jax_enable_x64
    solution = cfgd.minimize(F, X0, GradientDescent(), tolerance=1e-14)
    np.testing.assert_allclose(solution.x, BOWL.minimiser, rtol=1e-13)
    seen = []
    cfgd.minimize(lambda x: seen.append(x.dtype) or wave(x), WAVE_X0, GradientDescent())
    assert set(seen) == {np.dtype(np.float64)}
    assert not jax.config.jax_enable_x64


def test_an_error_leaves_the_x64_flag_unchanged():
    with pytest.raises(ZeroDivisionError):
        cfgd.minimize(F, X0, GradientDescent(), callback=lambda solution: 1 / 0)
    assert not jax.config.jax_enable_x64


@pytest.mark.slow
def test_pytrees_keep_structure_and_array_types():
    x0 = {"a": jnp.array([2.0, -1.0]), "b": np.float32(0.3)}
    solution = cfgd.minimize(pytree_bowl, x0, GradientDescent(), tolerance=1e-5)
    assert isinstance(solution.x["a"], jax.Array)
    assert isinstance(solution.x["b"], np.ndarray)
    assert solution.x["a"].dtype == solution.x["b"].dtype == np.float32
    assert solution.x["b"].shape == ()
    np.testing.assert_allclose(solution.x["a"], [10 / 7, 1.0], rtol=1e-3)
    np.testing.assert_allclose(solution.x["b"], -6 / 7, rtol=1e-3)


@pytest.mark.slow
def test_a_pytree_as_past():
    past = {"a": np.array([1.0, 3.0]), "b": np.array(-1.0)}

    def vector(v):
        return pytree_bowl({"a": v[:2], "b": v[2]})

    def end(f, x0, past):
        method = AdaptiveTerminal(gamma=0.2, past=[past], nodes=1)
        return cfgd.minimize(f, x0, method, max_iterations=6, tolerance=0).x

    got, want = end(pytree_bowl, TREE, past), end(vector, [2.0, -1.0, 0.3], [1.0, 3.0, -1.0])
    np.testing.assert_allclose([*got["a"], got["b"]], want, rtol=1e-13)


SHAPES = {"a number": 3.0, "0-d": np.array(3.0), "a matrix": np.array([[3.0, 1.0], [0.5, -2.0]])}


@pytest.mark.parametrize("x0", quick(SHAPES, ["a matrix"]))
def test_x_has_the_shape_of_x0(x0):
    solution = cfgd.minimize(lambda x: jnp.sum((x - 1.0) ** 4 + x**2), x0, GradientDescent())
    assert isinstance(solution.x, np.ndarray)
    assert solution.x.shape == np.shape(x0)
    root = np.roots([4, -12, 14, -4])  # 4 (x - 1)^3 + 2 x
    np.testing.assert_allclose(solution.x, root[np.isreal(root)].real[0], rtol=1e-6)
