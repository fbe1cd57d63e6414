"""Numbers and labels as texts."""

from __future__ import annotations

import shlex

import numpy as np


def format_number(value: float) -> str:
    """Return five digits."""
    return "unknown" if np.isnan(value) else f"{value:.5g}"


def typed(name: str, value: str) -> str:
    """Return an option as it is typed into a shell.

    >>> typed("--drop", "my column")
    "--drop 'my column'"
    """
    return f"{name} {shlex.quote(value)}"


def format_label(value: object) -> str:
    """Return a label of a class: a number as it is, a text in quotes."""
    return f"{value:g}" if isinstance(value, float) else f"{value!r}"
