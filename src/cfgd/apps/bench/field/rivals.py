"""Who competes on which case."""

from __future__ import annotations

import numpy as np

from cfgd.apps.bench.field import classics, rivals_cfgd, rivals_jax, rivals_scipy
from cfgd.apps.bench.field.cases import Case
from cfgd.apps.bench.field.work import Rival


def rivals(case: Case) -> dict[str, Rival]:
    """Who competes on a case; cfgd first."""
    if case.group == "least-squares":
        found: dict[str, Rival] = {
            "cfgd Auto": rivals_cfgd.auto,
            "LSQR": rivals_scipy.lsqr,
            "LSMR": rivals_scipy.lsmr,
            "CG, Jacobi": rivals_scipy.cg,
            "L-BFGS-B": rivals_scipy.lbfgsb,
            "Barzilai-Borwein": classics.barzilai_borwein,
            "best constants": rivals_cfgd.heavy_ball,
            "gradient descent": rivals_cfgd.gradient_descent,
            "the paper": rivals_cfgd.paper,
        }
        return found | ({"direct": classics.direct} if isinstance(case.matrix, np.ndarray) else {})
    found = {
        "cfgd Auto": rivals_cfgd.auto,
        "L-BFGS-B": rivals_scipy.lbfgsb,
        "trust-ncg": rivals_scipy.trust_ncg,
    }
    if case.residuals is not None:
        found |= {
            "least_squares": rivals_scipy.least_squares,
            "optimistix LM": rivals_jax.optimistix_lm,
        }
    found |= {
        "optimistix BFGS": rivals_jax.optimistix_bfgs,
        "optax L-BFGS": rivals_jax.optax_lbfgs,
        "optax Adam": rivals_jax.adam,
    }
    if case.budget is None:
        return found | {"Newton-CG": rivals_scipy.newton_cg}
    return found | {
        "variable projection": classics.variable_projection,
        "gradient descent": rivals_cfgd.gradient_descent,
        "the paper": rivals_cfgd.paper,
    }
