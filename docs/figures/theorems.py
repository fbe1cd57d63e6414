"""Runs, and the bounds that the theorems give for them."""

import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd import theory
from cfgd.apps.page.drawing import LIGHT, Panel, decades, line

A, B = np.array([[2.0, 0.6], [0.6, 1.0]]), np.array([1.0, -4.0])
X0, PAST, C = np.array([3.0, -2.0]), np.array([3.5, -1.0]), np.array([2.0, 2.0])
STAGES = [(8, 1.0), (8, 0.3), (8, 0.1), (8, 0.0)]
MOST = 24


def data():
    f, best = cfgd.Quadratic(A, B), np.linalg.solve(A, -B)
    record = {"error": lambda x: jnp.linalg.norm(x - best)}
    given = {"record": record, "max_iterations": MOST, "tolerance": 0.0}
    method = cfgd.AdaptiveTerminal(gamma=-0.2, past=[PAST], step=cfgd.FixedStep(0.6))
    run = cfgd.minimize(f, X0, method, **given)
    errors = [np.linalg.norm(each - best) for each in (X0, PAST)]
    bound = theory.adaptive_terminal_bound(A, -0.2, 0.6, errors, MOST)
    etas = np.linspace(0.05, 1.99, 60)
    kappa = np.linalg.cond(A)
    true = [theory.non_adaptive_rate(A, 0.0, eta) ** 2 for eta in etas]
    printed = np.abs(1 - etas / kappa)
    return {
        "error": run.history["error"],
        "bound": bound,
        "etas": etas,
        "true": true,
        "printed": printed,
    }


def terminal(axis, run):
    line(axis, np.arange(len(run["bound"])), run["bound"], "orange", label="Theorem 4")
    k = np.arange(len(run["error"]))
    line(axis, k, run["error"], "blue", marker="o", markersize=3, label="a run")
    decades(axis, "distance to the minimum")


def rates(axis, run):
    line(axis, run["etas"], run["printed"], "orange", label="as printed")
    line(axis, run["etas"], run["true"], "blue", label="correct")
    axis.axhline(1.0, color=LIGHT["faint"])
    axis.set(xlabel="eta", ylabel="squared error after / before", ylim=(0, 1.1))
    axis.legend(loc="lower left")


PANELS = [
    [
        Panel("Adaptive terminal: error and bound", terminal),
        Panel("Rate with a fixed terminal: erratum 5", rates),
    ]
]
