"""Tikhonov solutions by gamma, and runs of the non-adaptive version that end at them."""

import numpy as np

import cfgd
from cfgd.apps.page.drawing import LIGHT, Panel, contours, line
from cfgd.theory import tikhonov_solution

A, B = np.array([[3.0, 1.6], [1.6, 2.0]]), np.array([1.0, -4.0])
C, X0 = np.array([2.0, 0.5]), np.array([-0.5, -1.5])
GAMMAS = {0.2: "blue", 1.0: "green", 5.0: "orange"}


def data():
    record = {"x": lambda x: x[0], "y": lambda x: x[1]}
    f = cfgd.Quadratic(A, B)
    runs = {
        gamma: cfgd.minimize(f, X0, cfgd.NonAdaptive(C, gamma=gamma), record=record).history
        for gamma in GAMMAS
    }
    weights = np.logspace(-3, 3, 61)
    path = np.array([tikhonov_solution(A, B, C, gamma) for gamma in weights])
    return {"runs": runs, "path": path, "weights": weights}


def value(x, y):
    return (A[0, 0] * x**2 + 2 * A[0, 1] * x * y + A[1, 1] * y**2) / 2 + B[0] * x + B[1] * y


def paths(axis, run):
    contours(axis, value, (-3.2, 2.6), (-2.0, 5.0))
    line(axis, *run["path"].T, "ink", linestyle="--", label="Tikhonov solutions")
    for gamma, colour in GAMMAS.items():
        history, label = run["runs"][gamma], f"gamma = {gamma:g}"
        line(axis, history["x"], history["y"], colour, marker="o", markersize=2.5, label=label)
    axis.plot(*C, "s", color=LIGHT["ink"], markersize=5)
    axis.annotate("c", C, xytext=(5, 3), textcoords="offset points")
    axis.plot(*np.linalg.solve(A, -B), "*", color=LIGHT["ink"], markersize=9)
    axis.set(xlabel="x", ylabel="y")
    axis.legend(loc="lower left")


def coefficients(axis, run):
    for j, colour in enumerate(("blue", "orange")):
        line(axis, run["weights"], run["path"][:, j], colour, label=f"coordinate {j + 1}")
        axis.plot(run["weights"][-1], C[j], "s", color=LIGHT["ink"], markersize=5)
    axis.set_xscale("log")
    axis.set(xlabel="gamma", ylabel="Tikhonov solution")
    axis.legend()


PANELS = [
    [
        Panel("Runs with a fixed terminal", paths),
        Panel("Tikhonov solution against gamma", coefficients),
    ]
]
