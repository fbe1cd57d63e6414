"""Objectives compute in the precision of their data."""

import jax
import numpy as np
import pytest
import scipy.sparse

import cfgd
from objectives import COUNTS, FORMATS, L2, LABELS, REPEATS, W0, WEIGHTS, X, Y, close, rounded, wave
from problems import quick

Z9, Y9 = np.linspace(-1, 1, 9), np.cos(np.arange(9.0))


def objectives_in(dtype):
    """Return every kind of objective with data of one precision."""
    x, y, w = X.astype(dtype), Y.astype(dtype), WEIGHTS.astype(dtype)
    sparse = scipy.sparse.csr_array(x)
    net = cfgd.ShallowNetwork(Z9.astype(dtype), Y9.astype(dtype), 2)
    return {
        "least squares": cfgd.LeastSquares(x, y, L2, w),
        "least squares, csr": cfgd.LeastSquares(sparse, y, L2),
        "logistic": cfgd.LinearModel(x, LABELS.astype(dtype), "logistic", L2, w),
        "poisson, csr": cfgd.LinearModel(sparse, COUNTS.astype(dtype), "poisson"),
        "huber": cfgd.LinearModel(x, y, "huber", L2),
        "custom": cfgd.LinearModel(x, y, rounded),
        "network": net,
        "local": cfgd.Local(cfgd.LinearModel(x, y, "huber")),
        "local, gauss_newton": cfgd.Local(net, "gauss_newton"),
        "local, hutchinson": cfgd.Local(net, "hutchinson", probes=2, key=1),
        "local, function": cfgd.Local(wave, "hutchinson", key=1),
        "smooth": cfgd.Smooth(wave),
    }


def point_for(objective, dtype):
    return np.cos(1.0 + np.arange(objective.dimension or 2)).astype(dtype)


DOUBLE = objectives_in(np.float64)


QUICK_DOUBLE = [
    "least squares, csr",
    "logistic",
    "custom",
    "network",
    "local, hutchinson",
    "smooth",
]


@pytest.mark.parametrize("name", quick({name: name for name in DOUBLE}, QUICK_DOUBLE))
def test_float64_numpy_in_float64_numpy_out(name):
    assert not jax.config.jax_enable_x64
    f = DOUBLE[name]
    x = point_for(f, np.float64)
    for result in (f.value(x), f.gradient(x)):
        assert isinstance(result, np.ndarray | np.generic)
        assert result.dtype == np.float64
        assert np.any(result != result.astype(np.float32))  # not rounded to float32 before
    assert not jax.config.jax_enable_x64


RUNS = {
    "logistic": lambda X, y: cfgd.LinearModel(X, y),
    "local": lambda X, y: cfgd.Local(cfgd.LinearModel(X, y), "hutchinson", key=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", quick(RUNS, ["local"]))
def test_a_run_in_float32_stays_in_float32(make):
    """test_products.py has the runs in float64."""
    f = make(X.astype(np.float32), LABELS.astype(np.float32))
    method = cfgd.AdaptiveTerminal(gamma=-0.1, nodes=4)
    end = cfgd.minimize(f, W0.astype(np.float32), method, max_iterations=12)
    assert isinstance(end.x, np.ndarray)
    assert end.x.dtype == np.float32
    assert end.value < end.history["value"][0]


INTEGERS = LABELS.astype(int)
SINGLE = objectives_in(np.float32) | {
    "integer labels": cfgd.LinearModel(X.astype(np.float32), INTEGERS),
    "bool labels, csr": cfgd.LinearModel(FORMATS["csr"](X.astype(np.float32)), INTEGERS == 1),
    "integer weights": cfgd.LeastSquares(X.astype(np.float32), Y.astype(np.float32), 0.5, REPEATS),
    "integer targets": cfgd.ShallowNetwork(Z9.astype(np.float32), np.arange(9), 2),
    "nothing stored": cfgd.LinearModel(
        scipy.sparse.csr_array((11, 4), dtype=np.float32), Y.astype(np.float32), "huber", 0.1
    ),
}


QUICK_SINGLE = [
    *QUICK_DOUBLE,
    "integer labels",
    "bool labels, csr",
    "integer weights",
    "nothing stored",
]


@pytest.mark.parametrize("name", quick({name: name for name in SINGLE}, QUICK_SINGLE))
def test_float32_stays_float32(name):
    f = SINGLE[name]
    x = point_for(f, np.float32)
    gradient = f.gradient(x)
    assert isinstance(gradient, np.ndarray)
    assert gradient.dtype == np.float32
    if name in DOUBLE:
        close(gradient, DOUBLE[name].gradient(x.astype(np.float64)), 1e-4)
