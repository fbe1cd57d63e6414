"""Raw columns beside standardised ones: the iterations of two solvers of Auto."""

import numpy as np
from sklearn.datasets import load_breast_cancer

import cfgd
from cfgd.apps.page.drawing import Panel, decades, line


def data():
    X, y = load_breast_cancer(return_X_y=True)
    Z = (X - X.mean(0)) / X.std(0)
    runs = {}
    for name, columns in (("raw", X), ("standardised", Z)):
        f = cfgd.LinearModel(columns, y, "logistic", l2=1.0, intercept=True)
        for label, solver in (("Levenberg-Marquardt", None), ("L-BFGS", "lbfgs")):
            run = cfgd.minimize(f, np.zeros(31), cfgd.Auto(solver), max_iterations=400)
            runs[f"{name}, {label}"] = run.history["value"] - run.value
    return runs


def values(axis, runs):
    styles = (("blue", "-"), ("blue", "--"), ("green", "-"), ("green", "--"))
    for (name, above), (colour, style) in zip(runs.items(), styles, strict=True):
        k = np.arange(1, len(above) + 1)
        line(axis, k, np.maximum(above, 1e-12), colour, linestyle=style, label=name)
    axis.set_xscale("log")
    decades(axis, "value − smallest value", legend=False)
    # above the axes, which the curves fill
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), borderaxespad=0)


PANELS = [[Panel("Auto on breast cancer data, raw and standardised", values)]]
