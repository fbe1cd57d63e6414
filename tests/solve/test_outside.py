"""A run on the host is the run of the compiled loop, and goes on in one where it is long."""

import jax.numpy as jnp
import numpy as np
import pytest
from cfgd.solve.inside import Inside

import cfgd
from cfgd.solve.host_loop import Outside
from problems import few, identity


def valley(x):
    return jnp.sum(30 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


X0 = np.array([-0.7, 0.4, 1.3, -0.2])
RECORD = {"x": identity, "eta": "eta", "gamma": "gamma"}


@pytest.mark.parametrize("dtype", few([np.float64, np.float32]))
def test_it_is_the_run_of_the_compiled_loop(dtype):
    """A sweep is compiled, a run is not: the same formulas in JAX and in NumPy."""
    most = 12 if dtype == np.float64 else 8  # rounding grows from step to step
    options = {"max_iterations": most, "record": RECORD, "tolerance": 0}
    one = cfgd.minimize(valley, X0.astype(dtype), **options)
    many = cfgd.sweep(valley, X0.astype(dtype), [cfgd.Auto(), cfgd.Auto()], **options)
    rtol = 1e-8 if dtype == np.float64 else 1e-2
    assert one.iterations == many.iterations[1] == most
    for name in ("x", "value", "gradient_norm", "eta", "gamma"):
        np.testing.assert_allclose(
            many.history[name][1], one.history[name], rtol=rtol, atol=rtol, err_msg=name
        )
    assert one.evaluations == many.evaluations[1]


def test_a_long_run_goes_on_in_a_compiled_loop(monkeypatch):
    short = cfgd.minimize(valley, X0, record=RECORD)
    walks = []
    for kind in (Inside, Outside):
        called = kind.__call__
        monkeypatch.setattr(
            kind, "__call__", lambda self, *a, f=called: walks.append(type(self)) or f(self, *a)
        )
    monkeypatch.setattr("cfgd.solve.driver.LONG", 20)
    long = cfgd.minimize(valley, X0, record=RECORD)
    assert walks[0] is Outside
    assert walks[-1] is Inside
    assert long.success
    np.testing.assert_allclose(long.x, short.x, rtol=1e-6)
    np.testing.assert_array_equal(long.history["iteration"], np.arange(long.iterations + 1))
    np.testing.assert_allclose(long.history["x"][:10], short.history["x"][:10], rtol=1e-12)


@pytest.mark.parametrize("every", few([4, 1]))
def test_rows_of_the_history(every):
    ends = cfgd.minimize(valley, X0, record=RECORD, every=every)
    labels = ends.history["iteration"]
    np.testing.assert_array_equal(labels[:-1], np.arange(0, ends.iterations, every))
    assert labels[-1] == ends.iterations
    np.testing.assert_allclose(ends.history["x"][-1], ends.x)
    assert np.isnan(ends.history["eta"][0])


@pytest.mark.parametrize("c", few([1e120, 1.0]))
def test_an_absolute_tolerance_is_in_the_units_of_f(c):
    """Beyond 1e60 the objective is scaled inside."""
    ends = cfgd.minimize(lambda x: c * valley(x), X0, tolerance=0, gradient_tolerance=1e-3 * c)
    assert ends.success
    assert 1e-9 * c < ends.gradient_norm <= 1e-3 * c


def test_a_function_is_checked_once():
    traced = []

    def watched(x):
        traced.append(1)
        return valley(x)

    cfgd.minimize(watched, X0, max_iterations=3)
    before = len(traced)
    cfgd.minimize(watched, 2 * X0, max_iterations=3)
    assert len(traced) == before
    with pytest.raises(ValueError, match="return a scalar"):
        cfgd.minimize(lambda x: x, X0)
