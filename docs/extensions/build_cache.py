"""Keys of the build cache: a figure or example is made again only if its text or cfgd changed."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import cfgd

BUILD = Path(__file__).parents[2] / "build"
LIBRARY = Path(cfgd.__file__).parent


@functools.cache
def library_text() -> str:
    """Return the text of all modules of cfgd."""
    files = sorted(LIBRARY.rglob("*.py"))
    return "".join(path.read_text(encoding="utf-8") for path in files)


def cache_key(text: str) -> str:
    """Return a key that changes with the text and with cfgd."""
    return hashlib.sha256((library_text() + text).encode()).hexdigest()[:16]
