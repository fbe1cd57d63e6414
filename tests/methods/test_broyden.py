"""The dense Broyden family: updates of explicit matrices, the search of Wolfe, and long runs."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import inverse_bfgs, random_spd

import cfgd
from cfgd.methods.auto.broyden import BroydenState
from cfgd.methods.auto.broyden_matrix import BroydenMatrix, al_baali, self_scaled_bfgs
from cfgd.methods.auto.lbfgs import LBFGSState
from cfgd.methods.auto.lbfgs_memory import PAIRS, Memory, Pair, direction
from cfgd.methods.auto.line_search import Accepted, Search
from cfgd.methods.auto.lm_then_quasi_newton import TRIAL, LMThenQuasiNewton, is_worthwhile
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.quasi_newton import LONG_RUN, QuasiNewton
from cfgd.methods.auto.state import Goal, Start
from cfgd.methods.auto.wolfe_search import CURVATURE_CONDITION, wolfe_search
from cfgd.objectives.host import host_objective
from cfgd.status import Status

RANDOM = np.random.default_rng(11)


def full(matrix):
    """Return the whole symmetric matrix from its lower triangle."""
    lower = np.tril(matrix.triangle)
    return matrix.factor * (lower + np.tril(lower, -1).T)


def broyden_family(H, s, y, tau, phi):
    """Return the update by the formula of the family, with outer products."""
    Hy, sy = H @ y, s @ y
    yHy = y @ Hy
    v = np.sqrt(yHy) * (s / sy - Hy / yHy)
    return (H - np.outer(Hy, Hy) / yHy + phi * np.outer(v, v)) / tau + np.outer(s, s) / sy


def random_pair(d, A):
    s = RANDOM.normal(size=d)
    return s, A @ s


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_updates_are_those_of_the_family(dtype):
    d = 7
    A = random_spd(RANDOM, d)
    H = random_spd(RANDOM, d)
    matrix = BroydenMatrix(H.astype(dtype), 1.0)
    for _ in range(6):
        s, y = random_pair(d, A)
        b, h = s @ np.linalg.solve(H, s) / (s @ y), y @ H @ y / (s @ y)
        tau, phi = al_baali(b, h, d)
        H = broyden_family(H, s, y, tau, phi)
        matrix.update(Pair.of(s.astype(dtype), y.astype(dtype)), b * (s @ y), al_baali)
        digits = 8 * np.finfo(dtype).eps * np.linalg.cond(H)  # the condition is about 1e6
        np.testing.assert_allclose(full(matrix), H, atol=digits * abs(H).max())
        np.testing.assert_allclose(H @ y, s, atol=1e-8)  # the secant equation
        assert np.linalg.eigvalsh(H).min() > 0


@pytest.mark.parametrize(("phi", "tau"), [(0.0, 1.0), (0.4, 0.3), (3.0, 1.0), (40.0, 0.9)])
def test_any_member_of_the_family(phi, tau):
    """Also members beyond BFGS, whose change is a sum of two squares and no difference."""
    H = random_spd(RANDOM, 5)
    s, y = random_pair(5, random_spd(RANDOM, 5))
    matrix = BroydenMatrix(H.copy(), 1.0)
    matrix.update(Pair.of(s, y), 1.0, lambda *_: (tau, phi))
    np.testing.assert_allclose(full(matrix), broyden_family(H, s, y, tau, phi), rtol=1e-9)


@pytest.mark.parametrize("b", [0.5, 4.0])
def test_self_scaled_bfgs(b):
    """H is enlarged first where it is too small along the step, and not where it is too large."""
    H, (s, y) = random_spd(RANDOM, 4), random_pair(4, random_spd(RANDOM, 4))
    matrix = BroydenMatrix(H.copy(), 1.0)
    matrix.update(Pair.of(s, y), b * (s @ y), self_scaled_bfgs)
    np.testing.assert_allclose(full(matrix), inverse_bfgs([(s, y)], max(b, 1) * H), rtol=1e-9)


def test_al_baalis_parameters_by_hand():
    """b = 2, h = 3, n = 5: a = 5, c = sqrt(5/6), computed with a pocket calculator."""
    tau, phi = al_baali(2.0, 3.0, 5)
    c = np.sqrt(5 / 6)
    least = 3 * (1 - c)  # 0.2614
    theta = max((least - 1) / 5, min(1 / least, -0.5))  # -0.1477
    assert theta == pytest.approx(-0.14773, abs=1e-5)
    sigma = 1 + 5 * theta  # 0.26139
    assert tau == pytest.approx(min(0.5 * sigma**-0.25, sigma), rel=1e-12)
    assert phi == pytest.approx((1 - theta) / sigma, rel=1e-12)
    assert al_baali(1.0, 1.0, 5) == (1.0, 1.0)


def test_the_factor_is_multiplied_in_before_it_overflows():
    """Curvatures that fall by 1e60 let the factor grow by as much."""
    A, matrix, g = random_spd(RANDOM, 3), BroydenMatrix(np.eye(3), 1.0), np.ones(3)
    factors = []
    for k in range(60):
        s = matrix.times(g)
        y = 10.0**-k * (A @ s)
        matrix.update(Pair.of(s, y), s @ g, al_baali)
        factors.append(matrix.factor)
        g = RANDOM.normal(size=3)
    assert max(factors) > 1e12
    assert matrix.factor <= 1e15
    np.testing.assert_allclose(matrix.times(y), s, rtol=1e-6)


@pytest.mark.parametrize("count", [1, 5, PAIRS, PAIRS + 9])
def test_the_matrix_begins_as_that_of_lbfgs(count):
    d = 20
    A, P, g = random_spd(RANDOM, d), RANDOM.uniform(0.5, 4, d), RANDOM.normal(size=d)
    memory = Memory.empty(g)
    for _ in range(count):
        memory.add(Pair.of(*random_pair(d, A)))
    memory.add(Pair.of(g, -g))  # no positive curvature: an empty row
    memory.is_flat = False
    expected = direction(memory, g, P, g).p
    np.testing.assert_allclose(BroydenMatrix.of_memory(memory, P).times(g), expected, rtol=1e-8)


# ------------------------------------------------------------------ the line search


def on_a_line(value, slope, first=1.0):
    """Search along the first coordinate of a function of one variable, from 0 to the right."""
    calls = []

    def f(x):
        calls.append(float(x[0]))
        return value(x[0])

    objective = cfgd.External(lambda x: np.array(f(x)), lambda x: np.array([slope(x[0])]))
    oracle = Oracle(objective, np.zeros(1))
    at = oracle.evaluate(np.zeros(1))
    calls.clear()
    search = Search(np.array([-1.0]), np.float64(-slope(0.0)), first)
    return wolfe_search(oracle, at, search, Start.of(at)), calls


LINES = {
    "too short": (lambda t: (t - 30) ** 2, lambda t: 2 * (t - 30)),
    "too long": (lambda t: (t - 0.04) ** 2, lambda t: 2 * (t - 0.04)),
    "beyond a wall": (
        lambda t: -t + np.exp(40 * (t - 0.9)),
        lambda t: -1 + 40 * np.exp(40 * (t - 0.9)),
    ),
    "quartic": (lambda t: (t - 7) ** 4, lambda t: 4 * (t - 7) ** 3),
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", LINES)
def test_the_search_meets_both_conditions(name):
    value, slope = LINES[name]
    found, calls = on_a_line(value, slope)
    assert isinstance(found, Accepted)
    assert value(found.t) <= value(0.0) + 1e-4 * found.t * slope(0.0)
    assert abs(slope(found.t)) <= CURVATURE_CONDITION * abs(slope(0.0))
    assert len(calls) <= 8


def test_a_step_that_is_good_enough_is_taken_at_once():
    found, calls = on_a_line(lambda t: (t - 1.3) ** 2, lambda t: 2 * (t - 1.3))
    assert (found.t, len(calls)) == (1.0, 1)


def test_a_line_that_only_rises_is_given_up():
    found, calls = on_a_line(abs, lambda t: -1.0)
    assert found is Status.stalled
    assert min(calls) < 1e-12


def test_values_that_are_not_finite_shorten_the_step():
    found, _ = on_a_line(
        lambda t: np.inf if t > 0.2 else (t - 0.15) ** 2,
        lambda t: np.nan if t > 0.2 else 2 * (t - 0.15),
    )
    assert isinstance(found, Accepted)
    assert 0.0 < found.t <= 0.2


# ------------------------------------------------------------------ runs


def chain(x):
    """Return the chained Rosenbrock function and its gradient: a long curved valley."""
    a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    g = np.zeros_like(x)
    g[1:] += 200 * a
    g[:-1] += -400 * a * x[:-1] - 2 * b
    return (100 * a**2 + b**2).sum(), g


def run(method=None, d=60, **keywords):
    objective = cfgd.External(lambda x: np.array(chain(x)[0]), lambda x: chain(x)[1])
    x0 = np.tile([-1.2, 1.0], d // 2)
    return cfgd.minimize(objective, x0, method, **keywords)


def test_a_long_run_takes_fewer_gradients_than_lbfgs():
    dense, limited = run(), run(cfgd.Auto("lbfgs"))
    assert dense.success
    assert limited.success
    assert dense.evaluations < 0.95 * limited.evaluations  # 0.82 with 40 to 200 variables
    np.testing.assert_allclose(dense.x, np.ones(60), atol=1e-6)


def test_every_step_lowers_f():
    values = run().history["value"]
    assert (np.diff(values) <= 0).all()


def test_the_first_iterations_are_those_of_lbfgs():
    dense, limited = run(max_iterations=LONG_RUN), run(cfgd.Auto("lbfgs"), max_iterations=LONG_RUN)
    assert np.array_equal(dense.x, limited.x)
    dense = run(max_iterations=LONG_RUN + 5)
    limited = run(cfgd.Auto("lbfgs"), max_iterations=LONG_RUN + 5)
    assert not np.array_equal(dense.x, limited.x)


def test_a_run_resumes_bit_for_bit_from_a_dense_matrix(tmp_path):
    file = tmp_path / "run.checkpoint"
    whole = run(max_iterations=70)
    run(max_iterations=50, checkpoint=file)
    resumed = run(max_iterations=70, checkpoint=file)
    assert np.array_equal(resumed.x, whole.x)
    assert np.array_equal(resumed.history["value"], whole.history["value"])


def test_bounds_that_are_not_met_change_nothing():
    bounded, free = run(bounds=(-1e6, 1e6), max_iterations=60), run(max_iterations=60)
    assert np.array_equal(bounded.x, free.x)


def test_steps_that_leave_the_box_are_left_to_lbfgs():
    """The minimiser has a coordinate at its bound; L-BFGS alone finds the same point."""
    bounds = (-2.0, np.where(np.arange(60) == 40, 0.7, 2.0))
    bounded = run(bounds=bounds)
    limited = run(cfgd.Auto("lbfgs"), bounds=bounds)
    assert bounded.success
    assert bounded.active_mask[40]
    assert bounded.value == pytest.approx(limited.value, rel=1e-8)


# ------------------------------------------------------------------ residuals of many unknowns


def oscillator(width, m=60, by_samples=True):
    """Return residuals of a network for u'' + u = 0, u(0) = 1, u'(0) = 0."""
    t = np.linspace(0, 6, m)

    def u(p, t):
        a, b, c = p.reshape(3, width)
        return 1 + t**2 * jnp.tanh(a * t + b) @ c

    def residual(p, t):
        velocity = jax.grad(u, 1)
        return jax.grad(velocity, 1)(p, t) + u(p, t)

    x0 = np.random.default_rng(3).normal(size=3 * width) * np.repeat([1.0, 1.0, 0.1], width)
    if by_samples:
        return cfgd.Residuals(residual, samples=(t,)), x0
    return cfgd.Residuals(lambda p: jax.vmap(residual, (None, 0))(p, t)), x0


