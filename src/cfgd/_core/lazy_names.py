"""Names of a package that are imported when they are first used.

`cfgd fit` takes formulas and tables of packages whose other modules need JAX, which takes longer to
load than most fits.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package; `modules` has the module of each public name."""

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(f"{package}.{modules[name]}"), name)
        setattr(importlib.import_module(package), name, found)
        return found

    return get
