"""The same networks by solvers that the paper does not compare with: what 1e5 iterations cost.

`Auto`, and the better of two rivals that people reach for: SciPy's L-BFGS-B, and its nonlinear
least squares by trust regions, both with exact derivatives.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares, minimize

import cfgd
from cfgd.apps.reproduce.experiment import Meter, Setting
from cfgd.apps.reproduce.experiments.network_runs import Problem, problem

AUTO, LBFGS, TRUST = "Auto", "L-BFGS-B", "least squares (trf)"
RIVALS = (LBFGS, TRUST)
# iterations in full size: a second or two each, so that all take no more than minutes
MOST = {AUTO: 500, LBFGS: 3_000, TRUST: 150}
WORK = 4_000.0  # of one solver, in the meter's units


# with the network as an argument: one program for all
@eqx.filter_jit
def _both(network: Any, x: Any) -> Any:
    return network.value(x), jax.grad(network.value)(x)


@eqx.filter_jit
def _misfit(network: Any, x: Any) -> Any:
    return network.predict(x, network.z[:, :-1]) - network.y


@eqx.filter_jit
def _jacobian(network: Any, x: Any) -> Any:
    return jax.jacrev(lambda x: _misfit(network, x))(x)


def auto(p: Problem, most: int) -> tuple[float, float]:
    """f at the end, and the gradients that it took."""
    end = cfgd.minimize(p.network, p.x0, max_iterations=most, tolerance=0.0)
    return float(end.value), float(end.evaluations)


def lbfgs(p: Problem, most: int) -> tuple[float, float]:
    def value_and_gradient(x: Any) -> tuple[float, np.ndarray]:
        value, gradient = _both(p.network, jnp.asarray(x))
        return float(value), np.asarray(gradient)

    with jax.enable_x64(True):
        end = minimize(
            value_and_gradient,
            p.x0,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": most, "maxfun": most, "ftol": 0.0, "gtol": 0.0},
        )
    return float(end.fun), float(end.nfev)


def trust_region(p: Problem, most: int) -> tuple[float, float]:
    with jax.enable_x64(True):
        end = least_squares(
            lambda x: np.asarray(_misfit(p.network, jnp.asarray(x))),
            p.x0,
            lambda x: np.asarray(_jacobian(p.network, jnp.asarray(x))),
            method="trf",
            max_nfev=most,
            **dict.fromkeys(("ftol", "xtol", "gtol"), 1e-15),
        )
    # residuals cost half a gradient; Jacobian and gradient of this network cost the same
    return float(end.cost), 0.5 * end.nfev + end.njev


SOLVERS: dict[str, Callable[[Problem, int], tuple[float, float]]] = {
    AUTO: auto,
    LBFGS: lbfgs,
    TRUST: trust_region,
}


def solve_all(
    meter: Meter, setting: Setting, functions: list[str], start: str, seeds: range
) -> dict[tuple[str, str, int], np.ndarray]:
    """(f, gradients, seconds) by (function, solver, seed), one after the other."""
    part = setting.pick(tiny=0.02, quick=0.2, full=1.0)
    found = {}
    for function in functions:
        for seed in seeds:
            for name in SOLVERS:
                if meter.stopped:
                    raise KeyboardInterrupt
                most = int(part * MOST[name])
                job = partial(_solve, function, start, seed, name, most)
                kept = setting.kept
                key = ["rival", function, start, seed, name, most]
                arrays = job() if kept is None else kept.or_run(key, job)[0]
                found[function, name, seed] = arrays["found"]
                meter.advance(WORK)
    return found


def _solve(function: str, start: str, seed: int, name: str, most: int) -> dict[str, np.ndarray]:
    p = problem(function, start, seed, 10)
    began = time.perf_counter()
    value, gradients = SOLVERS[name](p, most)
    return {"found": np.array([value, gradients, time.perf_counter() - began])}


def best_rival(found: dict[tuple[str, str, int], np.ndarray]) -> str:
    """Of the rivals the one with the least median loss over functions and seeds."""

    def median(name: str) -> float:
        return float(np.median([one[0] for (_, who, _), one in found.items() if who == name]))

    return min(RIVALS, key=median)
