"""optax's own test modules, with other optimizers for the list that they go through."""

import ast
import importlib.util
import types
from pathlib import Path

from cfgd.integrations.optax import cfadam, cfadamw, cfgd

OURS = {"cfgd": cfgd, "cfadam": cfadam, "cfadamw": cfadamw}


def with_ours(file, name, ours):
    """The module `file` of optax's tests, whose list called `name` is `ours`, an expression."""
    spec = importlib.util.find_spec(f"optax._src.{file}")
    tree = ast.parse(Path(spec.origin).read_text())
    (listed,) = (
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name
    )
    listed.value = ast.parse(ours, mode="eval").body
    module = types.ModuleType(f"{file}_with_ours")
    module.__dict__.update(OURS)
    exec(compile(tree, spec.origin, "exec"), module.__dict__)
    return module
