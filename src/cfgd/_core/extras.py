"""Import of optional dependencies, with one sentence on how to install a missing one."""

from __future__ import annotations

import importlib
from types import ModuleType


class MissingExtraError(ModuleNotFoundError):
    """Raised where an optional dependency is missing; says who needs it and how to install it."""


def import_extra(module: str, who: str, extra: str) -> ModuleType:
    """Import and return `module`; a `MissingExtraError` names the extra that is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        root = module.split(".")[0]
        if error.name is None or root != error.name.split(".")[0]:
            raise  # the module is there, but something that it imports is not
        message = f"{who} needs {root}: pip install 'cfgd[{extra}]'."
        raise MissingExtraError(message, name=error.name) from None
