"""What the three rules of a method have in common: fields that a sweep may vary."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx


class Rule(eqx.Module):
    """`ranks` names the numeric fields and their axes in one setting.

    A number has 0, a point 1, the points of the past 2. A field with one axis more holds one
    entry for each setting of a sweep, along `batch_axis`.
    """

    ranks: ClassVar[dict[str, int]] = {}
    batch_axis: ClassVar[int] = 0
    per_coordinate: ClassVar[bool] = True  # whether a number may be one for each coordinate
