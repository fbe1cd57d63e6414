"""Solutions, fits, objectives and methods compare by their fields."""

import copy

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

import cfgd

RNG = np.random.default_rng(7)
DATA = RNG.normal(size=(12, 3))
TARGETS = DATA @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=12)
LABELS = (TARGETS > 0).astype(float)
START = np.array([0.3, 0.1, -0.4])


def test_solutions_and_fits_compare_by_their_fields():
    f = cfgd.Quadratic(DATA.T @ DATA, START)
    solution = cfgd.minimize(f, START, record={"eta": "eta"})  # NaN at iteration 0
    assert np.isnan(solution.history["eta"][0])
    again = copy.deepcopy(solution)
    assert (solution == again) is True
    assert (solution != again) is False
    again.x[0] = 5
    assert (solution == again) is False
    assert (solution == 3) is False
    sweep = cfgd.sweep(f, np.stack([START, 2 * START]), cfgd.Auto())
    assert sweep == copy.deepcopy(sweep)
    assert sweep != solution
    assert sweep[0] != sweep[1]
    with pytest.raises(TypeError, match="unhashable type: 'Solution'"):
        hash(solution)
    fit = cfgd.curve_fit(lambda t, a, b: a + b * t, DATA[:, 0], TARGETS, [0.0, 1.0])
    other = copy.deepcopy(fit)
    assert fit == other
    other.parameters[0] = 3
    assert fit != other
    assert other.solution == fit.solution  # the parameters are not those of the solution
    with pytest.raises(TypeError, match="unhashable type: 'Fit'"):
        hash(fit)


def test_objectives_and_methods_compare_by_their_numbers():
    def hessian(x):
        return np.eye(2)

    makers = [
        lambda: cfgd.Quadratic(np.eye(2), [1.0, 2.0]),
        lambda: cfgd.LinearModel(DATA, LABELS),
        lambda: cfgd.External(rosen, rosen_der, hessian),
        lambda: cfgd.GradientDescent(cfgd.FixedStep(0.1)),
        lambda: cfgd.AdaptiveOrder([cfgd.Stage(5, beta=1.0)], [1.0, 2.0]),
        cfgd.Auto,
    ]
    for make in makers:
        assert bool(make() == make()) is True
        assert bool(make() == 3) is False
    assert bool(cfgd.Quadratic(np.eye(2), [1.0, 2.0]) == cfgd.Quadratic(np.eye(2), [1.0, 3.0])) is (
        False
    )
    assert hash(cfgd.Auto()) == hash(cfgd.Auto())
