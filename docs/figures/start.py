"""The logistic regression of the page: Auto, Auto without a Hessian, gradient descent."""

import numpy as np

import cfgd
from cfgd.apps.page.drawing import Panel, decades, line


def data():
    random, scale = np.random.default_rng(0), np.logspace(0, 3, 20)
    Z = random.normal(size=(500, 20))
    y = Z @ random.normal(size=20) + random.logistic(size=500) > 0
    f = cfgd.LinearModel(Z * scale, y, "logistic", l2=1.0)
    descent = cfgd.GradientDescent(cfgd.ArmijoStep(1e-6))
    runs = {
        "Auto": cfgd.minimize(f, np.zeros(20)),
        "Auto, gradients only": cfgd.minimize(f, np.zeros(20), cfgd.Auto(solver="lbfgs")),
        "gradient descent": cfgd.minimize(f, np.zeros(20), descent, max_iterations=1000),
    }
    return {name: run.history for name, run in runs.items()}


def values(axis, runs):
    least = min(np.min(history["value"]) for history in runs.values())
    for (name, history), colour in zip(runs.items(), ("blue", "green", "orange"), strict=True):
        above = np.maximum(history["value"] - least, 1e-13)
        line(axis, history["iteration"] + 1, above, colour, marker="o", markersize=2.5, label=name)
    axis.set_xscale("log")
    decades(axis, "value − smallest value")


PANELS = [[Panel("Three methods on the regression", values)]]
