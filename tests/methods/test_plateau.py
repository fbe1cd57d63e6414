"""Fits that end where the model no longer depends on its parameters, which have not converged."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.plateau import has_lost_model
from cfgd.methods.auto.state import Start
from cfgd.objectives.host import host_objective
from cfgd.status import Status

T = np.linspace(0, 10, 20)
Y = 2 / (1 + np.exp(-1.5 * (T - 5))) + 0.05 * np.random.default_rng(4).normal(size=20)
# Meyer's data (Moré, Garbow and Hillstrom, problem 10)
X = 50 + 5.0 * np.arange(16)
MEYER = np.array([34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744])
MEYER = np.concatenate([MEYER, [8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872]])


def logistic(p):
    return p[0] / (1 + jnp.exp(-p[1] * (T - p[2]))) - Y


def test_a_start_where_the_model_is_zero_ends_at_no_minimum():
    peak = cfgd.Residuals(lambda p: p[0] * jnp.exp(-(((T - p[1]) / p[2]) ** 2)) - Y)
    end = cfgd.minimize(peak, [3.0, 500.0, 1.0])
    assert end.status is Status.saddle
    assert "plateau" in end.message


@pytest.mark.parametrize("lost", [[1.0, 50.0, -40.0], [1.0, -50.0, 60.0]])
def test_a_curve_that_has_become_a_constant_has_lost_its_model(lost):
    """Residuals depend on the height alone; from another start they had depended on all."""
    with jax.enable_x64(True):
        f = host_objective(cfgd.Residuals(logistic))
        for x0, expected in (([1.0, 1.0, 4.0], True), (lost, False)):
            oracle = Oracle(f, np.array(x0))
            start = Start.of(oracle.evaluate(np.array(x0)))
            at = oracle.evaluate(np.array(lost))
            assert has_lost_model(oracle, oracle.curvature(at), at.x, start) is expected


def test_parameters_that_are_no_part_of_the_model_change_no_verdict():
    end = cfgd.minimize(cfgd.Residuals(lambda p: logistic(p[3:])), [1.0, 2, 3, 1, 1, 4])
    assert end.success


@pytest.mark.every_case
@pytest.mark.parametrize("seed", range(4))
def test_meyers_poles_are_not_crossed(seed):
    """From the given start a step of ten times a parameter's size led to a constant model."""
    x0 = np.array([4.7193388140308, 475795.6889176654, 13625.518898724395])
    x0 *= np.exp(1e-8 * np.random.default_rng(seed).normal(size=3))
    end = cfgd.minimize(cfgd.Residuals(lambda b: b[0] * jnp.exp(b[1] / (X + b[2])) - MEYER), x0)
    assert end.success
    assert 2 * end.value == pytest.approx(87.9458552, rel=1e-8)


def test_a_rate_that_runs_away_has_not_converged():
    """The sum of two exponentials of i from MGH: one of them vanishes at the start of its run."""
    i = np.arange(1, 11)
    f = cfgd.Residuals(lambda p: 2 + 2 * i - jnp.exp(i * p[0]) - jnp.exp(i * p[1]))
    x0 = np.array([0.28, 1.03]) * np.exp(0.5 * np.random.default_rng(11).normal(size=2))
    end = cfgd.minimize(f, x0)
    assert end.success == (2 * end.value < 124.4)
