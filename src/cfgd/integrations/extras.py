"""What an integration needs has the name of the integration as an extra."""

from __future__ import annotations

from types import ModuleType

from cfgd._core import extras


def needed(module: str, extra: str) -> ModuleType:
    """The module, or how to get it."""
    return extras.import_extra(module, f"`cfgd.integrations.{extra}`", extra)
