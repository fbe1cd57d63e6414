"""Rivals from the textbook: direct, Barzilai-Borwein, variable projection."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.optimize

from cfgd.apps.bench.field.cases import Case
from cfgd.apps.bench.field.work import MOST, Counted, Outcome, compiled, in_time


def direct(case: Case, tolerance: float) -> Outcome:
    """An orthogonal factorisation costs about as much as min(m, d) products with X."""
    x = np.linalg.lstsq(case.matrix, case.y, rcond=None)[0]
    return Outcome(x, float(min(case.matrix.shape)))


def barzilai_borwein(case: Case, tolerance: float) -> Outcome:
    """eta = |s|^2 / s'As for the step s before; the first step is exact."""
    X, x = Counted(case.matrix), case.x0
    g = X.times_back(X.times(x) - case.y)
    floor = tolerance * np.linalg.norm(g)
    image = X.times(g)
    eta = (g @ g) / (image @ image)
    over = in_time(case)
    try:
        for _ in range(MOST):
            s = -eta * g
            x = x + s
            new = X.times_back(X.times(x) - case.y)
            if np.linalg.norm(new) <= floor:
                break
            eta = (s @ s) / (s @ (new - g))
            g = new
            over(x)
    except StopIteration:
        pass
    return Outcome(x, X.products)


def variable_projection(case: Case, tolerance: float) -> Outcome:
    """The output weights are the best for the hidden ones, over which L-BFGS-B walks.

    What is left is a function of the hidden weights whose gradient is the partial one, because
    the other part of it is zero at the best output weights.
    """
    network = case.objective
    hidden = network.hidden
    both = compiled(case.fn)[0]
    target = np.asarray(network.y)

    def whole(w: Any) -> Any:
        x = np.concatenate([w, np.zeros(case.x0.size - hidden)])
        features = np.asarray(network.at(jnp.asarray(x)).aux.phi)
        return np.concatenate([w, np.linalg.lstsq(features, target, rcond=None)[0]])

    def seen(w: Any) -> tuple[float, Any]:
        value, gradient = both(whole(w))
        return float(value), np.asarray(gradient)[:hidden]

    assert case.budget is not None
    # a look at the features besides the gradient
    most = int(case.budget / 1.5)
    ends = scipy.optimize.minimize(
        seen,
        case.x0[:hidden],
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": most, "maxfun": most, "gtol": 0.0, "ftol": 0.0},
    )
    return Outcome(whole(ends.x), 1.5 * ends.nfev)
