"""Input checks without JAX, with the same messages as their namesakes in `cfgd._core.checks`.

`cfgd._core.checks` imports JAX, which users of the PyTorch optimizers need not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn


def fail(owner: str, field: str, wanted: str, got: object) -> NoReturn:
    """Raise the error that names owner, field, what was wanted and what was given."""
    raise ValueError(f"`{owner}({field}=...)` must {wanted}, got {got}.")


def number(owner: str, field: str, value: Any, wanted: str, holds: Callable[[float], bool]) -> None:
    """Require a finite Python number for which `holds` is true."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not holds(value):
        fail(owner, field, wanted, repr(value))


def integer(owner: str, field: str, value: Any, least: int) -> None:
    """Require a Python integer of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        fail(owner, field, f"be an integer of at least {least}", repr(value))


def flag(owner: str, field: str, value: Any) -> None:
    """Require True or False."""
    if not isinstance(value, bool):
        fail(owner, field, "be True or False", repr(value))
