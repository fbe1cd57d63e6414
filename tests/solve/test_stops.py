"""Why runs stop, and the message that says so."""

import jax.numpy as jnp
import numpy as np
import pytest
from bowls import FLAT, RECORD, X0, F, bowl, fixed
from fake_clock import fake_clock

import cfgd
from cfgd import GradientDescent, NonAdaptive, Status
from problems import BOWL, WAVE_X0, A, B, C, do_nothing, stages_of


def stages_done():
    return cfgd.minimize(F, X0, stages_of(0.8), tolerance=0, record=RECORD, callback=do_nothing)


def indefinite():
    """Every 2 x 2 minor is positive, so that the cheap check lets it pass; (1, 1, 1) is bad."""
    A = 1.9 * np.eye(3) - 0.9
    assert np.linalg.eigvalsh(A)[0] < -0.7
    assert A[0, 0] * A[1, 1] - A[0, 1] ** 2 > 0
    f = cfgd.Quadratic(A, np.zeros(3))
    return cfgd.minimize(f, [1.0, 1.1, 0.9], GradientDescent(), record=RECORD)


def downhill(x):
    return x[0] - 2 * x[1]


def stalled():
    """1 + x^2 cannot tell x = 1e-9 from 0."""
    f = cfgd.Smooth(lambda x: 1 + jnp.sum(x**2) + x[0] * x[1] / 2)
    return cfgd.minimize(f, WAVE_X0, GradientDescent(cfgd.ArmijoStep()), tolerance=0)


def time_limit(seconds):
    """Run until the time limit; an iteration takes a second."""
    with fake_clock() as clock:
        return fixed(
            0.1,
            FLAT,
            tolerance=0,
            max_iterations=100,
            time_limit=seconds,
            callback=lambda solution: clock.advance(1.0),
        )


STOPS = {
    "tolerance": (bowl, Status.converged),
    "max_iterations": (lambda: bowl(max_iterations=7), Status.max_iterations),
    "stages_done": (stages_done, Status.stages_done),
    "time_limit": (lambda: time_limit(5.0), Status.time_limit),
    "callback": (lambda: bowl(callback=lambda solution: True), Status.callback),
    "nonfinite": (lambda: fixed(1.0), Status.nonfinite),
    "indefinite": (indefinite, Status.indefinite),
    "stalled": (stalled, Status.stalled),
    "unbounded": (lambda: cfgd.minimize(downhill, WAVE_X0, record=RECORD), Status.unbounded),
}
CAUSE_AND_REMEDY = {
    Status.converged: ("Converged", "meets the tolerance"),
    Status.max_iterations: ("Stopped at `max_iterations`", "raise `max_iterations`"),
    Status.stages_done: ("All stages", "add stages"),
    Status.time_limit: ("Stopped at `time_limit`", "raise `time_limit`"),
    Status.callback: ("`callback`", ""),
    Status.nonfinite: ("became non-finite", "smaller `FixedStep`"),
    Status.indefinite: ("negative curvature", "check that `A` is positive semi-definite"),
    Status.stalled: ("No step", "Use float64"),
    Status.interrupted: ("Interrupted", "start again from it"),
    Status.unbounded: ("decreases without bound", "check its sign"),
    Status.saddle: ("saddle", "start from another point"),
    Status.wrong_gradient: ("contradicts the values", "cfgd.check_gradient"),
    Status.separated: ("has no maximum", "add a penalty"),
    Status.no_data: ("every point is missing", "check the data"),
}


@pytest.mark.parametrize(("run", "status"), STOPS.values(), ids=STOPS)
def test_stop(run, status):
    solution = run()
    cause, remedy = CAUSE_AND_REMEDY[status]
    assert solution.status is status
    assert solution.message.startswith(status.value)
    assert cause in solution.message
    assert remedy in solution.message
    assert solution.success == (status is Status.converged)
    assert np.isfinite(solution.x).all()
    assert solution.value <= solution.history["value"][0]
    assert solution.history["iteration"][-1] == solution.iterations


def test_every_status_has_its_words():
    assert {Status.running, *CAUSE_AND_REMEDY} == set(Status)


def test_tolerance_is_relative_to_the_gradient_at_the_start():
    solution = bowl(tolerance=1e-5)
    norms = np.linalg.norm(solution.history["x"] @ A + B, axis=1)
    assert norms[-1] <= 1e-5 * norms[0] < norms[-2]
    np.testing.assert_allclose(solution.gradient_norm, norms[-1], rtol=1e-8)
    np.testing.assert_allclose(solution.value, BOWL.value(solution.x), rtol=1e-13)


def test_tolerance_of_the_non_adaptive_version_is_on_its_direction():
    solution = cfgd.minimize(F, X0, NonAdaptive(C, gamma=0.4), tolerance=1e-5, record=RECORD)
    points = solution.history["x"]
    norms = np.linalg.norm(points @ A + B + 0.4 * np.diag(A) * (points - C), axis=1)
    assert norms[-1] <= 1e-5 * norms[0] < norms[-2]
    np.testing.assert_array_equal(solution.x, points[-1])
    assert "that is no minimum, but a Tikhonov solution" in solution.message
    assert "Tikhonov" not in bowl().message


@pytest.mark.slow
def test_the_last_point_and_not_the_best_ends_a_non_adaptive_run():
    """f is less on the way than at the Tikhonov solution."""
    start = BOWL.minimiser + np.array([0.3, -0.2, 0.1])
    solution = cfgd.minimize(F, start, NonAdaptive(C, gamma=0.4), record=RECORD)
    assert solution.history["value"].min() < solution.value - 0.1
    np.testing.assert_array_equal(solution.x, solution.history["x"][-1])


def test_tolerance_met_by_the_last_iteration_allowed():
    needed = bowl().iterations
    assert bowl(max_iterations=needed).status is Status.converged
    assert bowl(max_iterations=needed - 1).status is Status.max_iterations


@pytest.mark.slow
def test_stages_that_end_at_max_iterations():
    """To raise `max_iterations` would not help."""
    options = {"tolerance": 0, "record": RECORD, "callback": do_nothing}
    ended = cfgd.minimize(F, X0, stages_of(0.8), max_iterations=31, **options)
    assert ended.status is Status.stages_done
    cut = cfgd.minimize(F, X0, stages_of(0.8), max_iterations=30, **options)
    assert cut.status is Status.max_iterations
    assert cut.iterations == 30


def test_a_start_at_the_minimiser_has_converged():
    f = cfgd.Quadratic(A, np.zeros(3))
    solution = cfgd.minimize(f, np.zeros(3), GradientDescent(), record=RECORD)
    assert solution.status is Status.converged
    assert solution.iterations == 0
    np.testing.assert_array_equal(solution.history["iteration"], [0])


def test_a_run_ends_at_its_time_limit():
    solution = time_limit(5.0)
    assert solution.seconds == 5.0
    assert solution.iterations == 6  # the time is read after an iteration, before the callback
    assert time_limit(1e6).status is Status.max_iterations


def test_throw_raises_unless_converged():
    with pytest.raises(
        cfgd.ConvergenceError, match=r"^Stopped at `max_iterations` before"
    ) as raised:
        bowl(max_iterations=7, throw=True)
    assert raised.value.solution.iterations == 7
    np.testing.assert_array_equal(raised.value.solution.x, bowl(max_iterations=7).x)
    assert bowl(throw=True).success
