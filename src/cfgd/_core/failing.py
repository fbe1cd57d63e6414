"""Errors and warnings with uniform words: owner, field, what was wanted, what was given."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import NoReturn


def fail(
    owner: str, field: str, wanted: str, got: object, cause: Exception | None = None
) -> NoReturn:
    """Raise the `ValueError` for a bad input."""
    raise ValueError(f"`{owner}({field}=...)` must {wanted}, got {got}.") from cause


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the line of user code that called cfgd."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_internal(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_internal(frame: FrameType) -> bool:
    """Return whether a frame belongs to cfgd or to a library that wraps or calls its functions."""
    package = frame.f_globals.get("__name__", "").split(".")[0]
    return package in ("cfgd", "equinox", "jaxtyping", "beartype", "scipy")
