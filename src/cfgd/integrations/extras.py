"""A library that an integration needs and that is not there is one sentence."""

from __future__ import annotations

import importlib
from types import ModuleType


def needed(module: str, extra: str) -> ModuleType:
    """The module, or how to get it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or module.split(".")[0] != error.name.split(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"`cfgd.integrations.{extra}` needs {module.split('.')[0]}: "
            f"pip install 'cfgd[{extra}]'.",
            name=error.name,
        ) from None
