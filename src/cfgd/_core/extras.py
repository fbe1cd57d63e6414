"""A library that is an extra and is not there is one sentence."""

from __future__ import annotations

import importlib
from types import ModuleType


class MissingExtraError(ModuleNotFoundError):
    """Says who needs which library, and how to get it."""


def needed(module: str, who: str, extra: str) -> ModuleType:
    """The module, or how to get it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        root = module.split(".")[0]
        if error.name is None or root != error.name.split(".")[0]:
            raise
        said = f"{who} needs {root}: pip install 'cfgd[{extra}]'."
        raise MissingExtraError(said, name=error.name) from None
