"""Starts that are guessed, linear parameters, models that are not finite, and what is compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from curves import P0, T, Y, decay

import cfgd
from cfgd.fitting.guess import spread

WAVE = np.linspace(0, 10, 60)


def wave(t, size, frequency, phase):
    return size * jnp.sin(frequency * t + phase)


@pytest.mark.slow
def test_a_guessed_start_finds_what_one_start_does_not():
    y = 3 * np.sin(5.3 * WAVE + 1) + 0.1 * np.cos(91 * WAVE)
    bounds = {"size": (0, 10), "frequency": (0, 20), "phase": (0, 2 * np.pi)}
    fit = cfgd.curve_fit(wave, WAVE, y, "guess", bounds=bounds)
    np.testing.assert_allclose(fit.parameters, [3, 5.3, 1], atol=0.05)
    (note,) = fit.problem.notes
    assert "of 1024 points of a Sobol' sequence within the bounds, the best 8 were refined" in note
    one = cfgd.curve_fit(wave, WAVE, y, [1.0, 1.0, 1.0], bounds=bounds)
    assert one.solution.value > 10 * fit.solution.value


@pytest.mark.slow
def test_a_guess_without_bounds_and_of_one_parameter():
    wanted = cfgd.curve_fit(decay, T, Y, P0).parameters
    np.testing.assert_allclose(cfgd.curve_fit(decay, T, Y, "guess").parameters, wanted, rtol=1e-5)
    some = cfgd.Parameters(size=cfgd.Parameter(bounds=(0, None)), rate=1.0, rest=0.0)
    fit = cfgd.curve_fit(decay, T, Y, some)
    np.testing.assert_allclose(list(fit.parameters.values()), wanted, rtol=1e-5)
    assert "of 256 points" in fit.problem.notes[0]


def test_the_range_of_starts():
    unit = np.linspace(0.01, 0.99, 99)
    for lower, upper in [(-1, 3), (1e-6, 2), (-5, -1e-4), (2, np.inf), (-np.inf, -1)]:
        found = spread(unit, lower, upper)
        assert np.all((found >= lower) & (found <= upper))
        assert len(np.unique(found)) == 99
    assert np.median(spread(unit, 1e-6, 1.0)) == pytest.approx(1e-3)  # even in the logarithm
    both = spread(unit, -np.inf, np.inf)
    assert (both.min(), both.max()) == pytest.approx((-(10**2.88), 10**2.88))


@pytest.mark.parametrize("p0", [[-30.0, 0.3, 77.0], "guess"], ids=["poor", "guess"])
def test_linear_parameters_by_variable_projection(p0):
    fit = cfgd.curve_fit(decay, T, Y, p0, bounds={"rate": (0.01, 9)}, linear=["size", "rest"])
    plain = cfgd.curve_fit(decay, T, Y, P0)
    np.testing.assert_allclose(fit.parameters, plain.parameters, rtol=1e-6)
    np.testing.assert_allclose(fit.covariance, plain.covariance, rtol=1e-5)
    assert "Variable projection" in fit.problem.notes[-1]
    np.testing.assert_allclose(fit.solution.value, plain.solution.value, rtol=1e-9)
    np.testing.assert_allclose(fit.solution.covariance(), plain.covariance, rtol=1e-5)
    np.testing.assert_array_equal(fit.solution.active_mask, [0, 0, 0])


LINEAR_REFUSED = {
    "not linear": ({"linear": ["rate"]}, "parameters in which the model is jointly linear, got"),
    "unknown": ({"linear": ["foo"]}, r"name free parameters among size, rate, rest, got \['foo'\]"),
    "bounded": ({"linear": ["size"], "bounds": (0, 5)}, "name parameters without bounds"),
    "robust": ({"linear": ["size"], "loss": "huber"}, "left out with a robust loss"),
    "all": (
        {"linear": ["size", "rest"], "fixed": ["rate"]},
        "leave at least one free parameter that is not linear",
    ),
}


@pytest.mark.parametrize(("keywords", "message"), LINEAR_REFUSED.values(), ids=LINEAR_REFUSED)
def test_linear_parameters_that_are_refused(keywords, message):
    with pytest.raises(ValueError, match=message):
        cfgd.curve_fit(decay, T, Y, P0, **keywords)


# ------------------------------------------------------------------ models that are not finite

DOSE = np.array([0, 0, 0.5, 1, 2, 4, 8, 16])
EFFECT = np.array([10.0, 9.8, 9, 8, 6, 3.5, 2, 1.1])


def test_a_derivative_that_is_not_finite_names_points_and_parameters():
    """JAX computes the derivative of (x/e)**b at x = 0 as 0 times an infinity."""
    message = r"respect to `e` is not finite at 2 points, index 0 \(x = 0\), 1 \(x = 0\).*safe"
    with pytest.raises(ValueError, match=message):
        cfgd.curve_fit(lambda x, b, D, e: D / (1 + (x / e) ** b), DOSE, EFFECT, [0.8, 10, 3.0])


def test_the_remedies_work():
    def dose_response(x, b, D, e):
        safe = jnp.where(x > 0, x, 1)
        return D / (1 + jnp.where(x > 0, (safe / e) ** b, 0))

    fit = cfgd.curve_fit(dose_response, DOSE, EFFECT, [0.8, 10, 3.0])
    assert fit.solution.success
    y = np.where(DOSE > 0, EFFECT, np.nan)
    less = cfgd.curve_fit(
        lambda x, b, D, e: D / (1 + (x / e) ** b), DOSE, y, [0.8, 10, 3.0], missing="drop"
    )
    assert less.solution.success
    assert less.dof == 3


def test_a_model_that_is_not_finite_names_points():
    with pytest.raises(
        ValueError, match=r"model is not finite at index 0 \(x = 0\): start elsewhe"
    ):
        cfgd.curve_fit(lambda t, a, b: a * jnp.log(t) + b, T, Y, [1.0, 1.0])


# ------------------------------------------------------------------ compilation


def half(p):
    return p["size"] / 2


RANDOM = np.random.default_rng(1)
AGAIN = {
    "numbers": lambda: {
        "fixed": {"rest": RANDOM.uniform(0.3, 0.5)},
        "bounds": (0, RANDOM.uniform(5, 9)),
    },
    "ties": lambda: {"tied": {"rate": half}, "sigma": RANDOM.uniform(0.1, 0.2, 8)},
    "missing": lambda: {"missing": "drop", "weights": (RANDOM.permutation(8) > 1) * 1.0},
    "errors of x": lambda: {"sigma": 0.1, "sigma_x": RANDOM.uniform(0.01, 0.1)},
    "linear": lambda: {"linear": ["size", "rest"]},
}


@pytest.mark.parametrize("keywords", AGAIN.values(), ids=AGAIN)
def test_new_numbers_compile_nothing(keywords):
    def fit():
        y = Y + RANDOM.normal(0, 0.02, 8)
        cfgd.curve_fit(decay, T, y, RANDOM.uniform(0.7, 1.3, 3), **keywords())

    def listen(event, seconds, **_):
        if event.endswith("backend_compile_duration"):
            compiled.append(event)

    fit()
    fit()  # some starts need programs that others do not
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        fit()
        assert compiled == []
        jax.jit(lambda x: x * 1.25)(3.0)
        assert compiled  # the name of the event is right
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
