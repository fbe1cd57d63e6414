"""Confidence intervals against MINOS and against fits by SciPy with one parameter held."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import cfgd
from fitting.minos_fits import MODELS

MINOS = json.loads((Path(__file__).parent / "minos.json").read_text())
T = np.array([0.0, 0.3, 0.9, 1.4, 2.2, 3.1, 3.3, 4.6])
Y = np.array([2.94, 2.41, 1.62, 1.30, 0.97, 0.83, 0.71, 0.55])
P0 = [1.0, 1.0, 0.0]


def decay(t, size, rate, rest):
    return size * jnp.exp(-rate * t) + rest


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


@pytest.mark.parametrize("name", MINOS)
@pytest.mark.one_case
def test_profiles_are_those_of_minos(name):
    case = MINOS[name]
    model = MODELS[case["model"]]

    def call(t, **p):
        return model(jnp, t, *[p[name] for name in case["start"]])

    x, y, sigma = (np.array(case[key]) for key in ("x", "y", "sigma"))
    more = {"bounds": case["limits"]} if case["limits"] else {}
    fit = cfgd.curve_fit(call, x, y, case["start"], sigma, absolute_sigma=True, **more)
    assert fit.chi_square == pytest.approx(case["chi_square"], rel=1e-6)
    found = fit.intervals()
    for parameter, ends in case["intervals"].items():
        estimate = case["estimates"][parameter]
        for own, theirs, valid in zip(
            found[parameter], ends, case["valid"][parameter], strict=True
        ):
            if valid:
                assert own - estimate == pytest.approx(theirs - estimate, rel=1e-3), parameter
