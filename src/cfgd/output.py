"""What is left behind: files that are whole or not there, numbers as JSON has them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

INTERRUPTED = 130  # the exit code that a shell gives for Ctrl-C


def check_writable(folder: Path) -> None:
    """Make the folder and a file in it now: hours later would be too late to find out."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"The folder {folder} cannot be written to: {reason}.") from None


def write(path: Path, text: str) -> None:
    """All or nothing: an interrupted write leaves the file that was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def plain(value: Any, not_finite: Callable[[float], Any] = str) -> Any:
    """Arrays and ranges as lists; what is not finite as a word or as told, since JSON has none.

    >>> plain({1: (np.float64(0.5), np.inf)})
    {'1': [0.5, 'inf']}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry, not_finite) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), not_finite)
    if isinstance(value, list | tuple | range):
        return [plain(entry, not_finite) for entry in value]
    if isinstance(value, float) and not np.isfinite(value):
        return not_finite(value)
    return value
