"""SciPy's L-BFGS-B with the same budget; it uses gradients on all data in every problem."""

from __future__ import annotations

import contextlib
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import cfgd
from cfgd.apps.bench.fractional.engine import Runs, as_jax, precision
from cfgd.apps.bench.fractional.problems import FractionalProblem, Instance


@eqx.filter_jit
def _value_and_gradient(f: Any, x: Any) -> tuple[Any, Any]:
    at = f.evaluate(x)
    return at.value, at.gradient


def run_lbfgs(problem: FractionalProblem, instance: Instance) -> Runs:
    """Return the values of one run of L-BFGS-B with its default options."""
    cost, values, norms = 1.0, [], []
    if problem.batch is not None:
        cost = len(instance.objective.inputs) / problem.batch
    budget = max(1, int(problem.gradients / cost))
    with precision(problem):
        f = as_jax(instance.objective)
        f = f.objective if isinstance(f, cfgd.Local) else f
        dtype = jnp.asarray(instance.x0).dtype

        def evaluate(x: Any) -> Any:
            value, gradient = _value_and_gradient(f, jnp.asarray(x, dtype))
            values.append(float(value))
            norms.append(float(jnp.linalg.norm(gradient)))
            if len(values) > budget:
                raise StopIteration
            return float(value), np.asarray(gradient, float)

        options = {"maxfun": budget, "maxiter": budget, "ftol": 0.0, "gtol": 0.0}
        with contextlib.suppress(StopIteration):
            scipy.optimize.minimize(
                evaluate,
                np.asarray(instance.x0, float),
                jac=True,
                method="L-BFGS-B",
                options=options,
            )
    best = int(np.nanargmin(values))
    gradients = cost * np.arange(len(values))
    return Runs(np.array([values]), gradients, np.array([norms[best] / norms[0]]))