def test_a_network_of_many_weights_leaves_levenberg_marquardt():
    """Its steps are slow there; the quasi-Newton steps go on from the same point, downwards."""
    f, x0 = oscillator(40, by_samples=False)
    ends = cfgd.minimize(f, x0, max_iterations=120)
    only = cfgd.minimize(f, x0, cfgd.Auto("levenberg_marquardt"), max_iterations=TRIAL)
    assert np.array_equal(ends.history["value"][: TRIAL + 1], only.history["value"])
    assert (np.diff(ends.history["value"]) <= 0).all()
    # 120 Jacobians of 60 rows would be 7,200 gradients
    assert ends.evaluations < 3000


def test_residuals_by_samples_take_quasi_newton_steps_from_the_start():
    f, x0 = oscillator(40)
    ends = cfgd.minimize(f, x0, max_iterations=50)
    only = cfgd.minimize(f, x0, cfgd.Auto("quasi_newton"), max_iterations=50)
    assert np.array_equal(ends.x, only.x)


def test_fast_progress_keeps_levenberg_marquardt():
    """Nearly linear residuals of 120 unknowns converge in a few Gauss-Newton steps."""
    A = np.random.default_rng(5).normal(size=(200, 120))
    y = A @ np.ones(120) + 0.1
    f = cfgd.Residuals(lambda p: jnp.tanh(A @ p / 50) * 50 - y)
    ends = cfgd.minimize(f, np.zeros(120))
    only = cfgd.minimize(f, np.zeros(120), cfgd.Auto("levenberg_marquardt"))
    assert ends.success
    assert np.array_equal(ends.x, only.x)


