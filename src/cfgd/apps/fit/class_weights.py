"""Weights of the classes: `--class-weight balanced` or `--class-weight yes=2,no=1`."""

from __future__ import annotations

import math

import numpy as np

from cfgd.apps.fit.baseline import class_totals
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import training_rows
from cfgd.apps.fit.target import find_label

BALANCED = "balanced"


def read_class_weights(text: str) -> dict[str, float] | None:
    """Return the weights that the user gave for labels, or None for "balanced".

    >>> read_class_weights("yes=2,no=0.5")
    {'yes': 2.0, 'no': 0.5}
    """
    if text == BALANCED:
        return None
    weights: dict[str, float] = {}
    for part in text.split(","):
        label, _, number = part.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not label or not 0 < weight < math.inf:
            raise ValueError(
                f"--class-weight must be {BALANCED}, or positive numbers for labels as in "
                f"yes=2,no=1, got {part!r}."
            )
        if label in weights:
            raise ValueError(f"--class-weight has two weights for the label {label!r}.")
        weights[label] = weight
    return weights


def class_weights(rows: Rows, text: str) -> np.ndarray:
    """Return the weight of each class of the target.

    "balanced" gives the sum of all weights over the number of classes times the sum of the weights
    of the class, over the training rows, as scikit-learn does. Labels that the user did not name
    have the weight 1.
    """
    labels = rows.target.labels
    given = read_class_weights(text)
    if given is not None:
        found = {find_label("--class-weight", name, labels): w for name, w in given.items()}
        return np.array([found.get(label, 1.0) for label in labels])
    totals, _ = rows.sum(training_rows, class_totals, len(labels))
    return totals.sum() / (len(labels) * totals)
