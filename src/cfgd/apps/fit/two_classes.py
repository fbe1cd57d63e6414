"""Measures of scores for two classes: ROC AUC, average precision, and calibration.

Rows with equal scores pass a threshold together, as in scikit-learn.
"""

from __future__ import annotations

import numpy as np

from cfgd.apps.fit.newton import newton
from cfgd.apps.fit.row_block import RowBlock
from cfgd.objectives.linear.formulas import FORMULAS

# An intercept below this, relative to its parts, is zero: the solution has about eight digits more
# than the tolerance of the gradient, 1e-8, and the difference of the parts none of them.
ROUNDING = 1e-9


def counts_by_threshold(
    score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of false and of true positives for every threshold, from high to low."""
    weight = np.ones(len(score)) if weight is None else weight
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1)
    positive = is_positive[order] == 1
    false, true = (np.cumsum(weight[order] * of)[ends] for of in (~positive, positive))
    return false, true


def roc_auc(score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the area under the ROC curve; NaN if all rows are of one class.

    This is how often a positive row has a higher score than a negative one; ties count half.

    >>> print(roc_auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])))
    0.75
    """
    false, true = (np.append(0, of) for of in counts_by_threshold(score, is_positive, weight))
    if not false[-1] or not true[-1]:
        return float("nan")
    return float(np.trapezoid(true / true[-1], false / false[-1]))


def average_precision(
    score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None = None
) -> float:
    """Return the sum of precisions times the growth of recall; NaN if no row is positive.

    >>> round(average_precision(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])), 6)
    0.833333
    """
    false, true = counts_by_threshold(score, is_positive, weight)
    if not true[-1]:
        return float("nan")
    precision = true / (true + false)
    return float(np.sum(np.diff(true / true[-1], prepend=0) * precision))


def calibration(p: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Return slope and intercept of the logistic regression of the labels on the log-odds p.

    They are 1 and 0 for calibrated probabilities; a slope below 1 says that the probabilities are
    too extreme (Cox, 1958). NaN where the log-odds separate the labels or do not vary.
    """
    if is_positive.all() or not is_positive.any() or p.max() == p.min():
        return float("nan"), float("nan")
    mean, deviation = float(np.average(p)), float(p.std())
    rows = RowBlock(((p - mean) / deviation)[:, None], is_positive)
    sign = np.where(is_positive > 0, 1.0, -1.0)
    found = newton(FORMULAS["logistic"], rows, sign, weight, 0.0, np.zeros(2))
    if found is None:
        return float("nan"), float("nan")
    slope, intercept = found.w
    shift = slope * mean / deviation
    # exact zeros, as on the rows of an unpenalised fit, not the rounding of their difference
    is_zero = abs(intercept - shift) <= ROUNDING * max(abs(intercept), abs(shift), 1.0)
    return float(slope / deviation), 0.0 if is_zero else float(intercept - shift)
