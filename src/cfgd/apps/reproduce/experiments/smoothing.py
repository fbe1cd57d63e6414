"""Figure 2: the smoothing F of a quartic, and the linear approximations of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import Polynomial

import cfgd
from cfgd.apps.page.drawing import Panel, line
from cfgd.apps.reproduce.experiment import Experiment, Meter, Record, Setting
from cfgd.apps.reproduce.report.claim import Claim

ALPHA, BETA, TERMINAL = 0.66, 1.0, -1.0
POINTS = (-2.7, 0.7)
RANGE = np.linspace(-5.0, 7.0, 241)
# the slopes of f and F by the definitions, to double precision
SLOPES = {-2.7: (-41.004, -279.98780395580843), 0.7: (-513.876, -902.1139947430053)}
# f as a polynomial
POLYNOMIAL = Polynomial([-6, 1]) * Polynomial([4, 1]) * Polynomial([24, 10, 7])


def f(z: Any) -> Any:
    return (z - 6) * (z + 4) * (7 * z**2 + 10 * z + 24)


def series(z: Any) -> Any:
    """Return F by the series of Theorem 1, independently of `cfgd.smoothing`."""
    derivatives = [float(POLYNOMIAL.deriv(k)(TERMINAL)) for k in range(5)]
    total = derivatives[0] + derivatives[1] * (z - TERMINAL)
    for k in range(2, 5):
        over = math.gamma(2 - ALPHA) * math.gamma(k)
        scale = over / math.gamma(k + 1 - ALPHA) + BETA * over / math.gamma(k - ALPHA)
        total = total + scale * derivatives[k] / math.factorial(k) * (z - TERMINAL) ** k
    return total


def scaled_caputo(x: Any) -> Any:
    """Return D^a f / D^a I + beta |x - c| D^(1+a) f / D^a I, the slope in Theorem 1."""
    first, second = (cfgd.caputo(f, order, TERMINAL)(x) for order in (ALPHA, 1 + ALPHA))
    identity = cfgd.caputo(lambda t: t, ALPHA, TERMINAL)(x)
    return (first + BETA * abs(x - TERMINAL) * second) / identity


def evaluate(fn: Callable[[Any], Any], x: Any) -> Any:
    """Return fn(x) in double precision, compiled as one program."""
    with jax.enable_x64(True):
        return np.asarray(jax.jit(lambda x: fn(x))(jnp.asarray(x)))


def run(setting: Setting, meter: Meter) -> Record:
    meter.start(4)
    F = cfgd.smoothing(f, ALPHA, BETA, TERMINAL)
    computed = {}
    for name, fn in (
        ("F", F),
        ("F'", F.slope),
        ("f'", cfgd.caputo(f, 1, -10.0)),  # order one, with a terminal left of every point
        ("scaled", scaled_caputo),
    ):
        computed[name] = evaluate(fn, np.concatenate([POINTS, RANGE]))
        meter.advance(1)
    data: dict[str, Any] = {
        "z": RANGE,
        "f": f(RANGE),
        "F": computed["F"][len(POINTS) :],
        "series": series(RANGE),
    }
    for i, x in enumerate(POINTS):
        data[f"{x:g}"] = {"f": f(x)} | {name: float(each[i]) for name, each in computed.items()}
    parameters = {
        "objective": "(z - 6)(z + 4)(7z² + 10z + 24)",
        "alpha": ALPHA,
        "beta": BETA,
        "terminal": TERMINAL,
        "points": POINTS,
        "seeds": "none: nothing is random",
    }
    return Record(data, parameters)


def slope_claim(x: float, which: str, wanted: float) -> Claim:
    return Claim(
        f"{which}({x:g}), the slope of the linear approximation of {which[0]}",
        f"section 2.2, figure 2, {'left' if x < 0 else 'right'}",
        wanted,
        "equals",
        lambda data: data[f"{x:g}"][which],
        tolerance=1e-10,
    )


def gap(data: Mapping[str, Any]) -> float:
    """Return the largest relative gap between F' and the scaled Caputo derivative."""
    return max(abs(data[f"{x:g}"]["F'"] / data[f"{x:g}"]["scaled"] - 1) for x in POINTS)


CLAIMS = [
    *(
        slope_claim(x, which, wanted)
        for x, pair in SLOPES.items()
        for which, wanted in zip(("f'", "F'"), pair, strict=True)
    ),
    Claim(
        "The slope of F is the scaled Caputo fractional derivative of f (relative gap)",
        "theorem 1 and section 2.2",
        1e-10,
        "at most",
        gap,
    ),
    Claim(
        "F equals the series of theorem 1 (largest difference in the figure, relative to the"
        " largest F)",
        "theorem 1",
        1e-10,
        "at most",
        lambda data: np.max(np.abs(data["F"] - data["series"])) / np.max(np.abs(data["F"])),
    ),
]


def panel_at(x: float) -> Any:
    def draw(axis: Any, data: Mapping[str, Any]) -> None:
        z, values = data["z"], data[f"{x:g}"]
        line(axis, z, data["f"], "ink", label="f")
        line(axis, z, data["F"], "blue", label="F, its smoothing")
        line(
            axis,
            z,
            values["F"] + values["F'"] * (z - x),
            "orange",
            label="F linear",
            linestyle="--",
        )
        line(
            axis, z, values["f"] + values["f'"] * (z - x), "green", label="f linear", linestyle="-."
        )
        axis.plot([x, x], [values["f"], values["F"]], "o", color="#1f2328", markersize=4)
        axis.set(xlabel="z", xlim=(-5, 7), ylim=(-5000, 3000))
        axis.legend(loc="lower left")

    return draw


EXPERIMENT = Experiment(
    name="smoothing",
    title="The smoothing behind the direction",
    where="figure 2",
    summary="f, its smoothing F and both linear approximations",
    about=(
        "The Caputo fractional slope of f at x is the ordinary slope of another function, the "
        "smoothing F of theorem 1. The slopes are compared with their values by the definition, "
        "and F with the theorem's series."
    ),
    run=run,
    claims=CLAIMS,
    panels=[[Panel("x = -2.7", panel_at(-2.7)), Panel("x = 0.7", panel_at(0.7))]],
)
