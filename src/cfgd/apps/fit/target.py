"""The target column: numbers or class labels, with the loss for it and the baseline prediction."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cfgd.apps.fit.column_format import boolean_numbers
from cfgd.apps.fit.table import to_float64, to_strings
from cfgd.apps.fit.table_statistics import MAX_LABELS, SAMPLE, TableStatistics
from cfgd.objectives.linear.formulas import FORMULAS, MULTINOMIAL, Formulas

LOSS_NAMES = (*FORMULAS, MULTINOMIAL)
CLASSIFICATION_LOSSES = ("logistic", MULTINOMIAL)
# The standard deviation of a normal distribution is this multiple of its median absolute deviation.
DEVIATION_PER_MAD = 1.4826
GIVEN = "as given by --loss"
TRUTHS = {"false": 0.0, "true": 1.0}  # as spreadsheets and programs write booleans


def loss_function(loss: str, classes: int) -> Formulas:
    """Return the loss of this name; `classes` counts for the multinomial loss alone."""
    if loss != MULTINOMIAL:
        return FORMULAS[loss]
    from cfgd.objectives.linear.multinomial import Multinomial  # which needs JAX

    return Multinomial(classes)


@dataclasses.dataclass(frozen=True)
class Target:
    """The target and its encoding as the numbers y that the model is fitted to.

    y is (target - centre) / scale for numbers, and the index in `labels` for class labels.
    `baseline` has the intercept, or one for each class, of the best model without columns.
    `reason` says why this loss was chosen. Of two labels the second is the positive one, whose odds
    are modelled. `class_weights` has a weight in the fit for each label, if there are any.
    """

    name: str
    loss: str
    labels: tuple[Any, ...]
    baseline: np.ndarray
    reason: str
    centre: float = 0.0
    scale: float = 1.0
    class_weights: np.ndarray | None = None

    @property
    def loss_function(self) -> Formulas:
        return loss_function(self.loss, len(self.labels))

    @property
    def classes(self) -> int:
        """The number of linear predictors: one per class for the multinomial loss, else 1."""
        return len(self.labels) if self.loss == MULTINOMIAL else 1

    def encode(self, column: pa.Array) -> np.ndarray:
        """Return y, with NaN for missing values."""
        if not self.labels:
            return (to_float64(column) - self.centre) / self.scale
        if isinstance(self.labels[0], str):
            known = pa.array(self.labels, pa.string())
            return to_float64(pc.index_in(to_strings(column), known))
        values, y = to_float64(column), np.full(len(column), np.nan)
        for k, label in enumerate(self.labels):
            y[values == label] = k
        return y

    def for_loss(self, y: np.ndarray) -> Any:
        """Return y as the methods of the loss take it: -1 and 1, or integers, for class labels."""
        if self.loss == "logistic":
            return np.where(y > 0, 1.0, -1.0)
        return y.astype(np.int32) if self.labels else y

    def expected(self, p: np.ndarray) -> np.ndarray:
        """Return the mean of the target, or the probability of each label, for predictors p."""
        if self.loss in CLASSIFICATION_LOSSES:
            return np.asarray(self.loss_function.probabilities(p))
        return self.centre + self.scale * np.asarray(self.loss_function.predicted(p, (0.0, 1.0)))

    def baseline_predictors(self, rows: int) -> np.ndarray:
        """Return the linear predictors of the baseline for so many rows."""
        p = np.repeat(self.baseline[None], rows, 0)
        return p[:, 0] if self.classes == 1 else p


def find_label(option: str, text: str, labels: Sequence[Any]) -> Any:
    """Return the label that a text of the command line means; raise a `ValueError` if none.

    >>> find_label("--positive", "1", (0.0, 1.0)), find_label("--positive", "yes", ("no", "yes"))
    (1.0, 'yes')
    """
    for label in labels:
        if text == label or (isinstance(label, float) and _number_of_text(text) == label):
            return label
    known = ", ".join(f"{label:g}" if isinstance(label, float) else repr(label) for label in labels)
    raise ValueError(f"{option} must be one of the labels {known}, got {text!r}.")


def _number_of_text(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return TRUTHS.get(text.lower(), math.nan)


def choose_target(
    statistics: TableStatistics, loss: str | None, positive: str | None = None
) -> Target:
    """Return the target with the given loss, or with the loss that its values suggest.

    `positive` is the label of two whose odds are modelled, by default a word for yes or true, or
    else the second in order.
    """
    path, name = statistics.table.path, statistics.target
    labels = None if statistics.label_counts is None else sorted(statistics.label_counts)
    if labels is not None and len(labels) < 2:
        raise ValueError(f"{path}: the target {name!r} is constant ({_format_label(labels[0])}).")
    reason = GIVEN
    if loss is None:
        loss, reason = _suggest_loss(statistics, labels)
    if positive is not None and loss != "logistic":
        raise ValueError(
            f"--positive is for a target of two classes, and {name!r} has the loss {loss}."
        )
    if labels is not None and len(labels) == 2:
        if positive is not None:
            labels.sort(key=find_label("--positive", positive, labels).__eq__)
        elif statistics.target_is_text and np.isfinite(boolean_numbers(pa.array(labels))).all():
            labels.sort(key=lambda label: boolean_numbers(pa.array([label]))[0])
    if loss in CLASSIFICATION_LOSSES:
        return _label_target(statistics, loss, labels, reason)
    if statistics.target_is_text:
        raise ValueError(
            f"--loss {loss}: the target {name!r} is a text; the losses for texts are "
            f"{' and '.join(CLASSIFICATION_LOSSES)}."
        )
    return _number_target(statistics, loss, reason)


def _suggest_loss(statistics: TableStatistics, labels: list[Any] | None) -> tuple[str, str]:
    if labels is not None and len(labels) == 2:
        return "logistic", "because the target has two values"
    if statistics.target_is_text:
        return MULTINOMIAL, "because the target is text"
    return "squared", "because the target is numeric"


def _label_target(
    statistics: TableStatistics, loss: str, labels: list[Any] | None, reason: str
) -> Target:
    name, counts = statistics.target, statistics.label_counts
    if labels is None or counts is None:
        given = "" if reason != GIVEN else f"--loss {loss}: "
        kind = "texts" if statistics.target_is_text else "values"
        raise ValueError(
            f"{given}the target {name!r} has more than {MAX_LABELS} different {kind}, too many for "
            "class labels."
        )
    if loss == "logistic" and len(labels) != 2:
        raise ValueError(
            f"--loss logistic: the target {name!r} must have two values, got {len(labels)}: "
            f"use --loss {MULTINOMIAL}."
        )
    training_counts = np.array([counts[label][1:].sum() for label in labels])
    if not training_counts.all():
        label = _format_label(labels[int(np.argmin(training_counts))])
        raise ValueError(
            f"{statistics.table.path}: all rows in which the target {name!r} is {label} are held "
            "out: --test 0 holds out none, --seed chooses others."
        )
    shares = training_counts / training_counts.sum()
    baseline = np.log(shares) - np.mean(np.log(shares))
    if loss == "logistic":
        baseline = np.log(shares[1:] / shares[:1])
    return Target(name, loss, tuple(labels), baseline, reason)


def _number_target(statistics: TableStatistics, loss: str, reason: str) -> Target:
    name, moments = statistics.target, statistics.target_moments
    mean = float(moments.mean[0])
    if moments.minimum[0] == moments.maximum[0]:
        raise ValueError(
            f"{statistics.table.path}: the target {name!r} is constant in the training rows "
            f"({mean:g})."
        )
    if loss in ("poisson", "gamma"):
        lowest = statistics.target_minimum
        if lowest < 0 or (loss == "gamma" and lowest == 0):
            wanted = "not be negative" if loss == "poisson" else "be positive"
            raise ValueError(f"--loss {loss}: the target {name!r} must {wanted}, got {lowest:g}.")
        return Target(name, loss, (), np.log([mean]), reason)
    centre, scale = mean, float(moments.deviation[0])
    if loss == "huber":  # median and MAD: outliers must not set the scale
        sample = np.concatenate(statistics.target_sample)[:SAMPLE]
        centre = float(np.median(sample))
        scale = DEVIATION_PER_MAD * float(np.median(np.abs(sample - centre))) or scale
    return Target(name, loss, (), np.array([(mean - centre) / scale]), reason, centre, scale)


def _format_label(label: Any) -> str:
    return repr(label) if isinstance(label, str) else f"{label:g}"
