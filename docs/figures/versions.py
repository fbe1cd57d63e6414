"""The three versions and gradient descent from one start."""

import numpy as np

import cfgd
from cfgd.apps.page.drawing import LIGHT, Panel, contours, decades, line

F = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
X0, C = np.array([1.0, -10.0]), np.array([-1.0, -1.0])
STAGES = [cfgd.Stage(10, gamma=1.0), cfgd.Stage(10, gamma=0.1), cfgd.Stage(80, gamma=0.0)]
METHODS = {
    "gradient descent": ("orange", cfgd.GradientDescent()),
    "non-adaptive": ("purple", cfgd.NonAdaptive(C, gamma=1.0)),
    "adaptive terminal": ("blue", cfgd.AdaptiveTerminal(gamma=-1.0, past=[C])),
    "adaptive order": ("green", cfgd.AdaptiveOrder(STAGES, C)),
}


def data():
    record = {"x": lambda x: x[0], "y": lambda x: x[1]}
    return {
        name: cfgd.minimize(F, X0, method, record=record, tolerance=1e-12).history
        for name, (_, method) in METHODS.items()
    }


def paths(axis, runs):
    contours(axis, lambda x, y: 10 * x**2 + y**2, (-2.9, 1.7), (-11, 3))
    for name, (colour, _) in METHODS.items():
        line(axis, runs[name]["x"], runs[name]["y"], colour, marker="o", markersize=3)
    axis.plot(*C, "s", color=LIGHT["ink"], markersize=5)
    axis.annotate("c", C, xytext=(-12, 4), textcoords="offset points")
    axis.plot(0, 0, "*", color=LIGHT["ink"], markersize=9)
    axis.set(xlabel="x", ylabel="y")


def distances(axis, runs):
    for name, (colour, _) in METHODS.items():
        history = runs[name]
        away = np.maximum(np.hypot(history["x"], history["y"]), 1e-14)
        line(axis, history["iteration"], away, colour, label=name)
    decades(axis, "distance to the minimum", low=1e-13, legend=False)
    axis.legend(loc="upper right", bbox_to_anchor=(1.0, 0.86))  # between two curves


PANELS = [[Panel("Paths", paths), Panel("Distance against iteration", distances)]]
