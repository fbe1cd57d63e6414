"""What the target is: numbers or labels, the loss that goes with it, and its baseline."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cfgd.apps.fit.survey import MOST_LABELS, SAMPLE, Survey
from cfgd.apps.fit.table import numbers, texts
from cfgd.objectives.linear.losses import LOSSES, MULTINOMIAL, Loss
from cfgd.objectives.linear.multinomial import Multinomial

NAMES = (*LOSSES, MULTINOMIAL)
OF_LABELS = ("logistic", MULTINOMIAL)
NORMAL = 1.4826  # deviations of a normal distribution in its median absolute deviation


def rule(loss: str, classes: int) -> Loss:
    return Multinomial(classes) if loss == MULTINOMIAL else LOSSES[loss]


@dataclasses.dataclass(frozen=True)
class Target:
    """y is (target - centre) / scale for numbers; for labels their places in `labels`.

    `start` is the baseline: the intercept, or one for each class, of a model without columns.
    """

    name: str
    loss: str
    labels: tuple[Any, ...]
    start: np.ndarray
    why: str
    centre: float = 0.0
    scale: float = 1.0

    @property
    def rule(self) -> Loss:
        return rule(self.loss, len(self.labels))

    @property
    def classes(self) -> int:
        """Predictions of a row: one for each class where there are several."""
        return len(self.labels) if self.loss == MULTINOMIAL else 1

    def entries(self, column: Any) -> np.ndarray:
        """y, NaN where it is missing."""
        if not self.labels:
            return (numbers(column) - self.centre) / self.scale
        text = isinstance(self.labels[0], str)
        column = texts(column) if text else pa.array(numbers(column))
        known = pa.array(self.labels, column.type)
        return numbers(pc.index_in(column, known))

    def expected(self, p: np.ndarray) -> np.ndarray:
        """The mean that a prediction stands for, in the units of the target."""
        return self.centre + self.scale * np.asarray(self.rule.predicted(p, (0.0, 1.0)))


def target_of(survey: Survey, loss: str | None) -> Target:
    """As asked for, or as the target suggests."""
    path, name = survey.table.path, survey.target
    labels = None if survey.labels is None else sorted(survey.labels)
    if labels is not None and len(labels) < 2:
        raise ValueError(f"{path}: the target {name!r} is constant ({_shown(labels[0])}).")
    why = "as asked for"
    if loss is None:
        loss, why = _suggested(survey, labels)
    if loss in OF_LABELS:
        return _of_labels(survey, loss, labels, why)
    if survey.target_is_text:
        raise ValueError(
            f"--loss {loss}: the target {name!r} is a text; the losses of texts are "
            f"{' and '.join(OF_LABELS)}."
        )
    return _of_numbers(survey, loss, why)


def _suggested(survey: Survey, labels: list[Any] | None) -> tuple[str, str]:
    if labels is not None and len(labels) == 2:
        return "logistic", "since the target has two values"
    if survey.target_is_text:
        return MULTINOMIAL, "since the target is a text"
    return "squared", "since the target is a number"


def _of_labels(survey: Survey, loss: str, labels: list[Any] | None, why: str) -> Target:
    name, counts = survey.target, survey.labels
    if labels is None or counts is None:
        raise ValueError(
            f"--loss {loss}: the target {name!r} has more than {MOST_LABELS} different values, "
            "too many to be labels."
        )
    if loss == "logistic" and len(labels) != 2:
        raise ValueError(
            f"--loss logistic: the target {name!r} must have two values, got {len(labels)}: "
            f"--loss {MULTINOMIAL} takes more."
        )
    ours = np.array([counts[label][1:].sum() for label in labels])
    if not ours.all():
        label = _shown(labels[int(np.argmin(ours))])
        raise ValueError(
            f"{survey.table.path}: all rows in which the target {name!r} is {label} are held out: "
            "--test 0 holds out none, --seed chooses others."
        )
    shares = ours / ours.sum()
    start = np.log(shares) - np.mean(np.log(shares))
    if loss == "logistic":
        start = np.log(shares[1:] / shares[:1])
    return Target(name, loss, tuple(labels), start, why)


def _of_numbers(survey: Survey, loss: str, why: str) -> Target:
    name, mean = survey.target, float(survey.y.mean[0])
    if survey.y.least[0] == survey.y.most[0]:
        raise ValueError(
            f"{survey.table.path}: the target {name!r} is constant in the rows that are fitted to "
            f"({mean:g})."
        )
    if loss in ("poisson", "gamma"):
        wanted = "not be negative" if loss == "poisson" else "be positive"
        least = survey.least
        if least < 0 or (loss == "gamma" and least == 0):
            raise ValueError(f"--loss {loss}: the target {name!r} must {wanted}, got {least:g}.")
        return Target(name, loss, (), np.log([mean]), why)
    centre, scale = mean, float(survey.y.deviation[0])
    if loss == "huber":
        sample = np.concatenate(survey.sample)[:SAMPLE]
        centre = float(np.median(sample))
        scale = NORMAL * float(np.median(np.abs(sample - centre))) or scale
    return Target(name, loss, (), np.array([(mean - centre) / scale]), why, centre, scale)


def _shown(label: Any) -> str:
    return repr(label) if isinstance(label, str) else f"{label:g}"
