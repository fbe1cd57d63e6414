"""A run that fails because of a wrong gradient says so; a run that fails otherwise does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der, rosen_hess

import cfgd
from cfgd.solve.wrong_gradient import CountedEvaluation
from cfgd.status import Status

START = np.array([-1.2, 1.0, 0.7])
METHODS = {
    "Auto": None,
    "Armijo": cfgd.GradientDescent(cfgd.ArmijoStep()),
    "exact": cfgd.GradientDescent(cfgd.ExactStep()),
    "fixed": cfgd.GradientDescent(cfgd.FixedStep(1e-3)),
    "adaptive terminal": cfgd.AdaptiveTerminal(gamma=-0.2, step=cfgd.ArmijoStep()),
}


def quiet(fn):
    """Return fn without warnings of NumPy, also in the threads in which JAX calls it."""

    def silent(x):
        with np.errstate(all="ignore"):
            return fn(x)

    return silent


def assert_names_the_sign(solution):
    assert solution.status is Status.wrong_gradient
    assert not solution.success
    assert "wrong sign" in solution.message
    assert "cfgd.check_gradient" in solution.message


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_sign_is_named(name):
    f = cfgd.External(quiet(rosen), quiet(lambda x: -rosen_der(x)))
    f = cfgd.Local(f, "exact") if name == "adaptive terminal" else f
    solution = cfgd.minimize(f, START, METHODS[name], max_iterations=300)
    assert_names_the_sign(solution)
    assert solution.value <= rosen(START)
    slope = float(np.linalg.norm(rosen_der(solution.x)))
    assert f"values have the slope {-slope:.3g} and the gradient says {slope:.3g}" in (
        solution.message
    )


def test_with_a_hessian_and_with_huge_values():
    with_hessian = cfgd.External(rosen, lambda x: -rosen_der(x), rosen_hess)
    assert_names_the_sign(cfgd.minimize(with_hessian, START))
    huge = cfgd.External(lambda x: 1e200 * rosen(x), lambda x: -1e200 * rosen_der(x))
    solution = cfgd.minimize(huge, START)
    assert_names_the_sign(solution)
    slope = 1e200 * np.linalg.norm(rosen_der(solution.x))
    assert f"the gradient says {slope:.3g}" in solution.message


def test_a_gradient_that_is_wrong_otherwise():
    def wrong(x):
        g = rosen_der(x)
        g[1] += 40.0
        return g

    solution = cfgd.minimize(cfgd.External(rosen, wrong), START)
    assert solution.status is Status.wrong_gradient
    assert "it seems to be wrong" in solution.message


def test_a_gradient_of_jax_with_a_wrong_rule():
    @jax.custom_jvp
    def square(x):
        return jnp.sum((x - 1) ** 2)

    square.defjvp(lambda at, along: (square(at[0]), -2 * (at[0] - 1) @ along[0]))
    assert_names_the_sign(cfgd.minimize(square, np.array([3.0, -2.0])))


# Runs that end without convergence although their gradients are right.
HONEST = {
    "hidden by rounding": (lambda x: (1e8 + x @ x) - 1e8, lambda x: 2 * x),
    "kink": (lambda x: np.abs(x - 1).sum(), lambda x: np.sign(x - 1)),
    "float32 inside": (lambda x: np.float32(rosen(x)), rosen_der),
    "unbounded": (lambda x: -np.exp(x).sum(), lambda x: -np.exp(x)),
    "cubic": (lambda x: (x**3).sum(), lambda x: 3 * x**2),
}


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("method", [None, cfgd.GradientDescent(cfgd.ArmijoStep())])
def test_a_right_gradient_is_not_blamed(name, method):
    f = cfgd.External(*map(quiet, HONEST[name]))
    solution = cfgd.minimize(f, START, method, tolerance=1e-14, max_iterations=2000)
    assert solution.status is not Status.wrong_gradient


@pytest.mark.slow
def test_noise_is_not_blamed():
    """Values with random noise at points where the slope is below it."""
    random = np.random.default_rng(5)
    blamed = 0
    for _ in range(2000):
        slope = 10.0 ** random.uniform(-12, -2)
        counted = CountedEvaluation(
            lambda x, slope=slope: (
                x @ x / 2 * slope + 1e-9 * random.normal(),
                slope * x,
            )
        )
        x = random.normal(size=3)
        found = [counted.slopes(x), counted.slopes(1.001 * x)]
        blamed += all(one is not None and one.contradict for one in found)
    assert blamed == 0


def test_no_evaluation_is_wasted_on_a_run_that_converges_or_makes_progress():
    calls = []

    def both(x):
        calls.append(1)
        return rosen(x), rosen_der(x)

    solution = cfgd.minimize(cfgd.External(both), START, max_iterations=3)
    assert solution.status is Status.max_iterations
    assert len(calls) <= 3 * 8
    assert solution.evaluations == len(calls) - 1  # that of the check of the arguments


def test_rounding_of_values_near_a_minimum_is_no_contradiction():
    """1 - cos rounds to multiples of 1e-16, while its gradient is known to all digits."""
    w, x0 = np.array([2.0924041, 1.1744670]), np.array([1.28084530, 0.20980023])
    f = cfgd.External(lambda x: np.sum(1 - np.cos(w * x)), lambda x: w * np.sin(w * x))
    for factor in (1.0, 0.9, 0.7, 0.5, 0.3):
        assert cfgd.minimize(f, factor * x0).status is not Status.wrong_gradient
