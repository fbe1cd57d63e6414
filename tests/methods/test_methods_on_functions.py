"""Each step on functions that are no quadratics, against a plain loop in NumPy."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from iterates import points_of

import cfgd
from cfgd import Status
from problems import (
    FIGURE1,
    METHODS,
    PROBLEMS,
    SMOOTH_METHODS,
    WAVE_X0,
    do_nothing,
    identity,
    iterates_on_wave,
    lagged,
    quick,
    reference_iterates,
    wave,
    wave_hessian,
    wave_value,
)

pytestmark = pytest.mark.slow


def exact(x, d, slope, last):
    """The Newton length along d, halved until the value decreases enough."""
    eta = slope / abs(d @ wave_hessian(x) @ d)
    while wave_value(x - eta * d) > wave_value(x) - 1e-4 * eta * slope:
        eta /= 2
    return eta


def exact_on_what_d_descends(x, d, slope, last):
    """With a fixed terminal d is the gradient of f + gamma/2 |x - c|^2_D, to second order."""
    H = wave_hessian(x)
    return d @ d / abs(d @ (H + 0.4 * np.diag(np.diag(H))) @ d)


CANDIDATES = [t * 10.0**-power for power in range(1, 9) for t in (1, 0.75, 0.5, 0.25)]


def grid_on(value):
    return lambda x, d, slope, last: min(CANDIDATES, key=lambda eta: value(x - eta * d))


def armijo_on(value):
    """From twice the last step down, by halves."""

    def choose(x, d, slope, last):
        eta = 1.0 if last is None else 2 * last
        while value(x - eta * d) > value(x) - 1e-4 * eta * slope:
            eta /= 2
        return eta

    return choose


SMOOTH_CASES = {
    "gradient descent, exact": ("gradient descent", cfgd.ExactStep(), exact),
    "adaptive terminal, exact": ("adaptive terminal", cfgd.ExactStep(), exact),
    "non-adaptive, exact": ("non-adaptive", cfgd.ExactStep(), exact_on_what_d_descends),
    "adaptive terminal, fixed": ("adaptive terminal", cfgd.FixedStep(0.07), lambda *_: 0.07),
    "adaptive terminal, grid": ("adaptive terminal", cfgd.GridStep(), grid_on(wave_value)),
    "adaptive terminal, armijo": ("adaptive terminal", cfgd.ArmijoStep(), armijo_on(wave_value)),
}


SEARCHES = {"grid": (cfgd.GridStep(), grid_on), "armijo": (cfgd.ArmijoStep(), armijo_on)}


SEARCHED = {
    f"{step}-{problem}": (*SEARCHES[step], PROBLEMS[problem])
    for step in SEARCHES
    for problem in ("quadratic", "wide")
}


@pytest.mark.parametrize(
    ("step", "choose", "problem"), quick(SEARCHED, ["grid-quadratic", "armijo-wide"])
)
def test_searches_on_a_quadratic(step, choose, problem):
    """There values along the line follow from slope and curvature."""
    row = METHODS["lag 1"]
    got = points_of(problem, row.make(step), 8, callback=do_nothing)
    want = reference_iterates(problem, row, choose(problem.value), 8)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-11)


def smooth_points(method, iterations=12):
    solution = cfgd.minimize(
        wave,
        WAVE_X0,
        method,
        max_iterations=iterations,
        tolerance=0,
        record={"x": identity},
    )
    return solution.history["x"]


QUICK_SMOOTH = [
    "adaptive terminal, exact",
    "non-adaptive, exact",
    "adaptive terminal, grid",
    "adaptive terminal, armijo",
]


@pytest.mark.parametrize(("name", "step", "choose"), quick(SMOOTH_CASES, QUICK_SMOOTH))
def test_iterates_on_a_function(name, step, choose):
    row = SMOOTH_METHODS[name]
    want, _ = iterates_on_wave(row, choose, WAVE_X0, 12)
    np.testing.assert_allclose(smooth_points(row.make(step)), want, rtol=1e-10, atol=1e-11)


def steps_taken(points, row):
    """(x, d, <g, d>, eta) of each iteration, eta read off the points."""
    lookup = itertools.pairwise(points)

    def read(x, d, slope, last):
        here, there = next(lookup)
        return (here - there) @ d / (d @ d)

    return iterates_on_wave(row, read, points[0], len(points) - 1)[1]


def test_grid_step_takes_the_best_of_32():
    row = SMOOTH_METHODS["adaptive terminal"]
    assert len(set(CANDIDATES)) == 32
    for x, d, _, eta in steps_taken(smooth_points(row.make(cfgd.GridStep())), row):
        best = min(CANDIDATES, key=lambda t: wave_value(x - t * d))
        np.testing.assert_allclose(eta, best, rtol=1e-8)


def test_grid_step_has_all_32():
    """On x^2 / (2 eta) the best step is eta: it leads to 0 at once."""
    for eta in CANDIDATES:
        f = cfgd.Quadratic([[1 / eta]], [0.0])
        method = cfgd.GradientDescent(cfgd.GridStep())
        end = cfgd.minimize(f, [2.0], method, max_iterations=1, callback=do_nothing)
        np.testing.assert_allclose(end.x, [0.0], atol=1e-14)


def test_armijo_condition_holds():
    row, fraction, shrink = SMOOTH_METHODS["adaptive terminal"], 0.3, 0.6
    step = cfgd.ArmijoStep(initial=2.0, shrink=shrink, fraction=fraction)
    steps = steps_taken(smooth_points(row.make(step)), row)
    shortened = 0
    for x, d, slope, eta in steps:
        assert wave_value(x - eta * d) <= wave_value(x) - fraction * eta * slope
        longer = eta / shrink
        # never shorter than it need be: the next longer one fails, or was not among those tried
        fails = wave_value(x - longer * d) > wave_value(x) - fraction * longer * slope
        shortened += fails
    assert shortened >= len(steps) // 2


def valley(x):
    return jnp.sqrt(1 + x[0] ** 2) + jnp.sqrt(1 + 3 * (x[1] - 0.5) ** 2)


def test_exact_step_is_safeguarded_by_backtracking():
    """The formula alone jumps from 3 to -27: there d'Hd is small."""
    solution = cfgd.minimize(
        valley, np.array([3.0, -2.0]), cfgd.AdaptiveTerminal(gamma=-0.1, nodes=4), tolerance=1e-6
    )
    assert 3 - 3 * (1 + 3.0**2) == -27  # Newton on sqrt(1 + x^2) at 3: g/h = x (1 + x^2)
    assert np.all(np.diff(solution.history["value"]) < 0)
    assert solution.status is Status.converged
    np.testing.assert_allclose(solution.x, [0.0, 0.5], atol=1e-5)


