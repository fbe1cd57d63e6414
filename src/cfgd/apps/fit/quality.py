"""Measures of the quality of a fit, compared with a baseline that uses no column."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import RowSubset
from cfgd.apps.fit.table_statistics import SAMPLE
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES, Target

ROC_AUC = "area under the ROC curve"
# maps expected values (means, or probabilities of the labels) and targets to a number for each row
Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _poisson_deviance(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mean), 0) - y + mean)


def _gamma_deviance(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 2 * ((y - mean) / mean - np.log(y / mean))


def _log_loss(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return -np.log(np.take_along_axis(probabilities, y.astype(int)[:, None], 1)[:, 0])


def _is_correct(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (probabilities.argmax(1) == y).astype(float)


def _squared_error(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (mean - y) ** 2


def _absolute_error(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.abs(mean - y)


# `Quality.explained` is computed from the first measure of each loss.
MEASURES: dict[str, dict[str, Measure]] = {
    "squared": {"mean squared error": _squared_error, "mean absolute error": _absolute_error},
    "huber": {"mean absolute error": _absolute_error, "mean squared error": _squared_error},
    "poisson": {"mean deviance": _poisson_deviance, "mean absolute error": _absolute_error},
    "gamma": {"mean deviance": _gamma_deviance, "mean absolute error": _absolute_error},
    "logistic": {"log loss": _log_loss, "share of right labels": _is_correct},
    "multinomial": {"log loss": _log_loss, "share of right labels": _is_correct},
}


@dataclasses.dataclass(frozen=True)
class Quality:
    """Measures of the model and of the baseline, as means over rows.

    `expected` has the means, or a column of probabilities for each label, and `y` the targets, or
    indices of labels, of the first `SAMPLE` rows: the figures show them.
    """

    rows: int
    model: dict[str, float]
    baseline: dict[str, float]
    expected: np.ndarray
    y: np.ndarray

    @property
    def explained(self) -> float:
        """The share of the error of the baseline that the model removes."""
        name = next(iter(self.model))
        return 1 - self.model[name] / self.baseline[name] if self.baseline[name] else 0.0


def measure_quality(rows: Rows, subset: RowSubset, w: np.ndarray) -> Quality:
    """Measure the model and the baseline on a subset of the rows, in one pass."""
    target, measures = rows.target, MEASURES[rows.target.loss]
    model, baseline = ({name: 0.0 for name in measures} for _ in range(2))
    count = sample_size = 0
    sample: list[tuple[np.ndarray, np.ndarray]] = []
    for X, y in rows.blocks(subset):
        y = target.centre + target.scale * y
        by_model = target.expected(X @ w[:-1] + w[-1])
        by_baseline = target.expected(target.baseline_predictors(len(y)))
        for name, measure in measures.items():
            model[name] += float(measure(by_model, y).sum())
            baseline[name] += float(measure(by_baseline, y).sum())
        room = SAMPLE - sample_size
        sample.append((by_model[:room], y[:room]))
        count, sample_size = count + len(y), sample_size + len(sample[-1][1])
    model, baseline = (
        {name: total / count for name, total in totals.items()} for totals in (model, baseline)
    )
    expected, y = (np.concatenate(arrays) for arrays in zip(*sample, strict=True))
    if target.loss == "logistic":
        model[ROC_AUC] = roc_auc(expected[:, 1], y)
        baseline[ROC_AUC] = 0.5
    return Quality(count, model, baseline, expected, y)


def roc_auc(score: np.ndarray, is_positive: np.ndarray) -> float:
    """Return the area under the ROC curve.

    This is how often a positive row has a higher score than a negative one; ties count half.

    >>> print(roc_auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])))
    0.75
    """
    positives = int(is_positive.sum())
    pairs = positives * (len(is_positive) - positives)
    rank_sum = float(rankdata(score)[is_positive == 1].sum())
    return (rank_sum - positives * (positives + 1) / 2) / pairs if pairs else float("nan")


def describe_baseline(target: Target) -> str:
    """Return what the baseline predicts, to follow the words "The baseline is"."""
    if target.loss in CLASSIFICATION_LOSSES:
        return "always the shares of the labels in the training rows"
    mean = float(target.expected(target.baseline_predictors(1))[0])
    return f"always {mean:.6g}, the mean of the target in the training rows"
