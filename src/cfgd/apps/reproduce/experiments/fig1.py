"""Figures 1 and 3: trajectories on 10 x^2 + y^2, and how they depend on the starting pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.apps.page.drawing import Panel, contours, decades, line
from cfgd.apps.reproduce.experiment import Experiment, Meter, Record, Setting
from cfgd.apps.reproduce.experiments.solving import check_uninterrupted, identity
from cfgd.apps.reproduce.report.claim import Claim

X0 = np.array([1.0, -10.0])
PASTS = {
    "(-1, -1)": (-1.0, -1.0),
    "(-1, -1.01)": (-1.0, -1.01),
    "(-2, -1)": (-2.0, -1.0),
    "(0.3, -0.7)": (0.3, -0.7),
    "(0, 0)": (0.0, 0.0),
}
ITERATIONS = 300
REACHED = 1e-12  # the distance that counts as machine precision
# Iterations are counted as on all pages: up to a gradient of 1e-8 times that of the start, where
# `minimize` says by default that a run has converged.
TOLERANCE = 1e-8
LINEAR = slice(0, 30)  # iterations of gradient descent whose rate must be constant


def run(setting: Setting, meter: Meter) -> Record:
    f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    record: dict[str, Any] = {"x": identity, "distance": jnp.linalg.norm}
    meter.start(1 + len(PASTS))

    def trajectory(method: Any) -> dict[str, Any]:
        solution = check_uninterrupted(
            cfgd.minimize(f, X0, method, max_iterations=ITERATIONS, tolerance=1e-16, record=record)
        )
        meter.advance(1)
        return {**solution.history, "resets": solution.resets}

    data = {
        "gradient descent": trajectory(cfgd.GradientDescent()),
        "pasts": {
            name: trajectory(cfgd.AdaptiveTerminal(gamma=-1.0, past=[past]))
            for name, past in PASTS.items()
        },
    }
    parameters = {
        "objective": "10 x² + y²",
        "x0": X0.tolist(),
        "gamma": -1,
        "lag": 1,
        "past": PASTS,
        "step": "exact",
        "seeds": "none: nothing is random",
    }
    return Record(data, parameters)


def iterations_to_precision(history: Mapping[str, Any]) -> float:
    """Return the first iteration at machine precision, or infinity."""
    hits = np.flatnonzero(history["distance"] <= REACHED)
    return float(history["iteration"][hits[0]]) if hits.size else np.inf


def iterations_to_convergence(history: Mapping[str, Any]) -> float:
    """Return the first iteration at which `minimize` would say that the run has converged."""
    norms = history["gradient_norm"]
    hits = np.flatnonzero(norms <= TOLERANCE * norms[0])
    return float(history["iteration"][hits[0]]) if hits.size else np.inf


def straightness(history: Mapping[str, Any]) -> float:
    """Return the squared correlation of log f with the iteration."""
    logs = np.log(history["value"][LINEAR])
    return float(np.corrcoef(np.arange(len(logs)), logs)[0, 1] ** 2)


def iterations_with_past(name: str) -> Any:
    return lambda data: iterations_to_convergence(data["pasts"][name])


def early_ratio(data: Mapping[str, Any]) -> float:
    """Return the least ratio of f to that of gradient descent in the first two iterations."""
    fractional = data["pasts"]["(-1, -1)"]["value"][:3]
    return float(np.min(fractional[1:] / data["gradient descent"]["value"][1:3]))


CLAIMS = [
    Claim(
        "The adaptive terminal reaches machine precision (distance 1e-12) in four iterations",
        "section 1, figure 1; section 3.2, figure 3",
        4,
        "at most",
        lambda data: iterations_to_precision(data["pasts"]["(-1, -1)"]),
    ),
    Claim(
        "Gradient descent converges linearly: log f is a straight line (squared correlation)",
        "section 1; section 3.2, figure 3",
        0.999,
        "at least",
        lambda data: straightness(data["gradient descent"]),
    ),
    Claim(
        "Gradient descent needs many more iterations (at least ten times as many)",
        "section 1; figure 3",
        10,
        "at least",
        lambda data: (
            iterations_to_convergence(data["gradient descent"])
            / iterations_with_past("(-1, -1)")(data)
        ),
    ),
    Claim(
        "In its first two iterations the adaptive terminal is no better than gradient descent"
        " (ratio of the values)",
        "section 3.2",
        1,
        "at least",
        early_ratio,
        tolerance=0.01,
    ),
    *(
        Claim(
            f"With another past, {name}, the method takes {wanted} iterations instead of four"
            " (to a gradient of 1e-8 times the first)",
            "not in the paper: sensitivity to the starting pair",
            wanted,
            "equals",
            iterations_with_past(name),
        )
        for name, wanted in {"(-1, -1.01)": 12, "(-2, -1)": 28, "(0.3, -0.7)": 52}.items()
    ),
    Claim(
        "With the past (0, 0) the direction is zero where the gradient is not; the solver detects"
        " it and uses c = x (number of times)",
        "not in the paper: sensitivity to the starting pair",
        1,
        "at least",
        lambda data: data["pasts"]["(0, 0)"]["resets"],
    ),
]


def trajectory_panel(name: str, colour: str) -> Any:
    def draw(axis: Any, data: Mapping[str, Any]) -> None:
        history = data["pasts"]["(-1, -1)"] if name == "adaptive terminal" else data[name]
        contours(axis, lambda x, y: 10 * x**2 + y**2, (-4.5, 4.5), (-11, 5))
        x, y = history["x"].T
        line(axis, x, y, colour, marker="x")
        axis.plot(0, 0, marker="*", color="#1f2328", markersize=10, linestyle="none")
        axis.set(xlabel="x", ylabel="y")

    return draw


def values(axis: Any, data: Mapping[str, Any]) -> None:
    for name, colour, history in (
        ("gradient descent", "blue", data["gradient descent"]),
        ("adaptive terminal", "orange", data["pasts"]["(-1, -1)"]),
    ):
        line(axis, history["iteration"], history["value"], colour, label=name, marker="x")
    decades(axis, "objective", low=1e-32)
    axis.set_xlim(-1, 60)


def sensitivity(axis: Any, data: Mapping[str, Any]) -> None:
    styles = [("orange", "-"), ("blue", "-"), ("green", "--"), ("purple", "-."), ("ink", ":")]
    for (name, history), (colour, style) in zip(data["pasts"].items(), styles, strict=True):
        label = name + ("*" if history["resets"] else "")
        x, y = history["iteration"], history["distance"]
        line(axis, x, y, colour, label=label, linestyle=style)
    decades(axis, "distance to the minimiser", low=1e-16)
    axis.legend(title="past  (* c = x taken)", title_fontsize=8.5, ncols=2, loc="upper right")
    axis.set_xlim(-1, 100)
    axis.set_ylim(top=1e6)


EXPERIMENT = Experiment(
    name="fig1",
    title="Trajectories on 10x² + y²",
    where="figures 1 and 3",
    summary="gradient descent and the adaptive terminal on 10x² + y²",
    about=(
        "Both methods start at (1, -10); the adaptive terminal has the past (-1, -1), lag 1 and "
        "gamma = -1, and both take the exact step. The fourth panel is not in the paper: the four "
        "iterations are due to the starting pair, for which (1, -10)' A (-1, -1) = 0."
    ),
    run=run,
    claims=CLAIMS,
    panels=[
        [
            Panel("gradient descent", trajectory_panel("gradient descent", "blue")),
            Panel("adaptive terminal", trajectory_panel("adaptive terminal", "orange")),
        ],
        [
            Panel("objective", values),
            Panel("other pasts (not in the paper)", sensitivity),
        ],
    ],
)
