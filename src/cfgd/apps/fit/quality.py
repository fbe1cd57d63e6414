"""How good the fit is, beside a baseline that uses no column."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import Part
from cfgd.apps.fit.survey import SAMPLE
from cfgd.apps.fit.target import OF_LABELS, Target

Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of (expected, target), row by row


def _poisson(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mean), 0) - y + mean)


def _gamma(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 2 * ((y - mean) / mean - np.log(y / mean))


def _log_loss(chances: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return -np.log(np.take_along_axis(chances, y.astype(int)[:, None], 1)[:, 0])


def _right(chances: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (chances.argmax(1) == y).astype(float)


def _squares(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (mean - y) ** 2


def _distance(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.abs(mean - y)


# the first is what the share that the model explains is a share of
MEASURES: dict[str, dict[str, Measure]] = {
    "squared": {"mean squared error": _squares, "mean absolute error": _distance},
    "huber": {"mean absolute error": _distance, "mean squared error": _squares},
    "poisson": {"mean deviance": _poisson, "mean absolute error": _distance},
    "gamma": {"mean deviance": _gamma, "mean absolute error": _distance},
    "logistic": {"log loss": _log_loss, "share of right labels": _right},
    "multinomial": {"log loss": _log_loss, "share of right labels": _right},
}


@dataclasses.dataclass(frozen=True)
class Quality:
    """Means over rows, of the model and of the baseline; and some rows themselves, for figures."""

    rows: int
    model: dict[str, float]
    baseline: dict[str, float]
    expected: np.ndarray  # means, or a column of probabilities for each label
    y: np.ndarray  # targets, or places of labels

    @property
    def explained(self) -> float:
        """The share of the baseline's error that is gone."""
        name = next(iter(self.model))
        return 1 - self.model[name] / self.baseline[name] if self.baseline[name] else 0.0


def quality(rows: Rows, part: Part, w: np.ndarray) -> Quality:
    """In one pass."""
    target, measures = rows.target, MEASURES[rows.target.loss]
    sums = {name: np.zeros(2) for name in measures}
    count, kept = 0, 0
    sample: list[tuple[np.ndarray, np.ndarray]] = []
    for X, y in rows.blocks(part):
        y = target.centre + target.scale * y
        found = expected(target, X @ w[:-1] + w[-1])
        base = expected(target, _constant(target, len(y)))
        for name, of in measures.items():
            sums[name] += of(found, y).sum(), of(base, y).sum()
        sample += [(found[: SAMPLE - kept], y[: SAMPLE - kept])]
        count, kept = count + len(y), kept + len(sample[-1][1])
    means = {name: total / count for name, total in sums.items()}
    parts = (np.concatenate(of) for of in zip(*sample, strict=True))
    model, baseline = ({name: float(of[i]) for name, of in means.items()} for i in (0, 1))
    shown, y = parts
    if target.loss == "logistic":
        model["area under the ROC curve"] = area(shown[:, 1], y)
        baseline["area under the ROC curve"] = 0.5
    return Quality(count, model, baseline, shown, y)


def _constant(target: Target, rows: int) -> np.ndarray:
    return np.repeat(target.start[None], rows, 0)[:, 0 if target.classes == 1 else slice(None)]


def expected(target: Target, p: np.ndarray) -> np.ndarray:
    """The mean of the target, or the probabilities of its labels."""
    if target.loss in OF_LABELS:
        return np.asarray(target.rule.probabilities(p))
    return target.expected(p)


def area(chance: np.ndarray, y: np.ndarray) -> float:
    """How often a row with the label has the greater chance than one without it; ties are half.

    >>> print(area(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])))
    0.75
    """
    ones = int(y.sum())
    pairs = ones * (len(y) - ones)
    rank = float(rankdata(chance)[y == 1].sum())
    return (rank - ones * (ones + 1) / 2) / pairs if pairs else float("nan")


def said(target: Target) -> str:
    """What the baseline does."""
    if target.loss in OF_LABELS:
        return "always the shares that the labels have in the rows fitted to"
    mean = float(expected(target, _constant(target, 1))[0])
    return f"always {mean:.6g}, the mean of the target in the rows fitted to"
