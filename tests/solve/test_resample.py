"""`Resample`: new samples during a run, and what the run says about them."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from resumed import same

import cfgd

N = 25
GRID = np.linspace(0, 2, N)
P0 = np.array([0.5, -0.2])


def misfit(p, t):
    """Return the error of a model that is never exact: each set of samples has its own minimum."""
    return p[0] * jnp.exp(p[1] * t) - jnp.cos(t)


def draw(k, p):
    return (np.random.default_rng(k).uniform(0, 2, N),)


def half(p, t):
    return np.sum((p[0] * np.exp(p[1] * t) - np.cos(t)) ** 2) / 2


def run(every=4, draw=draw, **options):
    options = {"max_iterations": 30, "resample": cfgd.Resample(draw, every)} | options
    return cfgd.minimize(cfgd.Residuals(misfit, samples=(GRID,)), P0, **options)


def test_samples_are_replaced_and_each_row_says_by_which():
    calls = []

    def seen(k, p):
        calls.append((k, np.array(p)))
        return draw(k, p)

    found = run(every=3, draw=seen, max_iterations=8)
    rows = found.history
    np.testing.assert_array_equal(rows["drawn"], [0, 0, 0, 0, 3, 3, 3, 6, 6])
    np.testing.assert_array_equal(rows["iteration"], np.arange(9))
    assert [k for k, _ in calls] == [3, 6]
    for (k, p), nxt in zip(calls, (4, 7), strict=True):
        old = GRID if k == 3 else draw(3, p)[0]
        assert rows["value"][k] == pytest.approx(half(p, old))
        assert rows["value"][nxt] <= half(p, draw(k, p)[0])
    assert found.value == pytest.approx(half(found.x, draw(6, None)[0]))
    assert found.status is cfgd.Status.max_iterations
    assert found.message.endswith("Value and status are about the 25 samples drawn at iteration 6.")


def test_convergence_ends_the_samples_early():
    f = cfgd.Residuals(lambda p, t: p[0] + p[1] * t - jnp.cos(t), samples=(GRID,))
    found = cfgd.minimize(f, P0, resample=cfgd.Resample(draw, 1000), max_iterations=12)
    drawn = np.unique(found.history["drawn"])
    assert len(drawn) > 3
    for k in drawn[1:-1]:  # each set was left at its minimum
        t = draw(k, None)[0]
        least = np.linalg.lstsq(np.c_[np.ones(N), t], np.cos(t), rcond=None)[1][0] / 2
        at = np.flatnonzero(found.history["drawn"] == k)[-1]
        assert found.history["value"][at] == pytest.approx(least, rel=1e-9)
    assert not found.success


def exact(p, t):
    return jnp.exp(p[0] * t) - jnp.exp(0.3 * t) + p[1]


def test_a_run_has_converged_where_the_gradient_is_small_at_new_samples():
    f = cfgd.Residuals(exact, samples=(GRID,))
    found = cfgd.minimize(f, [1.0, 1.0], resample=cfgd.Resample(draw, 100))
    assert found.success
    np.testing.assert_allclose(found.x, [0.3, 0], atol=1e-7)
    k = found.history["drawn"][-1]
    assert k == found.iterations
    assert set(found.history["drawn"]) == {0, k}  # no steps for the sake of rounding errors
    assert f"about the 25 samples drawn at iteration {k}." in found.message
    assert found.history["value"][-1] == found.value


def test_nothing_is_compiled_again_and_a_function_has_new_arguments():
    def mean_square(p, t):
        return jnp.mean(misfit(p, t) ** 2)

    options = {"args": (GRID,), "max_iterations": 12, "resample": cfgd.Resample(draw, 5)}
    cfgd.minimize(mean_square, P0, args=(GRID,), max_iterations=12)
    found = cfgd.minimize(mean_square, P0, **options)
    assert found.compile_seconds == 0
    assert found.history["drawn"][-1] >= 5
    assert "about the arguments drawn at iteration" in found.message


@pytest.mark.parametrize("stop", [2, 4, 7, 11])
def test_a_run_goes_on_from_its_checkpoint_bit_for_bit(stop, tmp_path):
    file = tmp_path / "run"
    run(max_iterations=stop, checkpoint=file)
    same(run(max_iterations=14, checkpoint=file), run(max_iterations=14))


def test_a_checkpoint_of_another_drawing_is_refused(tmp_path):
    run(max_iterations=3, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match=r"its tolerances and records is .*'new samples every 4'"):
        run(every=5, checkpoint=tmp_path / "run")


def test_a_stop_right_after_a_drawing_changes_nothing(tmp_path):
    """The time is up inside the step after the drawing, which is therefore made again."""
    from fake_clock import fake_clock

    file = tmp_path / "run"
    with fake_clock() as clock:

        def slow(k, p):
            clock.advance(100)
            return draw(k, p)

        stopped = run(draw=slow, time_limit=50, checkpoint=file)
        assert stopped.status is cfgd.Status.time_limit
        assert stopped.iterations == 4
        assert stopped.history["value"][-1] == stopped.value
        assert stopped.message.endswith("about the 25 samples that were given.")
    same(run(max_iterations=14, checkpoint=file), run(max_iterations=14))


@pytest.mark.slow
def test_terms_points_chosen_by_their_residual_and_every_second_row():
    f = cfgd.ResidualTerms(
        curve=cfgd.Residuals(misfit, samples=(GRID,)),
        start=cfgd.Residuals(lambda p, t: p[0] - 1, samples=(np.zeros(1),)),
        weights={"start": 10.0},
    )

    def worst(k, p):
        many = np.random.default_rng(k).uniform(0, 2, 200)
        error = np.abs(p[0] * np.exp(p[1] * many) - np.cos(many))
        return {"curve": many[np.argsort(error)[-N:]]}

    found = cfgd.minimize(
        f, P0, resample=cfgd.Resample(worst, 3), max_iterations=10, every=2, tolerance=0
    )
    np.testing.assert_array_equal(found.history["iteration"], [0, 2, 4, 6, 8, 10])
    np.testing.assert_array_equal(found.history["drawn"], [0, 0, 3, 3, 6, 9])
    assert "about the 25 samples drawn at iteration 9." in found.message
    assert found.value == pytest.approx(found.terms["curve"] + 10 * found.terms["start"])
    assert found.terms["start"] == pytest.approx((found.x[0] - 1) ** 2 / 2)


@pytest.mark.slow
def test_parameters_and_bounds():
    seen = []

    def note(k, p):
        seen.append(sorted(p))
        return draw(k, p)

    p0 = cfgd.Parameters(a=cfgd.Parameter(1.0, fixed=True), b=cfgd.Parameter(0.0, bounds=(-0.1, 1)))
    f = cfgd.Residuals(lambda p, t: p["a"] * jnp.exp(p["b"] * t) - jnp.cos(t), samples=(GRID,))
    found = cfgd.minimize(f, p0, resample=cfgd.Resample(note, 2), max_iterations=6)
    assert found.x["b"] == -0.1
    assert set(map(tuple, seen)) == {("a", "b")}


def failing(k, p):
    raise ZeroDivisionError("no points")


SAMPLED = cfgd.Residuals(misfit, samples=(GRID,))
REFUSED = {
    "another shape": (
        lambda: run(draw=lambda k, p: np.zeros(3)),
        "`Resample(draw=...)` must return arrays of the shapes ((25,),), got ((3,),).",
    ),
    "not finite": (lambda: run(draw=lambda k, p: GRID * np.nan), "must be finite, got nan"),
    "no Resample": (
        lambda: cfgd.minimize(SAMPLED, P0, resample=draw),
        "`minimize(resample=...)` must be a cfgd.Resample, got a function.",
    ),
    "a method of the paper": (
        lambda: cfgd.minimize(
            SAMPLED, P0, cfgd.GradientDescent(), resample=cfgd.Resample(draw, 2)
        ),
        "`minimize(resample=...)` must be used with the method Auto, got GradientDescent.",
    ),
    "an objective without samples": (
        lambda: cfgd.minimize(
            cfgd.Quadratic(np.eye(2), P0), P0, resample=cfgd.Resample(draw, 2)
        ),
        "must be used with Residuals, ResidualTerms or a function, got a Quadratic.",
    ),
    "nothing to draw": (
        lambda: cfgd.minimize(lambda p: p @ p, P0, resample=cfgd.Resample(draw, 2)),
        "must be used with an objective that has `samples` or `args`, got a Smooth.",
    ),
    "a record of its name": (
        lambda: run(record={"drawn": lambda p: p[0]}),
        "`minimize(record=...)` must use other names than 'drawn', where samples are drawn, got",
    ),
    "no function": (lambda: cfgd.Resample(3, 2), "`Resample(draw=...)` must be a function of"),
    "every 0": (lambda: cfgd.Resample(draw, 0), "`Resample(every=...)` must be an integer"),
}  # fmt: skip


@pytest.mark.every_case
@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_an_error_while_drawing_comes_with_the_best_point():
    with pytest.raises(ZeroDivisionError, match="no points") as caught:
        run(draw=failing)
    assert caught.value.solution.iterations == 4
