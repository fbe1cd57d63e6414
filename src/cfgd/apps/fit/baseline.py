"""The model that uses no column: the best intercept for the weights and offsets of the rows."""

from __future__ import annotations

import numpy as np

from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import training_rows
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES

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
        totals = np.zeros(len(target.labels))
        has_offset = False
        for block in rows.blocks(training_rows):
            totals += np.bincount(block.y.astype(int), block.weights, len(totals))
            has_offset = block.offset is not None
        if target.classes > 1:
            return np.log(totals) - np.mean(np.log(totals))
        start = float(np.log(totals[1] / totals[0]))
        return np.array([_logistic_intercept(rows, start) if has_offset else start])
    numerator = denominator = 0.0
    for block in rows.blocks(training_rows):
        weight, y = block.weights, block.y
        offset = np.zeros(len(y)) if block.offset is None else block.offset
        if target.loss == "poisson":  # sum of w (exp(b + offset) - y) = 0
            part, size = y, np.exp(offset)
        elif target.loss == "gamma":  # sum of w (1 - y exp(-b - offset)) = 0
            part, size = y * np.exp(-offset), np.ones(len(y))
        else:
            part, size = y - offset, np.ones(len(y))
        numerator += float(weight @ part)
        denominator += float(weight @ size)
    mean = numerator / denominator
    return np.array([np.log(mean) if target.loss in ("poisson", "gamma") else mean])


def _logistic_intercept(rows: Rows, start: float) -> float:
    """Return the intercept beside the offsets, by Newton's method with one pass for each step."""
    b, loss = start, rows.target.loss_function
    for _ in range(MAX_STEPS):
        slope = curvature = 0.0
        for block in rows.blocks(training_rows):
            p = block.plus_offset(np.full(len(block.y), b))
            first, second = loss.derivatives(p, rows.target.for_loss(block.y))
            slope += float(block.weights @ np.asarray(first))
            curvature += float(block.weights @ np.asarray(second))
        step = -np.sign(slope) if curvature == 0 else -slope / curvature
        step = float(np.clip(step, -MAX_STEP, MAX_STEP))
        b += step
        if abs(step) < TOLERANCE:
            break
    return b
