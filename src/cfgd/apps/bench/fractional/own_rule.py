"""`--rule my_rule.py:MyRule`: a rule from a file of the user, which is run."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from cfgd.apps.bench.fractional.competitors import Competitor, own
from cfgd.zoo.update_rule import UpdateRule


def read_rule(text: str) -> Competitor:
    """Return the competitor named by `FILE.py:Class`; the file is executed as any Python code."""
    path, _, name = text.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier():
        raise ValueError(f"--rule must be FILE.py:Class, such as my_rule.py:MyRule, got {text!r}.")
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"--rule: there is no file {path}.")
    content = file.read_bytes()
    spec = importlib.util.spec_from_file_location("cfgd_own_rule", file)
    assert spec is not None  # the name ends with .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kind = getattr(module, name, None)
    if not isinstance(kind, type) or not issubclass(kind, UpdateRule):
        raise ValueError(f"--rule: {path} must define {name}, a subclass of cfgd.zoo.UpdateRule.")
    return own(kind, hashlib.sha256(content).hexdigest()[:16])
