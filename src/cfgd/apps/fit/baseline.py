"""The model that uses no column: the best intercept for the weights and offsets of the rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfgd._core.engines.base import Arrays
from cfgd.apps.fit.row_block import RowBlock
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import training_rows
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES, Target

# Newton's method for one intercept: steps of at most 1 reach it from any start, since the second
# derivative of the logistic loss changes by less than a factor of e within that distance.
MAX_STEP = 1.0
MAX_STEPS = 100
TOLERANCE = 1e-10  # of a step; the next one would be of the size of its square


def weighted_baseline(rows: Rows) -> np.ndarray:
    """Return the intercept, or one for each class, that minimises the weighted sum of losses.

    For the Huber loss it is the weighted mean, as without weights. Class weights do not count: the
    baseline predicts how frequent the labels are.
    """
    target = rows.target
    if target.loss in CLASSIFICATION_LOSSES:
        totals, offsets = rows.sum(training_rows, class_totals, len(target.labels))
        if target.classes > 1:
            return np.log(totals) - np.mean(np.log(totals))
        start = float(np.log(totals[1] / totals[0]))
        return np.array([_logistic_intercept(rows, start) if offsets else start])
    (sums,) = rows.sum(training_rows, _mean_sums, target.loss)
    mean = float(sums[0] / sums[1])
    return np.array([np.log(mean) if target.loss in ("poisson", "gamma") else mean])


def class_totals(blocks: Iterator[RowBlock], labels: int) -> Arrays:
    """Return the sum of the weights of each class, and how many blocks have offsets."""
    totals, offsets = np.zeros(labels), np.zeros(())
    for block in blocks:
        totals += np.bincount(block.y.astype(int), block.weights, labels)
        offsets += block.offset is not None
    return totals, offsets


def _mean_sums(blocks: Iterator[RowBlock], loss: str) -> Arrays:
    """Return the numerator and the denominator of the mean."""
    sums = np.zeros(2)
    for block in blocks:
        weight, y = block.weights, block.y
        offset = np.zeros(len(y)) if block.offset is None else block.offset
        if loss == "poisson":  # sum of w (exp(b + offset) - y) = 0
            sums += weight @ y, weight @ np.exp(offset)
        elif loss == "gamma":  # sum of w (1 - y exp(-b - offset)) = 0
            sums += weight @ (y * np.exp(-offset)), weight.sum()
        else:
            sums += weight @ (y - offset), weight.sum()
    return (sums,)


def _logistic_intercept(rows: Rows, start: float) -> float:
    """Return the intercept beside the offsets, by Newton's method with one pass for each step."""
    b = start
    for _ in range(MAX_STEPS):
        sums = rows.sum(training_rows, _slope_and_curvature, rows.target, b)
        slope, curvature = map(float, sums)
        step = -np.sign(slope) if curvature == 0 else -slope / curvature
        step = float(np.clip(step, -MAX_STEP, MAX_STEP))
        b += step
        if abs(step) < TOLERANCE:
            break
    return b


def _slope_and_curvature(blocks: Iterator[RowBlock], target: Target, b: float) -> Arrays:
    """Return the derivatives of the loss of all rows with respect to the intercept."""
    slope, curvature, loss = np.zeros(()), np.zeros(()), target.loss_function
    for block in blocks:
        p = block.plus_offset(np.full(len(block.y), b))
        first, second = loss.derivatives(p, target.for_loss(block.y))
        slope += block.weights @ np.asarray(first)
        curvature += block.weights @ np.asarray(second)
    return slope, curvature
