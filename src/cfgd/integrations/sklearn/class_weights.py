"""Weights of classes, in memory and on Dask."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight


def is_balanced(class_weight: Any) -> bool:
    """Return whether the weights follow from the data."""
    return isinstance(class_weight, str) and class_weight == "balanced"


def balanced(totals: Any) -> Any:
    """Return weights that make the classes count equally, given their sums of sample weights.

    They are scikit-learn's, whose `compute_class_weight` takes sample weights since version 1.9.
    """
    return totals.sum() / (len(totals) * totals)


def weights_of_classes(class_weight: Any, classes: Any, labels: Any, weight: Any) -> Any:
    """Return the weight of each class; `labels` are the indices of the classes of the samples."""
    if is_balanced(class_weight):
        return balanced(np.bincount(labels, weight, len(classes)))
    return compute_class_weight(class_weight, classes=classes, y=classes[labels])
