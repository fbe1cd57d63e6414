"""Synthetic curves for fits: a model, the true parameters, the noise, and a start.

The data are model(x, truth) plus normal noise of a stated deviation, drawn with the seed 0. The
starts are those that a user reads off a plot, one or two digits of the right order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)  # hashable: JAX compiles by identity
class Curve:
    """Data of the curve y = model(x, p) with p = `truth` and normal noise."""

    name: str
    model: Callable[[Any, Any], Any]
    x: Any
    truth: Any
    x0: Any
    noise: float

    @property
    def y(self) -> np.ndarray:
        """Return the data in float64, the same ones each time."""
        with jax.enable_x64(True):
            exact = np.asarray(self.model(self.x, self.truth))
        return exact + self.noise * np.random.default_rng(0).normal(size=exact.shape)


def decay(x: Any, p: Any) -> Any:
    return p[0] * jnp.exp(-p[1] * x) + p[2]


def exponentials(x: Any, p: Any) -> Any:
    """Return a sum of exponentials with pairs of amplitude and rate."""
    return sum(a * jnp.exp(-k * x) for a, k in p.reshape(-1, 2))


def stretched(x: Any, p: Any) -> Any:
    return p[0] * jnp.exp(-((x / p[1]) ** p[2]))


def gaussians(x: Any, p: Any) -> Any:
    """Return peaks with amplitude, centre and width on a constant, the last parameter."""
    return p[-1] + sum(a * jnp.exp(-(((x - c) / w) ** 2) / 2) for a, c, w in p[:-1].reshape(-1, 3))


def lorentzians(x: Any, p: Any) -> Any:
    """Return peaks with amplitude, centre and half width on a line, the last two parameters."""
    line = p[-2] + p[-1] * x
    return line + sum(a / (1 + ((x - c) / w) ** 2) for a, c, w in p[:-2].reshape(-1, 3))


def pseudo_voigt(x: Any, p: Any) -> Any:
    a, c, w, share = p
    z = ((x - c) / w) ** 2
    return a * (share / (1 + z) + (1 - share) * jnp.exp(-jnp.log(2.0) * z))


def hill(x: Any, p: Any) -> Any:
    return p[0] + (p[1] - p[0]) / (1 + (p[2] / x) ** p[3])


def michaelis_menten(x: Any, p: Any) -> Any:
    return p[0] * x / (p[1] + x)


def substrate_inhibition(x: Any, p: Any) -> Any:
    return p[0] * x / (p[1] + x + x**2 / p[2])


def logistic(x: Any, p: Any) -> Any:
    return p[0] / (1 + jnp.exp(-p[1] * (x - p[2])))


def gompertz(x: Any, p: Any) -> Any:
    return p[0] * jnp.exp(-p[1] * jnp.exp(-p[2] * x))


def richards(x: Any, p: Any) -> Any:
    return p[0] * (1 + p[3] * jnp.exp(-p[1] * (x - p[2]))) ** (-1 / p[3])


def weibull_growth(x: Any, p: Any) -> Any:
    return p[0] - (p[0] - p[1]) * jnp.exp(-((p[2] * x) ** p[3]))


def sine(x: Any, p: Any) -> Any:
    return p[0] * jnp.sin(p[1] * x + p[2]) + p[3]


def damped_sine(x: Any, p: Any) -> Any:
    return p[0] * jnp.exp(-p[1] * x) * jnp.cos(p[2] * x + p[3])


def two_sines(x: Any, p: Any) -> Any:
    return p[0] * jnp.sin(p[1] * x) + p[2] * jnp.sin(p[3] * x) + p[4]


def power_law(x: Any, p: Any) -> Any:
    return p[0] * x ** p[1] + p[2]


def arrhenius(x: Any, p: Any) -> Any:
    """Return a rate at x kelvin with an activation energy in kJ/mol."""
    return p[0] * jnp.exp(-p[1] / (8.314e-3 * x))


def arrhenius_curved(x: Any, p: Any) -> Any:
    """Return a modified rate, with a power of the temperature x / 300."""
    return p[0] * (x / 300) ** p[2] * jnp.exp(-p[1] * (300 / x))


def rational(x: Any, p: Any) -> Any:
    return (p[0] + p[1] * x) / (1 + p[2] * x + p[3] * x**2)


def resonance(x: Any, p: Any) -> Any:
    return p[0] / jnp.sqrt((p[1] ** 2 - x**2) ** 2 + (p[2] * x) ** 2)


def saturation_recovery(x: Any, p: Any) -> Any:
    return p[0] * (1 - p[1] * jnp.exp(-x / p[2]))


def absorption(x: Any, p: Any) -> Any:
    """Return the concentration of a one-compartment model with first-order absorption."""
    dose, ka, ke = p
    return dose * ka / (ka - ke) * (jnp.exp(-ke * x) - jnp.exp(-ka * x))


def step_edge(x: Any, p: Any) -> Any:
    return p[0] + p[1] * jnp.arctan((x - p[2]) / p[3]) / jnp.pi


def langmuir_freundlich(x: Any, p: Any) -> Any:
    z = (p[1] * x) ** p[2]
    return p[0] * z / (1 + z)


def diode(x: Any, p: Any) -> Any:
    return p[0] * (jnp.exp(x / p[1]) - 1) + p[2] * x


def planck(x: Any, p: Any) -> Any:
    return p[0] / x**5 / (jnp.exp(p[1] / x) - 1)


def gauss_2d(x: Any, p: Any) -> Any:
    """Return a peak on the plane; x has a row for each of the two coordinates."""
    z = ((x[0] - p[1]) / p[3]) ** 2 + ((x[1] - p[2]) / p[4]) ** 2
    return p[0] * jnp.exp(-z / 2) + p[5]


def _curve(
    name: str,
    model: Callable[[Any, Any], Any],
    x: Any,
    truth: list[float],
    x0: list[float],
    noise: float,
) -> Curve:
    return Curve(name, model, np.asarray(x, float), np.array(truth), np.array(x0), noise)


def _grid(low: float, high: float, points: int) -> np.ndarray:
    return np.linspace(low, high, points)


_DOSES = np.geomspace(0.01, 100, 16)
_PLANE = np.stack([axis.ravel() for axis in np.meshgrid(_grid(-3, 3, 15), _grid(-3, 3, 15))])
CURVES = {
    curve.name: curve
    for curve in (
        _curve("decay", decay, _grid(0, 5, 50), [3, 1.2, 0.5], [1, 1, 0], 0.05),
        _curve(
            "biexponential", exponentials, _grid(0, 8, 100), [3, 2, 1, 0.4], [1, 3, 1, 0.1], 0.01
        ),
        _curve(
            "three exponentials",
            exponentials,
            _grid(0, 20, 400),
            [5, 3, 2, 0.6, 1, 0.1],
            [1, 5, 1, 1, 1, 0.2],
            1e-3,
        ),
        _curve("stretched", stretched, _grid(0.1, 20, 80), [2, 4, 0.6], [1, 1, 1], 0.02),
        _curve("one peak", gaussians, _grid(-5, 5, 60), [4, 1, 0.7, 0.3], [1, 0, 1, 0], 0.1),
        _curve(
            "two peaks",
            gaussians,
            _grid(0, 10, 120),
            [3, 3.2, 0.6, 2, 5, 0.9, 0.2],
            [1, 2, 1, 1, 6, 1, 0],
            0.05,
        ),
        _curve(
            "three peaks",
            gaussians,
            _grid(0, 12, 240),
            [3, 3, 0.5, 2, 5, 0.6, 1.5, 8, 1, 0.1],
            [1, 2.5, 1, 1, 5.5, 1, 1, 9, 1, 0],
            0.05,
        ),
        _curve(
            "Lorentz peaks",
            lorentzians,
            _grid(0, 10, 200),
            [5, 3, 0.3, 3, 6.5, 0.6, 0.5, 0.1],
            [2, 3.5, 1, 2, 6, 1, 0, 0],
            0.1,
        ),
        _curve(
            "pseudo-Voigt", pseudo_voigt, _grid(-4, 4, 81), [2, 0.2, 0.8, 0.4], [1, 0, 1, 0.5], 0.02
        ),
        _curve("Hill", hill, _DOSES, [0.1, 2, 1.5, 1.8], [0, 1, 10, 1], 0.03),
        _curve("Hill, steep", hill, _DOSES, [5, 95, 3, 4], [0, 100, 1, 1], 1.0),
        _curve("Michaelis-Menten", michaelis_menten, _DOSES, [7, 2.5], [1, 1], 0.1),
        _curve(
            "substrate inhibition", substrate_inhibition, _DOSES, [9, 1.2, 20], [5, 1, 100], 0.1
        ),
        _curve("logistic growth", logistic, _grid(0, 20, 40), [10, 0.8, 9], [8, 0.3, 5], 0.15),
        _curve("Gompertz", gompertz, _grid(0, 15, 40), [6, 5, 0.4], [5, 1, 0.1], 0.08),
        _curve("Richards", richards, _grid(0, 20, 60), [10, 0.7, 9, 0.5], [8, 0.5, 7, 1], 0.1),
        _curve(
            "Weibull growth", weibull_growth, _grid(0, 12, 50), [8, 1, 0.25, 2], [7, 0, 0.5, 1], 0.1
        ),
        _curve("sine", sine, _grid(0, 10, 100), [2, 1.9, 0.7, 0.5], [1, 2.1, 0, 0], 0.1),
        _curve(
            "damped oscillation",
            damped_sine,
            _grid(0, 10, 150),
            [3, 0.3, 4, 0.5],
            [2, 0.1, 4.3, 0],
            0.05,
        ),
        _curve(
            "two oscillations",
            two_sines,
            _grid(0, 10, 200),
            [2, 1.5, 1, 4, 0.3],
            [1, 1.4, 1, 4.2, 0],
            0.1,
        ),
        _curve("power law", power_law, _grid(0.5, 10, 40), [2, 1.6, 3], [1, 1, 0], 0.3),
        _curve("Arrhenius", arrhenius, _grid(280, 380, 30), [3e9, 55], [1e9, 50], 0.5),
        _curve(
            "Arrhenius, curved", arrhenius_curved, _grid(300, 1500, 40), [5, 8, 2], [10, 5, 1], 0.05
        ),
        _curve("rational", rational, _grid(0, 10, 60), [1, 4, 0.3, 0.2], [1, 1, 0.1, 0.1], 0.05),
        _curve("resonance", resonance, _grid(0.5, 4, 90), [2, 2.1, 0.3], [1, 2, 0.5], 0.05),
        _curve("recovery", saturation_recovery, _grid(0.05, 6, 30), [4, 1.8, 0.9], [3, 1, 2], 0.05),
        _curve("absorption", absorption, _grid(0.1, 24, 40), [10, 1.3, 0.2], [5, 2, 0.1], 0.1),
        _curve("edge", step_edge, _grid(-5, 5, 70), [2, 3, 0.4, 0.5], [1, 1, 0, 1], 0.05),
        _curve("Sips isotherm", langmuir_freundlich, _DOSES, [5, 0.8, 0.7], [4, 1, 1], 0.05),
        _curve("diode", diode, _grid(-0.5, 0.7, 60), [0.01, 0.09, 0.2], [0.1, 0.2, 0], 0.02),
        _curve("Planck", planck, _grid(0.5, 6, 80), [300, 5], [100, 3], 0.05),
        _curve(
            "peak on a plane",
            gauss_2d,
            _PLANE,
            [3, 0.5, -0.4, 0.8, 1.2, 0.2],
            [1, 0, 0, 1, 1, 0],
            0.1,
        ),
        _curve(
            "merged exponentials",
            exponentials,
            _grid(0, 4, 60),
            [2, 1, 2, 1.6],
            [1, 0.5, 1, 3],
            0.01,
        ),
        _curve("decay, few points", decay, _grid(0, 3, 5), [2, 0.9, 0.1], [1, 1, 0], 0.02),
        _curve("decay, large units", decay, _grid(0, 5, 50), [3e6, 1.2, 5e5], [1e6, 1, 0], 5e4),
        _curve("decay, many points", decay, _grid(0, 5, 20_000), [3, 1.2, 0.5], [1, 1, 0], 0.3),
    )
}