def test_exact_step_descends_where_the_curvature_is_negative():
    """cos at 0.4: the formula alone climbs to the maximum at 0."""
    x0 = np.array([0.4, 0.05])
    g, H = np.array([-np.sin(x0[0]), 2 * x0[1]]), np.diag([-np.cos(x0[0]), 2])
    assert g @ H @ g < -0.1
    solution = cfgd.minimize(lambda x: jnp.cos(x[0]) + x[1] ** 2, x0, cfgd.GradientDescent())
    assert np.all(np.diff(solution.history["value"]) <= 0)
    np.testing.assert_allclose(solution.x, [np.pi, 0.0], atol=1e-7)


RESETTING = {"grid": cfgd.GridStep(), "armijo": cfgd.ArmijoStep(), "exact": cfgd.ExactStep()}


@pytest.mark.parametrize("step", quick(RESETTING, ["grid", "exact"]))
def test_a_direction_without_descent_is_replaced_by_the_gradient(step):
    """gamma = -1 from past = 0 on a separable quadratic: d is the gradient there, 0."""
    f, x0 = FIGURE1.objective, np.array([0.4, -1.0])
    method = cfgd.AdaptiveTerminal(gamma=-1.0, past=np.zeros((1, 2)), step=step)
    solution = cfgd.minimize(
        f, x0, method, max_iterations=200, record={"x": identity}, callback=do_nothing
    )
    assert solution.resets >= 1
    first = solution.history["x"][1] - x0
    g = FIGURE1.A @ x0
    assert first @ g < 0
    np.testing.assert_allclose(first[0] * g[1], first[1] * g[0], rtol=1e-12)  # along -g
    assert solution.value < 1e-3 * FIGURE1.value(x0)


def test_a_fixed_step_is_left_as_the_theorems_have_it():
    """d = 0 at past = 0: x stays for one iteration, no reset."""
    method = cfgd.AdaptiveTerminal(gamma=-1.0, past=np.zeros((1, 2)), step=cfgd.FixedStep(0.02))
    solution = cfgd.minimize(
        FIGURE1.objective,
        FIGURE1.x0,
        method,
        max_iterations=5,
        record={"x": identity},
        callback=do_nothing,
    )
    row = lagged(1, -1.0, np.zeros((1, 2)))
    np.testing.assert_allclose(
        solution.history["x"], reference_iterates(FIGURE1, row, 0.02, 5), rtol=1e-12
    )
    np.testing.assert_array_equal(solution.history["x"][1], FIGURE1.x0)
    assert solution.resets == 0
