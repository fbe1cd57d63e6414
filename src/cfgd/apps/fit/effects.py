"""What a coefficient means: a difference of means, an odds ratio, or a ratio of means.

The linear predictor of a logistic model is the log-odds of the positive class, that of a Poisson or
gamma model the logarithm of the mean. There exp(coefficient) is what the odds or the mean is
multiplied by where the column grows by one, with the other columns as they are.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from cfgd.apps.fit.target import Target

MODEL_NAMES = {
    "squared": "Linear regression",
    "huber": "Robust linear regression (Huber loss)",
    "logistic": "Logistic regression",
    "multinomial": "Multinomial logistic regression",
    "poisson": "Poisson regression (log link)",
    "gamma": "Gamma regression (log link)",
}
RATIO_NAMES = {
    "logistic": "odds ratio",
    "multinomial": "odds ratio",
    "poisson": "rate ratio",
    "gamma": "ratio of means",
}


@dataclasses.dataclass(frozen=True)
class Effect:
    """The meaning of the coefficients of one loss.

    `ratio_name` is what exp(coefficient) is called, None where the coefficient itself is the
    effect. `sentence` explains a coefficient.
    """

    ratio_name: str | None
    sentence: str


def effect_of(target: Target, positive: str = "") -> Effect:
    """Return what the coefficients of a target mean; `positive` is the label that is modelled."""
    name = repr(target.name)
    per_unit = "per unit increase in the column, with the other columns held constant"
    ratio = RATIO_NAMES.get(target.loss)
    if ratio is None:
        return Effect(None, f"A coefficient is the change in the predicted {name} {per_unit}.")
    is_ratio = f"the {ratio} is exp(coefficient)"
    if target.loss == "logistic":
        return Effect(
            ratio,
            f"A coefficient is the change in the log-odds of {name} being {positive} {per_unit}; "
            f"{is_ratio}.",
        )
    if target.loss == "multinomial":
        return Effect(
            ratio,
            f"A coefficient is the change in the log-odds of a class of {name}, relative to the "
            f"geometric mean of all classes, {per_unit}; {is_ratio}. The difference between the "
            "coefficients of two classes is the log of the odds ratio between these two.",
        )
    return Effect(
        ratio,
        f"A coefficient is the change in the log of the mean of {name} {per_unit}; {is_ratio}.",
    )


def as_ratio(log_ratio: float) -> float:
    """Return exp(log_ratio), infinite where that is too large."""
    with np.errstate(over="ignore"):
        return float(np.exp(log_ratio))
