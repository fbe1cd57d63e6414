"""Detect that a fit, or another function, no longer depends on its parameters.

If a peak, an exponential or a pole has moved far from the data, the model is zero or constant: the
gradient vanishes there as it does at a minimum, but the model does not fit the data. A run gets
there by one step that is too long, or by many steps in which several parameters grow together. At a
minimum, in contrast, every parameter changes the residuals, or did not change them at the start
either.
"""

from __future__ import annotations

import numpy as np

from cfgd._core.linalg import eps_of, inner
from cfgd._core.types import Vector
from cfgd.methods.auto.curvature_check import SHARE_FAR, Probes, has_grown_far
from cfgd.methods.auto.flat_directions import coordinate_sizes
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Start
from cfgd.objectives.curvature import Curvature, JacobianRows
from cfgd.objectives.evaluation import Evaluation

# Ratio of two curvatures of J'J, with the columns of J scaled to length one, below which the
# smaller one has no correct digit: the singular values of J then differ by a factor of 1e6.
UNSEEN = 1e-12


# Rounding units of the model (whose size is estimated from its derivatives) within which residuals
# count as zero, and of f, within which a coordinate does not change f.
ROUNDING_UNITS = 1e3


# If at least this share of the parameters no longer changes a residual, the fit no longer depends
# on its model. A few may do so at a minimum, such as those of a saturated unit of a network.
MOST_LOST = 0.5


def is_flat(curvature: Curvature, x: Vector, start: Start) -> bool:
    """Return whether no parameter changes a residual beyond rounding, by a change of its size."""
    rows = _tall_rows(curvature, x)
    return rows is not None and not _is_seen(rows, x, start).any()


def has_lost_model(oracle: Oracle, curvature: Curvature, x: Vector, start: Start) -> bool:
    """Return whether most parameters change no residual beyond rounding, but did at the start."""
    rows = _tall_rows(curvature, x)
    lost = None if rows is None else ~_is_seen(rows, x, start)
    if lost is None or not lost.sum() >= MOST_LOST * x.size:
        return False
    at_start = oracle.objective.curvature(oracle.evaluate(oracle.x0))
    first = None if at_start is None else _tall_rows(at_start, x)
    if first is None:
        return False
    return bool((lost & _is_seen(first, oracle.x0, start)).sum() >= MOST_LOST * x.size)


def has_lost_coordinates(
    oracle: Oracle, evaluation: Evaluation, probes: Probes, start: Start
) -> bool:
    """Return whether f no longer depends on most coordinates beyond rounding, but did at x0.

    This is `has_lost_model` for a function of which only gradients are known; `probes` are steps
    along the coordinates. If f is zero, as at the minimum of a penalty, the result is False.
    """
    x, f, g = evaluation[:3]
    sizes = coordinate_sizes(x, start)
    curvatures = probes.changes.diagonal() / probes.steps.diagonal()
    changes = abs(g) * sizes + abs(curvatures) * sizes**2 / 2
    lost = changes <= ROUNDING_UNITS * eps_of(x) * abs(f)
    if f == 0 or not lost.sum() >= MOST_LOST * x.size:
        return False
    first = oracle.evaluate(oracle.x0)
    seen = abs(first.gradient) * sizes > ROUNDING_UNITS * eps_of(x) * abs(first.value)
    return bool((lost & seen).sum() >= MOST_LOST * x.size)


def _is_seen(rows: JacobianRows, x: Vector, start: Start) -> np.ndarray:
    """Return for each parameter whether a change of its size changes a residual beyond rounding."""
    J, r = rows
    changes = np.sqrt(np.einsum("ij,ij->j", J, J)) * coordinate_sizes(x, start)
    size = np.sqrt(inner(r, r))
    return (changes > eps_of(x) * size) | (size == 0)


def runs_to_infinity(curvature: Curvature, x: Vector, x0: Vector) -> bool:
    """Return whether parameters have grown far from x0 along a null direction of J.

    If the residuals are zero, the result is False.
    """
    far = has_grown_far(x, x0)
    rows = _tall_rows(curvature, x) if far.any() else None
    if rows is None:
        return False
    J, r = rows
    lengths = np.sqrt(np.einsum("ij,ij->j", J, J))
    if np.sqrt(inner(r, r)) <= ROUNDING_UNITS * eps_of(x) * (lengths * abs(x)).max():
        return False
    _, s, directions = np.linalg.svd(J / np.where(lengths > 0, lengths, 1), full_matrices=False)
    unseen = directions[s * s <= UNSEEN * s[0] * s[0]]
    return bool(((unseen[:, far] ** 2).sum(1) > SHARE_FAR).any())


def _tall_rows(curvature: Curvature, x: Vector) -> JacobianRows | None:
    """Return the rows of J, unless it is wide, as that of a network, or has other columns."""
    shape = curvature.shape
    if curvature.rows is None or shape is None or not x.size == shape[1] <= shape[0]:
        return None
    rows = curvature.rows()
    return rows if np.isfinite(rows.jacobian).all() else None
