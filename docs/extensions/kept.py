"""What was drawn or run with the same text, and the same library, is not drawn or run again."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import cfgd

BUILD = Path(__file__).parents[2] / "build"
LIBRARY = Path(cfgd.__file__).parent


@functools.cache
def library() -> str:
    """All of its text."""
    files = sorted(LIBRARY.rglob("*.py"))
    return "".join(path.read_text(encoding="utf-8") for path in files)


def key(text: str) -> str:
    return hashlib.sha256((library() + text).encode()).hexdigest()[:16]
