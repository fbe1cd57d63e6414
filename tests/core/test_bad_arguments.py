"""An argument of a wrong kind is refused by an error that names it."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd

pytestmark = [pytest.mark.every_case, pytest.mark.usefixtures("unchecked")]

A, B, C = np.array([[20.0, 1.0], [1.0, 2.0]]), np.array([1.0, -2.0]), np.zeros(2)
X = np.array([[1.0, 0.5], [1.0, -1.0], [1.0, 2.0], [1.0, 0.0]])
Y = np.array([0.3, -1.0, 2.2, 0.1])
STAGE = cfgd.Stage(3, gamma=0.1)


def bowl(x):
    return jnp.sum(x**2)


# what is called with right arguments, of which each is replaced by wrong ones in turn
CALLS = {
    "caputo": (cfgd.caputo, {"f": jnp.sin, "order": 0.5, "terminal": 0.0, "nodes": "auto"}),
    "smoothing": (
        cfgd.smoothing,
        {"f": jnp.sin, "alpha": 0.5, "beta": 0.0, "terminal": 0.0, "nodes": "auto"},
    ),
    "gauss_jacobi": (cfgd.gauss_jacobi, {"alpha": 0.5, "nodes": 3}),
    "fractional_gradient": (
        cfgd.fractional_gradient,
        {
            **{"objective": cfgd.Quadratic(A, B), "x": B, "terminal": C, "alpha": 0.5},
            **{"beta": 0.0, "nodes": 3, "reading": "exact"},
        },
    ),
    "Quadratic": (cfgd.Quadratic, {"A": A, "b": B, "constant": 0.0}),
    "LeastSquares": (cfgd.LeastSquares, {"X": X, "y": Y, "l2": 0.0}),
    "LinearModel": (
        cfgd.LinearModel,
        {"X": X, "y": Y, "loss": "squared", "l2": 0.0, "intercept": False},
    ),
    "Residuals": (
        cfgd.Residuals,
        {"fn": lambda p: p - 1.0, "loss": "squared", "scale": 1.0, "args": ()},
    ),
    "ShallowNetwork": (
        cfgd.ShallowNetwork,
        {"z": Y, "y": Y, "width": 2, "activation": "tanh"},
    ),
    "Smooth": (cfgd.Smooth, {"fn": bowl, "args": ()}),
    "External": (cfgd.External, {"value": bowl}),
    "Local": (cfgd.Local, {"objective": bowl, "curvature": "exact", "probes": 1}),
    "AdaptiveTerminal": (cfgd.AdaptiveTerminal, {"alpha": 0.5, "gamma": -0.2}),
    "NonAdaptive": (cfgd.NonAdaptive, {"terminal": C, "alpha": 0.5, "gamma": 0.2}),
    "AdaptiveOrder": (cfgd.AdaptiveOrder, {"stages": [STAGE], "terminal": C}),
    "GradientDescent": (cfgd.GradientDescent, {"step": cfgd.ExactStep()}),
    "Stage": (cfgd.Stage, {"iterations": 3, "alpha": 0.5, "gamma": 0.1}),
    "FixedStep": (cfgd.FixedStep, {"eta": 0.1}),
    "ArmijoStep": (cfgd.ArmijoStep, {"initial": 1.0, "shrink": 0.5, "fraction": 1e-4}),
    "Lagged": (cfgd.terminal.Lagged, {"lag": 1}),
    "Fixed": (cfgd.terminal.Fixed, {"terminal": 0.0}),
    "Constant": (cfgd.order.Constant, {"alpha": 0.5, "gamma": 0.1}),
    "Stages": (cfgd.order.Stages, {"stages": [STAGE]}),
    "beta_of": (cfgd.order.beta_of, {"alpha": 0.5, "gamma": 0.1}),
    "Parameter": (cfgd.Parameter, {"value": 1.0, "bounds": (0, None), "fixed": False}),
    "Resample": (cfgd.Resample, {"draw": lambda k, x: (), "every": 3}),
    "Wang2017": (cfgd.zoo.Wang2017, {"eta": 0.1, "alpha": 0.9, "delta": 0.0}),
    "parameter": (cfgd.zoo.parameter, {"allowed": cfgd.zoo.POSITIVE, "default": 1.0}),
    "tikhonov_solution": (
        cfgd.theory.tikhonov_solution,
        {"A": A, "b": B, "terminal": C, "gamma": 0.1},
    ),
    "tilde_A": (cfgd.theory.tilde_A, {"A": A, "gamma": 0.1}),
    "non_adaptive_rate": (cfgd.theory.non_adaptive_rate, {"A": A, "gamma": 0.1, "eta": 1.0}),
    "adaptive_terminal_matrices": (
        cfgd.theory.adaptive_terminal_matrices,
        {"A": A, "gamma": 0.1, "eta": 0.01, "lag": 1, "iterations": 3},
    ),
    "adaptive_terminal_bound": (
        cfgd.theory.adaptive_terminal_bound,
        {"A": A, "gamma": 0.1, "eta": 0.01, "errors": [1.0, 1.0], "iterations": 3},
    ),
    "spectral_radius": (
        cfgd.theory.spectral_radius,
        {"A": A, "gamma": 0.1, "eta": 0.01, "lag": 1},
    ),
    "adaptive_order_constant": (
        cfgd.theory.adaptive_order_constant,
        {"A": A, "b": B, "terminal": C, "gammas": [0.1]},
    ),
    "adaptive_order_bound": (
        cfgd.theory.adaptive_order_bound,
        {"A": A, "b": B, "terminal": C, "x0": B, "stages": [(3, 0.1)], "eta": 1.0},
    ),
    "best_constants": (cfgd.theory.best_constants, {"A": A}),
}
WRONG = {
    "an object": object(),
    "a word": "nonsense",
    "a complex number": 1j,
    "rows of different lengths": [1.0, [2.0]],
    "a dict": {"a": object()},
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_the_argument(name, wrong):
    call, right = CALLS[name]
    call(**right)
    for argument in right:
        with pytest.raises(ValueError, match=f"({argument}[=\\[]|{argument}`)"):
            call(**{**right, argument: WRONG[wrong]})


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"throw": "yes"}, "`minimize(throw=...)` must be True or False, got 'yes'."),
        ({"progress": 1.0}, "`minimize(progress=...)` must be True or False, got 1.0."),
        ({"time_limit": [1.0, 2.0]}, "`minimize(time_limit=...)` must be one number, got shape"),
        ({"args": {}}, "`minimize(args=...)` must be used with a function of x and args"),
    ],
)
def test_keywords_of_minimize(keywords, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        cfgd.minimize(cfgd.Quadratic(A, B), C, **keywords)
