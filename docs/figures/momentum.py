"""The rate by gamma on a quadratic with a condition number of 100, and the runs themselves."""

import numpy as np

import cfgd
from cfgd.apps.page.drawing import LIGHT, Panel, decades, line
from cfgd.theory import best_constants, spectral_radius

LOW, HIGH = 0.02, 2.0
GAMMAS = np.linspace(-1.2, 0.3, 61)


def problem():
    random = np.random.default_rng(3)
    Q = np.linalg.qr(random.normal(size=(12, 12)))[0]
    A = Q @ np.diag(np.geomspace(LOW, HIGH, 12)) @ Q.T
    S = np.diag(A) ** -0.5
    return S[:, None] * A * S  # a unit diagonal: D = I


def data():
    A = problem()
    spectrum = np.linalg.eigvalsh(A)
    best = best_constants(spectrum)
    slow = 2 / (spectrum[0] + spectrum[-1])
    rates = {
        "step size of gradient descent": [spectral_radius(A, g, slow, 1) for g in GAMMAS],
        "best step size": [spectral_radius(A, g, best.eta, 1) for g in GAMMAS],
    }
    f, x0 = cfgd.Quadratic(A, np.zeros(12)), np.ones(12)
    runs = {}
    for name, gamma, eta in (
        ("gradient descent", 0.0, slow),
        ("half of the best gamma", best.gamma / 2, slow),
        ("best gamma", best.gamma, best.eta),
    ):
        method = cfgd.AdaptiveTerminal(gamma=gamma, step=cfgd.FixedStep(eta))
        run = cfgd.minimize(f, x0, method, max_iterations=300, tolerance=0.0)
        runs[name] = run.history["value"]
    return {"rates": rates, "best": best, "runs": runs}


def rates(axis, run):
    for (name, each), colour in zip(run["rates"].items(), ("orange", "blue"), strict=True):
        line(axis, GAMMAS, each, colour, label=name)
    best = run["best"]
    axis.plot(best.gamma, best.rate, "o", color=LIGHT["ink"], markersize=5)
    axis.annotate("best constants", (best.gamma, best.rate), xytext=(8, -3),
                  textcoords="offset points", fontsize=8.5)  # fmt: skip
    axis.axvline(0.0, color=LIGHT["faint"])
    axis.set(xlabel="gamma", ylabel="error after / before a step", ylim=(0.6, 1.2))
    axis.legend(loc="lower right")


def values(axis, run):
    colours = ("orange", "green", "blue")
    for (name, value), colour in zip(run["runs"].items(), colours, strict=True):
        line(axis, np.arange(len(value)), np.maximum(value, 1e-25), colour, label=name)
    decades(axis, "value", low=1e-14)


PANELS = [[Panel("Rate against gamma", rates), Panel("Runs with these constants", values)]]
