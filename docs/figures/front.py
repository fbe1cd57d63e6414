"""Figure 1 of the paper: gradient descent and the adaptive terminal on 10 x^2 + y^2.

docs/trajectories.png, the picture of the README, is this figure as a PNG (`drawing.png`).
"""

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
    start = np.array([1.0, -10.0])
    runs = {}
    for name, (_, method) in METHODS.items():
        runs[name] = cfgd.minimize(F, start, method, record=record).history
    return runs


def paths(axis, runs):
    contours(axis, lambda x, y: 10 * x**2 + y**2, (-2.9, 1.7), (-11, 4))
    for name, (colour, _) in METHODS.items():
        x, y = runs[name]["x"], runs[name]["y"]
        count = len(x) - 1
        line(axis, x, y, colour, marker="o", markersize=3, label=f"{name}: {count} iterations")
    axis.set(xlabel="x", ylabel="y")
    axis.legend(loc="upper center")


def values(axis, runs):
    for name, (colour, _) in METHODS.items():
        value = np.maximum(runs[name]["value"], 1e-33)
        line(axis, runs[name]["iteration"], value, colour, marker="o", markersize=3, label=name)
    decades(axis, "value", low=1e-16)


PANELS = [[Panel("Paths on 10 x² + y²", paths), Panel("Value against iteration", values)]]
