"""Numbers and labels as texts."""

from __future__ import annotations

import numpy as np


def format_number(value: float) -> str:
    """Return five digits."""
    return "unknown" if np.isnan(value) else f"{value:.5g}"


def format_label(value: object) -> str:
    """Return a label of a class: a number as it is, a text in quotes."""
    return f"{value:g}" if isinstance(value, float) else f"{value!r}"
