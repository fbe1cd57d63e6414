"""Iterations by gamma, on a small least-squares problem."""

import numpy as np

import cfgd
from cfgd.apps.page.drawing import LIGHT, Panel, line

GAMMAS = np.linspace(-0.9, 0.5, 57)


def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 6)) * np.logspace(0, 0.7, 6)
    f = cfgd.LeastSquares(X, random.normal(size=60))
    ends = cfgd.sweep(f, np.zeros(6), cfgd.AdaptiveTerminal(gamma=GAMMAS), max_iterations=1000)
    return np.where(ends.success, ends.iterations, np.nan)


def iterations(axis, found):
    line(axis, GAMMAS, found, "blue", marker="o", markersize=2.5)
    axis.axvline(0.0, color=LIGHT["faint"])
    axis.annotate("gradient descent", (0.02, 330), fontsize=8.5)
    axis.set(xlabel="gamma", ylabel="iterations to 1e-8", ylim=(0, 350))


PANELS = [[Panel("Iterations of 57 runs in one sweep", iterations)]]
