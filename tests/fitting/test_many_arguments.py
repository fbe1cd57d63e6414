"""Wrong arguments of `curve_fit_many` are refused before any work starts."""

import jax
import numpy as np
import pytest
from curves import decay
from many_decays import P0, T, Y, fit

import cfgd


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"Y": Y[0, 0]}, r"Y=.*one row of points for each fit \(`curve_fit` fits a single one\)"),
        ({"Y": Y[:0]}, r"Y=.*at least one fit and one point, got shape \(0, 11, 10\)"),
        ({"Y": Y + 1j}, r"Y=.*must be real: fit real and imaginary parts"),
        ({"Y": [["a", "b"]]}, r"Y=.*must be an array of numbers"),
        ({"x": T[:4]}, r"model=.*one number for each of the 10 points.*got shape \(4,\)"),
        ({"x": "time"}, r"x=.*must be numbers where Y is not a DataArray, got 'time'"),
        ({"p0": np.ones((4, 3))}, r"p0=.*the leading shape \(7, 11\) of Y, got shape \(4, 3\)"),
        ({"p0": "guess"}, r"p0=.*must be numbers, a dict, Parameters or a function, got 'guess'"),
        ({"p0": [1.0, 1.0]}, r"p0=.*a number for each of size, rate, rest, got 2"),
        ({"p0": lambda t, y: float(y[0])}, r"p0=.*must be written in JAX"),
        ({"p0": {"size": [1.0, 2.0], "rate": 1.0, "rest": 0.0}}, r"one number for 'size'"),
        ({"sigma": np.ones(4)}, r"sigma=.*\(7, 11, 10\) or \(7, 11, 1\), got shape \(4,\)"),
        ({"sigma": -1.0}, r"sigma=.*must be positive"),
        ({"mask": np.ones(4, bool)}, r"mask=.*got shape \(4,\)"),
        ({"mask": Y}, r"mask=.*must be True for points to leave out, got dtype float64"),
        ({"bounds": {"a": (0, 1)}}, r"bounds=.*one of the parameters size, rate, rest, got 'a'"),
        ({"threads": 0}, r"threads=.*at least 1, got 0"),
        ({"tolerance": -1}, r"tolerance=.*must be positive"),
    ],
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        cfgd.curve_fit_many(**{"model": decay, "x": T, "Y": Y, "p0": P0} | arguments)


def test_a_corrected_model_is_fitted_in_double_precision():
    """JAX 0.10 keeps the constants of a trace that failed, in the precision of that trace."""
    t = T.copy()
    with pytest.raises(ValueError, match="must be written in JAX"):
        cfgd.curve_fit_many(lambda t, a: a * np.exp(-t), t, Y, [1.0])
    with jax.enable_x64(True):
        assert jax.jit(lambda t: 2 * t)(t).dtype == np.float64


def test_arguments_of_other_functions():
    with pytest.raises(TypeError, match=r"no argument `maxfev`: `max_iterations=` limits"):
        fit(maxfev=100)
    with pytest.raises(TypeError, match=r"has no argument `loss`"):
        fit(loss="huber")
