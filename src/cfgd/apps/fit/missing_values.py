"""The policy for missing values: what `cfgd fit --missing` means, for the fit and for predictions.

A value is missing where the file has none: an empty field, null, NaN, or a mark such as NA or ?
(`missing_marks`), and where `--bad-values missing` takes a bad value as missing. (Infinity is not
a missing value: it is always an error.)

====================  =========================================  =================================
policy                `cfgd fit`                                 `cfgd predict` with that model
====================  =========================================  =================================
`refuse` (default)    Stop with an error that names the column   Stop with such an error.
                      and the row.
`drop`                Leave out every row with a missing value,  Write a row without a prediction.
                      of a column or of the target.
`mean`                Impute a missing number by the mean of     Impute that same mean, which
                      its column over the training rows. A       model.json holds. A missing text
                      missing text is a level of its own. A      is that level, or as a text that
                      missing target is an error: it has no      no training row has if there were
                      mean.                                      none.
====================  =========================================  =================================

`NumberColumn.encode` and `TextColumn.encode` impute; this module decides which rows are left out
and what is an error.
Columns given by `--drop` are not read, so their missing values do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cfgd.apps.fit.columns import Mask
from cfgd.apps.fit.table import ColumnKind

REFUSE, DROP, MEAN = "refuse", "drop", "mean"
POLICIES = (REFUSE, DROP, MEAN)


def left_out_rows(policy: str, missing: Mask) -> Mask:
    """Return the rows that a fit leaves out and for which no prediction is made.

    `missing` marks the rows with a missing value that is no error under this policy.
    """
    return missing if policy == DROP else np.zeros_like(missing)


def check_for_fit(
    path: Path,
    policy: str,
    kinds: Mapping[str, ColumnKind],
    target: str,
    missing: Mapping[str, Mask],
    rows_before: int,
) -> None:
    """Raise a `ValueError` for the first missing value that the policy does not allow in a fit.

    Parameters
    ----------
    kinds, missing
        For each column and the target: its kind, and the mask of its missing values in a block.
    rows_before
        How many rows of the file precede the block.
    """
    for name, mask in missing.items():
        can_impute = name != target
        if not mask.any() or _is_allowed(policy, can_impute):
            continue
        remedy = "use --missing drop to leave out such rows"
        if policy == MEAN:
            remedy = f"the target has no mean to impute, {remedy}"
        elif can_impute:
            other = "impute the mean of the column"
            if kinds[name] == "text":
                other = "make them a level of their own"
            remedy = f"{remedy}, or --missing mean to {other}"
        raise ValueError(f"{_location(path, name, mask, rows_before)}: {remedy}.")


def check_for_prediction(path: Path, policy: str, name: str, mask: Mask, rows_before: int) -> None:
    """Raise a `ValueError` if a column has a missing value for which the model has no rule."""
    if mask.any() and policy == REFUSE:
        cause = f"the model was fitted with --missing {policy}"
        raise ValueError(f"{_location(path, name, mask, rows_before)}, and {cause}.")


def _is_allowed(policy: str, can_impute: bool) -> bool:
    return policy == DROP or (policy == MEAN and can_impute)


def _location(path: Path, name: str, mask: Mask, rows_before: int) -> str:
    row = rows_before + int(np.argmax(mask)) + 1
    return f"{path}: the column {name!r} has a missing value in row {row}"