def test_a_small_network_stays_with_levenberg_marquardt():
    f, x0 = oscillator(12)
    ends = cfgd.minimize(f, x0, max_iterations=30)
    only = cfgd.minimize(f, x0, cfgd.Auto("levenberg_marquardt"), max_iterations=30)
    assert np.array_equal(ends.x, only.x)


def test_progress_of_levenberg_marquardt_is_judged_by_f_or_its_gradient():
    f, x0 = oscillator(40, by_samples=False)
    first = LMThenQuasiNewton().init(Oracle(host_objective(f), x0), x0)
    value, norm2 = first.evaluation.value, first.norm2
    assert not is_worthwhile(first)
    assert is_worthwhile(dataclasses.replace(first, tested_value=2.1**TRIAL * value))
    assert is_worthwhile(dataclasses.replace(first, tested_norm2=4.1**TRIAL * norm2))
    assert not is_worthwhile(dataclasses.replace(first, tested_value=1.9**TRIAL * value))


def test_new_samples_keep_the_matrix():
    """With other samples of the same kind f is curved much the same; x and counts begin anew."""
    f, x0 = oscillator(40)
    other = cfgd.Residuals(f.fn, samples=(np.linspace(0.05, 5.9, 60),))
    solver, goal = QuasiNewton(), Goal(1e-8)
    oracle, changed = (Oracle(host_objective(objective), x0) for objective in (f, other))
    with jax.enable_x64(True):
        state = solver.init(oracle, x0)
        early = solver.restart(changed, state)
        while not isinstance(state, BroydenState):
            state = solver.step(oracle, state, goal)
        state = solver.step(oracle, state, goal)
        later = solver.restart(changed, state)
        after = solver.step(changed, later, goal)
    assert isinstance(early, LBFGSState)
    assert later.matrix is state.matrix
    assert later.iteration == 0
    assert later.evaluation.value == pytest.approx(other.value(state.evaluation.x), rel=1e-12)
    assert after.evaluation.value < later.evaluation.value
