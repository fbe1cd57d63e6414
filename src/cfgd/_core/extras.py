"""Import of optional dependencies, with one sentence on how to install a missing one."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit
from urllib.request import url2pathname


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
        message = f"{who} needs {root}: {install_command(extra)}."
        raise MissingExtraError(message, name=error.name) from None


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation, from where it came.

    The origin is in direct_url.json, which pip writes for what came from a folder, a file or a
    repository, and not for what came from PyPI (packaging.python.org/specifications/direct-url).
    """
    try:
        record = json.loads(
            importlib.metadata.distribution("cfgd").read_text("direct_url.json") or "{}"
        )
    except importlib.metadata.PackageNotFoundError:
        record = {}
    url = urlsplit(record.get("url", ""))
    path = Path(url2pathname(url.path))
    if url.scheme == "file" and path.exists():
        option = "-e " if record.get("dir_info", {}).get("editable") else ""
        return f"pip install {option}'{path}[{extra}]'"
    if "vcs_info" in record:
        return f"pip install 'cfgd[{extra}] @ {record['vcs_info']['vcs']}+{record['url']}'"
    return f"pip install 'cfgd[{extra}]'"
