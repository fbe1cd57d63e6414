"""Runs under settings of JAX that a user may have changed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from inputs import F32, GD, J0, X0, X, Y, bowl, no_answer

import cfgd
from cfgd import AdaptiveTerminal, LeastSquares, LinearModel
from problems import quick

# some arguments have types that annotations refuse
pytestmark = pytest.mark.usefixtures("unchecked")


SETTINGS = {
    "debug NaNs": lambda: jax.debug_nans(True),
    "strict types": lambda: jax.numpy_dtype_promotion("strict"),
    "strict ranks": lambda: jax.numpy_rank_promotion("raise"),
}
# 32-bit data as JAX arrays too: their constructors compute with JAX
HARMLESS = {
    "AdaptiveTerminal": lambda: cfgd.minimize(
        LeastSquares(X, Y), X0, AdaptiveTerminal(jnp.float32(0.5), gamma=-0.25, lag=2)
    ),
    "GradientDescent on JAX arrays": lambda: cfgd.minimize(
        LeastSquares(jnp.asarray(X, F32), jnp.asarray(Y, F32)), J0, GD, tolerance=1e-3
    ),
    "Auto on labels": lambda: cfgd.minimize(LinearModel(X, Y, l2=0.1), X0),
    "NonAdaptive on a function": lambda: cfgd.minimize(
        lambda x: jnp.sum((x - 1) ** 4), X0, cfgd.NonAdaptive(0.0, gamma=0.5), tolerance=1e-3
    ),
}


UNDER = {  # each setting and each problem
    f"{problem}-{setting}": (HARMLESS[problem], SETTINGS[setting])
    for problem in HARMLESS
    for setting in SETTINGS
}
QUICK = [
    "AdaptiveTerminal-debug NaNs",
    "GradientDescent on JAX arrays-strict types",
    "Auto on labels-strict ranks",
]


@pytest.mark.slow
@pytest.mark.parametrize(("solve", "setting"), quick(UNDER, QUICK))
def test_settings_do_not_change_the_solution(solve, setting):
    expected = solve()
    with setting():
        solution = solve()
    assert solution.success
    np.testing.assert_array_equal(solution.x, expected.x)


@pytest.mark.slow
def test_objectives_of_jax_arrays_under_strict_ranks():
    z, x = jnp.asarray(Y, F32), jnp.linspace(0, 1, 6, dtype=F32)
    f = cfgd.ShallowNetwork(z, z, 2)
    expected = f.gradient(x), f.coordinate_slope(x, x + 1)
    with jax.numpy_rank_promotion("raise"):
        assert np.isfinite(f.value(x))
        found = f.gradient(x), f.coordinate_slope(x, x + 1)
    np.testing.assert_array_equal(found, expected)


def test_a_run_does_not_change_the_settings():
    with jax.debug_nans(True), jax.numpy_rank_promotion("raise"):
        cfgd.minimize(bowl, X0, GD, callback=no_answer)
        with pytest.raises(FloatingPointError):
            jnp.log(-jnp.ones(()))
        with pytest.raises(ValueError, match="rank"):
            jnp.ones(2) + jnp.ones((2, 2))
