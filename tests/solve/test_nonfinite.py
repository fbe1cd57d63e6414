"""Where values grow or are not finite, x is the best point of the run."""

import numpy as np
import pytest
from bowls import HIGH, RECORD, X0, F, fixed

import cfgd
from cfgd import FixedStep, GradientDescent, Status
from problems import BOWL, PROBLEMS, WAVE_X0, A, B, wave

TOO_LONG = {
    "1": (1.0, F),
    "10": (10.0, F),
    "1e20": (1e20, F),
    "1e100": (1e100, F),
    "1e300": (1e300, F),
    "wide, 1e20": (1e20, PROBLEMS["wide"].objective),
    "falls first": (2.2 / HIGH, F),
}


@pytest.mark.one_case
@pytest.mark.parametrize(("eta", "f"), TOO_LONG.values(), ids=TOO_LONG)
def test_nonfinite_gives_the_best_finite_point(eta, f):
    solution = fixed(eta, f, tolerance=0)
    values, points = solution.history["value"], solution.history["x"]
    assert solution.status is Status.nonfinite
    assert np.isfinite(solution.x).all()
    assert np.isfinite(solution.value)
    best = np.nanargmin(np.where(np.isfinite(values), values, np.nan))
    np.testing.assert_allclose(solution.x, points[best], rtol=1e-12)
    np.testing.assert_allclose(solution.value, values[best], rtol=1e-12)
    assert not np.isfinite(values[-1]) or not np.isfinite(points[-1]).all()


def test_nonfinite_on_a_function():
    solution = cfgd.minimize(wave, WAVE_X0, GradientDescent(FixedStep(0.9)), record=RECORD)
    values = solution.history["value"]
    assert solution.status is Status.nonfinite
    best = np.nanargmin(np.where(np.isfinite(values), values, np.nan))
    np.testing.assert_allclose(solution.x, solution.history["x"][best], rtol=1e-12)


def best_recorded(points):
    values = np.einsum("ni,ij,nj->n", points, A, points) / 2 + points @ B
    return points[values.argmin()], values.argmin()


UNSTABLE = {
    # in the first chunk of iterations, in a later one
    "soon": (2.05 / HIGH, X0, 60),
    "late": (2.001 / HIGH, BOWL.minimiser + np.array([3.0, -4.0, 5.0]), 900),
}


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize(("eta", "x0", "iterations"), UNSTABLE.values(), ids=UNSTABLE)
def test_x_is_the_best_point(eta, x0, iterations, every):
    options = {"max_iterations": iterations, "tolerance": 0, "record": RECORD}
    method = GradientDescent(FixedStep(eta))
    points = cfgd.minimize(F, x0, method, **options).history["x"]
    best, k = best_recorded(points)
    assert 3 < k < iterations - 10
    assert k % 3 != 0  # not a row of the history with every = 3
    solution = cfgd.minimize(F, x0, method, every=every, **options)
    np.testing.assert_allclose(solution.x, best, rtol=1e-10)
    np.testing.assert_allclose(solution.value, BOWL.value(best), rtol=1e-12)
    np.testing.assert_allclose(solution.gradient_norm, np.linalg.norm(A @ best + B), rtol=1e-8)


@pytest.mark.slow
def test_x_of_a_sweep_is_the_best_point_of_each_setting():
    etas = np.array([2.05, 0.7, 2.001, 2.3]) / HIGH
    ends = cfgd.sweep(
        F, X0, GradientDescent(FixedStep(etas)), max_iterations=400, tolerance=0, record=RECORD
    )
    found = [best_recorded(points) for points in ends.history["x"]]
    assert len({k for _, k in found}) == 4
    # points whose values are equal to rounding may differ by its square root
    np.testing.assert_allclose(ends.x, [best for best, _ in found], rtol=1e-7)
