"""Standard errors of the coefficients: those of `cfgd.objectives.linear.covariance`, or robust."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfgd._core.engines.base import Arrays
from cfgd.apps.fit.conditioning import MAX_COLUMNS
from cfgd.apps.fit.row_block import KnownGram, RowBlock
from cfgd.apps.fit.rows import InMemoryRows, Rows
from cfgd.apps.fit.sandwich import CLASSICAL, RobustCovariance, robust_covariance
from cfgd.apps.fit.solver_run import SolverRun
from cfgd.apps.fit.split import training_rows
from cfgd.apps.fit.table_statistics import Standardisation
from cfgd.apps.fit.target import Target
from cfgd.objectives.linear.covariance import CoefficientCovariance, InformationSums
from cfgd.status import Status


def covariance(rows: Rows, w: np.ndarray, l2: float) -> CoefficientCovariance | None:
    """Return the covariance of the coefficients of standardised columns, flattened by rows.

    Return None if there are too many coefficients or the rows do not determine them. This takes
    one pass.
    """
    target = rows.target
    if w.size > MAX_COLUMNS:
        return None
    sums = InformationSums(target.loss_function, w.size)
    if isinstance(rows, InMemoryRows) and rows.workers.is_alone and target.loss == "squared":
        known = rows.known_gram(training_rows)
        if known is not None:
            block = rows.select(training_rows)
            sums.add(KnownGram(known), block.y, block.predictors(w), block.weights)
    if not sums.count:
        arrays = rows.sum(training_rows, _information_sums, target, w)
        sums = InformationSums.of(target.loss_function, *arrays)
    penalty = np.repeat(np.append(np.full(rows.width, l2), 0.0), target.classes)
    found = sums.covariance(penalty)
    return found if np.all(np.isfinite(found.matrix)) else None


def _information_sums(blocks: Iterator[RowBlock], target: Target, w: np.ndarray) -> Arrays:
    """Return the matrix and the numbers of `InformationSums`."""
    sums = InformationSums(target.loss_function, w.size)
    for block in blocks:
        y, weight = target.for_loss(block.y), block.fit_weight(target)
        sums.add(block.design(target.classes), y, block.predictors(w), weight)
    return sums.arrays


def chosen_covariance(
    rows: Rows, w: np.ndarray, l2: float, kind: str, solution: SolverRun, memory: float
) -> RobustCovariance:
    """Return the covariance of the coefficients of standardised columns, or why there is none.

    Parameters
    ----------
    kind
        "classical", "hc3" or "cluster".
    solution
        Where the classes are separated, there is none.
    memory
        The bytes that the scores of all clusters may take.
    """
    if solution.status is Status.separated:
        reason = "the classes are separated, and the coefficients have no finite estimates"
        if rows.target.loss == "poisson":
            reason = "the coefficients have no finite estimates"
        return RobustCovariance(None, reason=reason)
    if kind != CLASSICAL:
        return robust_covariance(rows, w, l2, kind, memory)
    found = covariance(rows, w, l2)
    if found is not None:
        return RobustCovariance(
            found.matrix, found.dof if rows.target.loss_function.has_dispersion else np.inf
        )
    reason = "the rows do not determine the coefficients"
    if w.size > MAX_COLUMNS:
        reason = f"there are more than {MAX_COLUMNS:,} coefficients"
    return RobustCovariance(None, reason=reason)


def in_original_units(
    w: np.ndarray, covariance: np.ndarray | None, standardisation: Standardisation, target: Target
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return coefficients and standard errors for columns and a target that are not standardised.

    Parameters
    ----------
    w, covariance
        The coefficients of standardised columns, and their covariance if it is known.
    """
    m, deviation = standardisation.mean, standardisation.deviation
    original = np.array(w, float)
    original[:-1] = (w[:-1].T / deviation).T
    original[-1] -= m @ original[:-1]
    original *= target.scale
    original[-1] += target.centre
    if covariance is None:
        return original, None
    d, classes = len(w), w.size // len(w)
    C = covariance.reshape(d, classes, d, classes)
    to_intercept = np.append(-m / deviation, 1.0)
    by_class = [C[:, k, :, k] for k in range(classes)]
    variances = np.column_stack(
        [
            np.append(np.diagonal(of)[:-1] / deviation**2, to_intercept @ of @ to_intercept)
            for of in by_class
        ]
    )
    return original, target.scale * np.sqrt(variances).reshape(w.shape)
