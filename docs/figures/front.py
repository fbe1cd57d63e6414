"""Figure 1 of the paper: gradient descent and the adaptive terminal on 10 x^2 + y^2.

docs/trajectories.png, the picture of the README, is this figure as a PNG (`drawing.png`).
"""

import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.apps.page.drawing import Panel, contours, decades, line

F = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
METHODS = {
    "gradient descent": ("orange", cfgd.GradientDescent()),
    "adaptive terminal": ("blue", cfgd.AdaptiveTerminal(gamma=-1.0, past=[[-1.0, -1.0]])),
}


def data():
    record = {"x": lambda x: x[0], "y": lambda x: x[1]}
    start = jnp.array([1.0, -10.0])
    runs = {}
    for name, (_, method) in METHODS.items():
        run = cfgd.minimize(F, np.asarray(start, float), method, record=record, tolerance=1e-16)
        runs[name] = run.history
    return runs


def paths(axis, runs):
    contours(axis, lambda x, y: 10 * x**2 + y**2, (-2.9, 1.7), (-11, 4))
    for name, (colour, _) in METHODS.items():
        x, y = runs[name]["x"], runs[name]["y"]
        norms = runs[name]["gradient_norm"]
        # where `minimize` says by default that a run has converged
        count = int(np.argmax(norms <= 1e-8 * norms[0]))
        line(axis, x, y, colour, marker="o", markersize=3, label=f"{name}: {count} iterations")
    axis.set(xlabel="x", ylabel="y")
    axis.legend(loc="upper center")


def values(axis, runs):
    for name, (colour, _) in METHODS.items():
        value = np.maximum(runs[name]["value"], 1e-33)
        line(axis, runs[name]["iteration"], value, colour, marker="o", markersize=3, label=name)
    decades(axis, "value", low=1e-30)


PANELS = [[Panel("The two paths on 10 x² + y²", paths), Panel("Value against iteration", values)]]
