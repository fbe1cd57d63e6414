"""Confidence intervals against MINOS and against fits by SciPy with one parameter held."""

import dataclasses
import functools
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

import cfgd
from fitting.minos_fits import MODELS

MINOS = json.loads((Path(__file__).parent / "minos.json").read_text())
T = np.array([0.0, 0.3, 0.9, 1.4, 2.2, 3.1, 3.3, 4.6])
Y = np.array([2.94, 2.41, 1.62, 1.30, 0.97, 0.83, 0.71, 0.55])
P0 = [1.0, 1.0, 0.0]


def decay(t, size, rate, rest):
    return size * jnp.exp(-rate * t) + rest


@functools.cache
def fitted_decay():
    return cfgd.curve_fit(decay, T, Y, P0)


def residuals_of_decay(p):
    return p[0] * np.exp(-p[1] * T) + p[2] - Y


def profile_by_scipy(residuals, p, i, rise, side, lower=-np.inf, loss="linear", scale=1.0):
    """The end of an interval: SciPy's fits of all parameters but one, and a root search."""
    rest = [j for j in range(len(p)) if j != i]
    lower = np.broadcast_to(lower, len(p))

    def cost(held):
        def others(q):
            whole = np.insert(np.asarray(q, float), i, held)
            return residuals(whole)

        fit = scipy.optimize.least_squares(
            *(others, np.clip(p[rest], lower[rest] + 1e-9, None), "3-point"),
            bounds=(lower[rest], np.full(len(rest), np.inf)),
            **{"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14, "loss": loss, "f_scale": scale},
        )
        return 2 * fit.cost

    least = cost(p[i])
    step = 1e-3 * (abs(p[i]) + 0.1)
    while cost(p[i] + side * step) - least < rise:
        step *= 1.5
    return scipy.optimize.brentq(lambda h: cost(h) - least - rise, p[i], p[i] + side * step)


def fit_of(case):
    model = MODELS[case["model"]]

    def call(t, **p):
        return model(jnp, t, *[p[name] for name in case["start"]])

    x, y, sigma = (np.array(case[key]) for key in ("x", "y", "sigma"))
    bounds = case["limits"] or None
    return cfgd.curve_fit(call, x, y, case["start"], sigma, absolute_sigma=True, bounds=bounds)


@pytest.mark.slow
@pytest.mark.parametrize("name", MINOS)
def test_profiles_are_those_of_minos(name):
    """To 0.15 % of the half width: a search of MINOS ends at 0.1 %, SciPy's fits agree to 1e-5."""
    case = MINOS[name]
    fit = fit_of(case)
    assert fit.chi_square == pytest.approx(case["chi_square"], rel=1e-6)
    found = fit.intervals()
    for parameter, ends in case["intervals"].items():
        estimate, are_valid = case["estimates"][parameter], case["valid"][parameter]
        for own, theirs, is_valid in zip(found[parameter], ends, are_valid, strict=True):
            if is_valid:
                assert own - estimate == pytest.approx(theirs - estimate, rel=1.5e-3), parameter


@pytest.mark.slow
@pytest.mark.parametrize("name", MINOS)
def test_profiles_are_those_of_fits_by_scipy(name):
    case = MINOS[name]
    fit = fit_of(case)
    model, found, names = MODELS[case["model"]], fit.intervals(), list(case["start"])
    x, y, sigma = (np.array(case[key]) for key in ("x", "y", "sigma"))
    p = np.array([float(fit.values[name]) for name in names])
    lower = np.array([case["limits"].get(name, [-np.inf])[0] for name in names])
    for i, parameter in enumerate(names):
        for side, own in zip((-1, 1), found[parameter], strict=True):
            if own == lower[i]:
                continue
            theirs = profile_by_scipy(
                *(lambda q: (model(np, x, *q) - y) / sigma, p, i),
                *(scipy.special.ndtri(0.975) ** 2, side, lower),
            )
            assert own - p[i] == pytest.approx(theirs - p[i], rel=1e-5), parameter


@pytest.mark.usefixtures("unchecked")
def test_profiles_without_known_sigma_use_student_t():
    fit = fitted_decay()
    p, found = fit.parameters, fit.intervals(0.9, names="rate")
    s2 = np.sum(residuals_of_decay(p) ** 2) / 5
    rise = s2 * scipy.special.stdtrit(5, 0.95) ** 2
    for side, own in zip((-1, 1), found["rate"], strict=True):
        theirs = profile_by_scipy(residuals_of_decay, p, 1, rise, side)
        assert own - p[1] == pytest.approx(theirs - p[1], rel=1e-5)
    assert found.notes == []
    assert list(found) == ["rate"]
    assert found.level == 0.9


def test_normal_intervals():
    fit = fitted_decay()
    half = scipy.special.stdtrit(5, 0.975) * fit.standard_errors
    ends = np.array(list(fit.intervals(method="normal").values()))
    np.testing.assert_allclose(ends, np.stack([fit.parameters - half, fit.parameters + half], 1))
    known = cfgd.curve_fit(decay, T, Y, P0, sigma=np.full(8, 0.1), absolute_sigma=True)
    lower, upper = known.intervals(0.6, "normal", "rate")["rate"]
    width = 2 * scipy.special.ndtri(0.8) * known.standard_errors[1]
    assert upper - lower == pytest.approx(width, rel=1e-12)


@pytest.mark.usefixtures("unchecked")
def test_a_profile_of_a_line_is_the_normal_interval():
    fit = cfgd.curve_fit(lambda t, a, b: a + b * t, T, Y, [0.0, 0.0])
    normal, profile = fit.intervals(method="normal"), fit.intervals(names="b")
    np.testing.assert_allclose(profile["b"], normal["b"], rtol=1e-5)


@pytest.mark.slow
def test_an_interval_ends_at_the_bound():
    """The decay rate is not known from above, and its bound is the end; the estimate is inside."""
    t, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 0.02, -0.03, 0.01])
    given = {"sigma": np.full(4, 0.05), "absolute_sigma": True}
    fit = cfgd.curve_fit(
        *(lambda t, a, b: a * jnp.exp(-b * t), t, y, [1.0, 2.0]),
        bounds=([-np.inf, 0.0], [np.inf, 60.0]),
        **given,
    )
    found = fit.intervals()
    assert found["b"][1] == 60.0
    assert found.notes == ["b: the upper end is its bound."]

    def residuals(p):
        return (p[0] * np.exp(-p[1] * t) - y) / 0.05

    rise = scipy.special.ndtri(0.975) ** 2
    theirs = profile_by_scipy(residuals, fit.parameters, 1, rise, -1)
    assert found["b"][0] == pytest.approx(theirs, rel=1e-4)
    fit = cfgd.curve_fit(lambda t, a, b: a * jnp.exp(-b * t), t, y, [1.0, 2.0], **given)
    found = fit.intervals()
    assert found["b"][1] == np.inf
    assert "b: the upper end is infinite: with b = " in found.notes[0]


