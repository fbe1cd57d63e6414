"""A proof from the steps of a Gauss-Newton run that its last point is a minimum, at little cost.

The Hessian of |r|^2 / 2 is J'J + S with S = sum_i r_i Hess(r_i). The error e of a Gauss-Newton step
is followed by -(J'J)^-1 S e: if steps shrink fast, S is small relative to J'J, and x is a minimum,
since J'J is positive definite. This holds in the directions in which the run has moved. A run that
starts on a symmetry of f remains on it and may end at a saddle. One more Jacobian is therefore
computed, in a direction without steps; two if there are no two steps to compare, as with a start at
the minimum. Reference: Nocedal and Wright, section 10.3.
"""

from __future__ import annotations

import numpy as np

from cfgd._core.linalg import eps_of, inner, symmetric_eigen
from cfgd._core.types import DType, Matrix, Number, Vector
from cfgd.methods.auto.curvature_check import has_grown_far
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.quadratic_model import QuadraticModel
from cfgd.objectives.curvature import Curvature, JacobianRows
from cfgd.objectives.evaluation import Evaluation

# Ratio of the lengths of two undamped steps below which convergence is fast. At a saddle it is one
# or more in some direction.
FAST = 0.5
# Least ratio of curvatures of J'J, in scaled coordinates, at which S is larger than rounding
# errors: the singular values of J then differ by a factor of 1e6 at most.
WELL_CONDITIONED = 1e-12
# Largest S beside J'J, as the norm of (J'J)^-1/2 S (J'J)^-1/2: at a saddle it is one or more. Along
# a single direction less is asked, since that may be nearly orthogonal to the steepest descent: the
# second number over the root of the dimension, which is the usual cosine of two directions.
MOST_SECOND_ORDER, MOST_ALONG_PROBE = 0.5, 0.2
# Share of the squared lengths of all steps below which a direction counts as one without steps.
UNEXPLORED = 1e-16


def proves_minimum(
    oracle: Oracle,
    evaluation: Evaluation,
    curvature: Curvature,
    model: QuadraticModel,
    rows: JacobianRows,
    second_order: Matrix,
    explored: Matrix,
    rate: Number,
) -> bool:
    """Return whether a run has shown that the end of its steps is a minimum.

    Parameters
    ----------
    model
        That of J'J at the end.
    second_order
        The secant approximation of S.
    explored
        The sum of u u' over all steps, with u the steps in scaled coordinates, of length one.
    rate
        The ratio of the last two undamped steps, infinite where there are not two.
    """
    w = model.curvatures
    # a robust loss has another second-order part, and f may decrease towards infinity
    if curvature.residuals_at is None or has_grown_far(evaluation.x, oracle.x0).any():
        return False
    has_rate = rate < np.inf
    if (has_rate and not rate <= FAST) or not w.min() > WELL_CONDITIONED * w.max():
        return False
    whiten = model.basis / np.sqrt(w) / model.root[:, None]  # z -> x with |Jx| = |z|
    relative, _ = symmetric_eigen(whiten.T @ second_order @ whiten)
    if not abs(relative).max() <= MOST_SECOND_ORDER:
        return False
    shares, axes = symmetric_eigen(explored)
    unexplored = shares <= UNEXPLORED * shares.sum()
    if not has_rate:
        unexplored[:] = True
    elif not unexplored.any():
        return True
    some, d = axes[:, unexplored], int(unexplored.sum())
    return all(
        _second_order_along(oracle, evaluation, rows, whiten, (some @ pattern) / model.root)
        <= MOST_ALONG_PROBE / np.sqrt(d)
        for pattern in _patterns(d, 1 if has_rate else 2, w.dtype)
    )


def _patterns(d: int, most: int, dtype: DType) -> list[Vector]:
    """Return at most `most` combinations of d directions, orthogonal to one another.

    Any combination that is not a symmetry itself can be used.
    """
    squares = np.arange(1, d + 1, dtype=dtype) ** 2
    first, second = np.sin(squares), np.sin(2 * squares)
    second -= inner(first, second) / inner(first, first) * first
    return [first, second][: min(most, d)]


def _second_order_along(
    oracle: Oracle, evaluation: Evaluation, rows: JacobianRows, whiten: Matrix, v: Vector
) -> Number:
    """Return |S v| / |J'J v|, both whitened, by a difference of two Jacobians."""
    x, (J, r) = evaluation.x, rows
    sizes = np.maximum(abs(x), np.sqrt((x * x).mean()))
    relative = (abs(v) / np.where(sizes > 0, sizes, 1)).max()
    h = np.sqrt(eps_of(x)) / relative
    if oracle.box is not None and not oracle.box.contains(x + h * v):
        h = -h
    at = oracle.evaluate(x + h * v)
    curvature = oracle.objective.curvature(at)  # not by the oracle, which keeps that of x
    assert curvature is not None
    assert curvature.rows is not None
    oracle.cost += curvature.cost
    change = (r @ (curvature.rows().jacobian - J) / h) @ whiten
    along = J @ v
    return float(np.sqrt(inner(change, change) / inner(along, along)))
