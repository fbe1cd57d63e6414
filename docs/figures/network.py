"""A network of twenty units learns five waves."""

import numpy as np

import cfgd
from cfgd.apps.page.drawing import LIGHT, Panel, decades, line

Z = np.linspace(-1, 1, 100)
Y = np.sin(5 * np.pi * Z)
METHODS = {
    "Auto": None,
    "gradient descent": cfgd.GradientDescent(cfgd.NetworkStep()),
}


def data():
    network = cfgd.ShallowNetwork(Z, Y, width=20)
    runs = {}
    for name, method in METHODS.items():
        run = cfgd.minimize(network, network.init(0), method, max_iterations=300)
        errors = 2 * run.history["value"] / len(Z)
        runs[name] = {"error": errors, "fit": np.asarray(network.predict(run.x, Z))}
    return runs


def fits(axis, runs):
    axis.plot(Z, Y, "o", color=LIGHT["ink"], markersize=2.5, label="data")
    for name, colour in zip(runs, ("blue", "orange"), strict=True):
        line(axis, Z, runs[name]["fit"], colour, label=name)
    axis.set(xlabel="z", ylabel="y", ylim=(-1.3, 1.9))
    axis.legend(ncols=3)


def errors(axis, runs):
    for name, colour in zip(runs, ("blue", "orange"), strict=True):
        line(axis, np.arange(len(runs[name]["error"])), runs[name]["error"], colour, label=name)
    decades(axis, "mean squared error")


PANELS = [[Panel("Fits after 300 iterations", fits), Panel("Error against iteration", errors)]]