@pytest.mark.usefixtures("unchecked")
def test_an_estimate_at_its_bound_has_a_one_sided_interval():
    y = Y - 0.7  # the best rest is negative
    fit = cfgd.curve_fit(decay, T, y, P0, bounds=([-np.inf, -np.inf, 0.0], [np.inf] * 3))
    assert fit.at_bound == ["rest"]
    found = fit.intervals(names=["rate", "rest"])
    assert found["rest"][0] == 0.0
    rise = fit.residual_std**2 * scipy.special.stdtrit(6, 0.975) ** 2
    for i, name in ((1, "rate"), (2, "rest")):
        theirs = profile_by_scipy(
            *(lambda p: p[0] * np.exp(-p[1] * T) + p[2] - y, fit.parameters, i, rise, 1),
            lower=np.array([-np.inf, -np.inf, 0.0]),
        )
        width = theirs - fit.parameters[i]
        assert found[name][1] - fit.parameters[i] == pytest.approx(width, rel=1e-4), name
    normal = fit.intervals(method="normal")
    assert np.isnan(normal["rest"]).all()
    assert "rest: is at its bound 0" in normal.notes[0]


@pytest.mark.slow
def test_ties_and_fixed_parameters():
    """A tied fit has the profile of the model with the tie written into it."""
    fit = cfgd.curve_fit(
        *(decay, T, Y, {"size": 1.0, "rate": 1.0, "rest": 0.4}),
        tied={"rest": lambda p: 0.2 * p["size"]},
    )
    plain = cfgd.curve_fit(lambda t, a, b: a * (jnp.exp(-b * t) + 0.2), T, Y, [1.0, 1.0])
    np.testing.assert_allclose(fit.intervals()["size"], plain.intervals()["a"], rtol=1e-5)
    np.testing.assert_allclose(fit.intervals()["rate"], plain.intervals()["b"], rtol=1e-5)
    assert fit.errors["rest"] == pytest.approx(0.2 * fit.errors["size"], rel=1e-9)


