"""When the curvature of a group is measured, and how measurements become a running mean."""

from __future__ import annotations

from typing import Any

import torch

from cfgd.integrations.torch.arithmetic import Tensors
from cfgd.integrations.torch.check import MEASURED

# Kept with the options of a group, hence in its state_dict: `age` is the steps since the last
# measurement, `measured` how many there are, `drawn` how many signs were drawn, and `open` whether
# another loss before the step adds to the last one.
COUNTERS = {"age": None, "measured": 0, "drawn": 0, "open": False}


def is_measured(group: dict[str, Any]) -> bool:
    return isinstance(group["curvature"], str) and group["curvature"] in MEASURED


def is_old(group: dict[str, Any]) -> bool:
    return is_measured(group) and (group["age"] is None or group["age"] >= group["every"])


def is_due(group: dict[str, Any]) -> bool:
    return is_old(group) or (is_measured(group) and group["open"])


def take_in(group: dict[str, Any], means: Tensors, found: Tensors) -> None:
    """D <- (1 - w) D + w found, with w = 1/n for the n-th and never less than 1 - keep.

    So the weights sum to one from the first measurement on, and the mean has no bias towards the
    zeros that it began with. An exact diagonal needs no mean. What is not finite is left out.
    """
    group["age"] = 0
    if not all(_is_finite(D) for D in found):
        return
    more = group["open"]
    group["measured"] += 0 if more else 1
    newest = max(1 / group["measured"], 1 - group["keep"])
    w = 1.0 if group["curvature"] == "exact" else newest
    for mean, D in zip(means, found, strict=True):
        if more:
            mean.add_(D, alpha=w)
        else:
            mean.lerp_(D, w)
    group["open"] = True


def after_a_step(group: dict[str, Any]) -> None:
    if group["age"] is not None:
        group["age"] += 1
    group["open"] = False


def _is_finite(D: Any) -> bool:
    """By the sum first: to look at each entry takes ten times as long, and is seldom needed."""
    return bool(torch.isfinite(D.sum())) or bool(torch.isfinite(D).all())
