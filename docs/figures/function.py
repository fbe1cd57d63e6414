"""Rosenbrock's valley: the paths of three methods."""

import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.apps.page.drawing import LIGHT, Panel, decades, line

METHODS = {
    "Auto": ("blue", None),
    "adaptive terminal": ("green", cfgd.AdaptiveTerminal(gamma=-0.25, step=cfgd.ArmijoStep())),
    "gradient descent": ("orange", cfgd.GradientDescent(cfgd.ArmijoStep())),
}


def valley(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def data():
    record = {"x": lambda x: x[0], "y": lambda x: x[1]}
    x0 = np.array([-1.2, 1.0])
    return {
        name: cfgd.minimize(valley, x0, method, record=record, max_iterations=3000).history
        for name, (_, method) in METHODS.items()
    }


def paths(axis, runs):
    x, y = np.meshgrid(np.linspace(-1.6, 1.4, 90), np.linspace(-0.6, 2.2, 90))
    f = np.asarray(valley(jnp.stack([jnp.asarray(x), jnp.asarray(y)])))
    levels = np.logspace(-0.5, 3, 9)
    axis.contour(x, y, f, levels=levels, colors=LIGHT["faint"], linewidths=0.9)
    for name in reversed(METHODS):
        line(axis, runs[name]["x"], runs[name]["y"], METHODS[name][0], marker="o", markersize=2.5)
    axis.plot(1, 1, "*", color=LIGHT["ink"], markersize=9)
    axis.grid(False)
    axis.set(xlabel="x", ylabel="y")


def values(axis, runs):
    for name, (colour, _) in METHODS.items():
        history = runs[name]
        value = np.maximum(history["value"], 1e-30)
        line(axis, history["iteration"] + 1, value, colour, label=name)
    axis.set_xscale("log")
    decades(axis, "value")


PANELS = [
    [Panel("Paths on Rosenbrock's function", paths), Panel("Value against iteration", values)]
]
