"""The paper's function and its smoothing, with the slopes of both."""

import numpy as np

import cfgd
from cfgd.apps.page.drawing import LIGHT, Panel, line

C, ALPHA, BETA = -1.0, 0.66, 1.0


def f(z):
    return (z - 6) * (z + 4) * (7 * z**2 + 10 * z + 24)


def data():
    z = np.linspace(-4, 6, 161)
    runs = {"z": z, "f": f(z)}
    for beta in (0.0, BETA):
        F = cfgd.smoothing(f, ALPHA, beta, C)
        runs[f"F, beta = {beta:g}"] = np.asarray(F(z))
        runs[f"slope, beta = {beta:g}"] = np.asarray(F.slope(z))
    runs["slope of f"] = np.gradient(f(z), z)
    return runs


def values(axis, run):
    for name, colour in (("f", "ink"), ("F, beta = 0", "green"), ("F, beta = 1", "blue")):
        line(axis, run["z"], run[name] / 1000, colour, label=name)
    axis.axvline(C, color=LIGHT["faint"], linestyle="--")
    axis.annotate("c", (C, 1.5), xytext=(4, 0), textcoords="offset points")
    axis.set(xlabel="z", ylabel="value / 1000")
    axis.legend()


def slopes(axis, run):
    for name, label, colour in (
        ("slope of f", "f", "ink"),
        ("slope, beta = 0", "F, beta = 0", "green"),
        ("slope, beta = 1", "F, beta = 1", "blue"),
    ):
        line(axis, run["z"], run[name] / 1000, colour, label=label)
    axis.axhline(0.0, color=LIGHT["faint"])
    axis.set(xlabel="z", ylabel="slope / 1000")
    axis.legend()


PANELS = [[Panel("Function f, smoothed F", values), Panel("Slopes of f and F", slopes)]]
