"""The search along a Newton step of Levenberg-Marquardt, where values on a line cost little."""

from __future__ import annotations

import numpy as np

from cfgd._core.types import Scalar, Vector
from cfgd.methods.auto.oracle import Oracle
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation

# How often a step may be halved (to 1e-9 of it) and doubled: at eight times the Newton step another
# Hessian lowers f more than another trial.
MOST_HALVINGS, MOST_DOUBLINGS = 30, 3


def can_search(oracle: Oracle, curvature: Curvature) -> bool:
    """Return whether to search along a Newton step: not where each value takes a pass over data."""
    return curvature.is_exact and oracle.traits.value_cost < 1


def search_along(
    oracle: Oracle, evaluation: Evaluation, p: Vector, value: Scalar, is_too_short: bool
) -> tuple[float, Scalar]:
    """Halve or double a Newton step while that lowers f; return its fraction and the value there.

    A Newton step for counts may be a hundred times too long, and one for almost separable labels
    half as long as the best one. Along a line of predictions a value costs little, and another
    matrix a lot.
    """
    line, f = oracle.line(evaluation, p), evaluation.value
    fraction, factor = 1.0, 2.0 if is_too_short else 0.5
    most = np.inf if oracle.box is None else oracle.box.longest_fraction(evaluation.x, p)
    for _ in range(MOST_DOUBLINGS if is_too_short else MOST_HALVINGS):
        if factor * fraction > most:
            break
        trial = line.values(np.array([factor * fraction], p.dtype))[0]
        oracle.cost += line.costs.value
        # where f is higher than at x, or no number, the step is halved in any case
        if not (trial < value or (not is_too_short and not value < f)):
            break
        fraction, value = factor * fraction, trial
    return fraction, value
