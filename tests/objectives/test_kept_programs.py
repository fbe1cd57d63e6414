"""Compiled programs are kept with their objective, and with nothing else."""

import copy
import gc
import pickle
import weakref

import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.objectives import programs
from cfgd.objectives.programs import Programs

T = np.linspace(0, 2, 20)
Y = 3 * np.exp(-T)


def decay(p, t, y):
    return p[0] * jnp.exp(-p[1] * t) - y


def test_the_next_run_has_the_programs_of_the_last_one():
    f = cfgd.Residuals(decay, args=(T, Y))
    cfgd.minimize(f, np.array([1.0, 0.5]))
    first = Programs.kept(f)
    assert first.bound
    cfgd.minimize(f, np.array([2.0, 0.7]))
    assert Programs.kept(f) is first
    assert Programs.kept(cfgd.Residuals(decay, args=(T, Y))) is not first


def test_arrays_of_an_objective_that_is_large_are_not_kept(monkeypatch):
    monkeypatch.setattr(programs, "MOST_KEPT", 30)
    f = cfgd.Residuals(decay, args=(T, Y))
    assert Programs.kept(f) is not Programs.kept(f)


def test_one_objective_of_starts_of_several_sizes():
    f = cfgd.Residuals(lambda p: jnp.concatenate([p - 2, 3 * p - 6]))
    for d in (2, 5):
        found = cfgd.minimize(f, np.zeros(d))
        assert found
        np.testing.assert_allclose(found.x, np.full(d, 2.0), rtol=1e-9)
        assert found.covariance().shape == (d, d)


def test_one_objective_in_both_precisions():
    f = cfgd.Residuals(lambda p: jnp.stack([p[0] - 1, p[1] - 3, p[0] * p[1] - 3]))
    for dtype in (np.float64, np.float32, np.float64):
        found = cfgd.minimize(f, np.zeros(2, dtype))
        assert found.x.dtype == dtype
        np.testing.assert_allclose(found.x, [1, 3], rtol=1e-4)


def test_an_objective_is_pickled_and_copied_without_them():
    f = cfgd.Residuals(decay, args=(T, Y))
    x = cfgd.minimize(f, np.array([1.0, 0.5])).x
    for other in (pickle.loads(pickle.dumps(f)), copy.copy(f), copy.deepcopy(f)):
        assert set(vars(other)) == {"fn", "args", "samples", "weights", "scale", "rho"}
        assert np.array_equal(cfgd.minimize(other, np.array([1.0, 0.5])).x, x)


def test_an_objective_is_freed_at_once():
    f = cfgd.Residuals(decay, args=(T, Y))
    cfgd.minimize(f, np.array([1.0, 0.5]))
    gone = weakref.ref(f)
    gc.disable()
    try:
        del f
        assert gone() is None
    finally:
        gc.enable()