@pytest.mark.slow
def test_a_robust_profile():
    """The rise of the robust cost, over the factor of the drop-in-dispersion test."""
    y = Y + np.array([0, 0, 0.5, 0, -0.4, 0, 0, 0])
    fit = cfgd.curve_fit(decay, T, y, P0, loss="soft_l1", scale=0.05)
    p, found = fit.parameters, fit.intervals(0.8)
    r = p[0] * np.exp(-p[1] * T) + p[2] - y
    root = np.sqrt(1 + (r / 0.05) ** 2)
    psi, slope = r / root, 1 / root**3
    k = 1 + 3 / 8 * np.var(slope) / np.mean(slope) ** 2
    rise = k * np.sum(psi**2) / 5 / np.mean(slope) * scipy.special.stdtrit(5, 0.9) ** 2
    for i, name in enumerate(fit.names):
        for side, own in zip((-1, 1), found[name], strict=True):
            theirs = profile_by_scipy(
                *(lambda q: q[0] * np.exp(-q[1] * T) + q[2] - y, p, i, rise, side),
                loss="soft_l1",
                scale=0.05,
            )
            assert own - p[i] == pytest.approx(theirs - p[i], rel=1e-4), name


@pytest.mark.slow
def test_an_undetermined_parameter_has_an_open_interval():
    with pytest.warns(UserWarning, match="The data do not determine a and b separately"):
        fit = cfgd.curve_fit(lambda t, a, b, c: (a + b) + c * t, T, Y, [1.0, 1.0, 0.0])
    found = fit.intervals()
    assert found["a"] == found["b"] == (-np.inf, np.inf)
    line = cfgd.curve_fit(lambda t, a, c: a + c * t, T, Y, [1.0, 0.0])
    # one degree of freedom less, because a and b both count
    half = np.diff(line.intervals()["c"])[0] * np.sqrt(6 / 5)
    half *= scipy.special.stdtrit(5, 0.975) / scipy.special.stdtrit(6, 0.975)
    assert np.diff(found["c"])[0] == pytest.approx(half, rel=1e-5)


@pytest.mark.usefixtures("unchecked")
def test_a_better_fit_elsewhere_is_reported():
    """The fit of a frequency ends in a side minimum; its profile runs into a deeper one."""
    t = np.linspace(0, 3, 40)
    y = np.sin(2.0 * t)
    fit = cfgd.curve_fit(lambda t, w, b: jnp.sin(w * t) + b, t, y, [6.0, 0.0])
    assert abs(fit.parameters[0] - 2.0) > 1
    found = fit.intervals(0.999999, names="w")
    assert np.isnan(found["w"]).any()
    assert any("there is a better fit than this one" in note for note in found.notes)


def test_a_profile_traces_and_compiles_nothing():
    traces = []

    def line(t, a, b):
        traces.append(1)
        return a + b * t

    fit = cfgd.curve_fit(line, T, Y, [0.0, 0.0])
    before = len(traces)
    fit.intervals(names="b")
    assert len(traces) == before


def test_ctrl_c_ends_a_profile(monkeypatch):
    """`minimize` returns at Ctrl-C; a profile of many fits must end, too."""
    fit = fitted_decay()
    interrupted = dataclasses.replace(fit.solution, status=cfgd.Status.interrupted)
    monkeypatch.setattr(type(fit.problem), "minimize", lambda *args, **options: interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit.intervals()


def test_a_start_whose_gradient_is_blocked_by_bounds():
    f = cfgd.Residuals(lambda p: p - jnp.array([3.0, 4.0]))
    solution = cfgd.minimize(f, [1.0, 2.0], bounds=([0.0, 2.0], [1.0, 2.0]))
    assert solution.success
    np.testing.assert_array_equal(solution.x, [1.0, 2.0])


BAD = {
    "level": (lambda fit: fit.intervals(1.0), "level=.* must lie in"),
    "method": (lambda fit: fit.intervals(method="minos"), "method=.* must be one of profile"),
    "names": (lambda fit: fit.intervals(names=["x"]), "names=.* must be among the free parameters"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
@pytest.mark.every_case
def test_bad_input(call, message):
    fit = fitted_decay()
    with pytest.raises(ValueError, match=message):
        call(fit)
