"""optax's test modules with another list of optimizers under test."""

import ast
import importlib.util
import types
from pathlib import Path

from cfgd.integrations.optax import cfadam, cfadamw, cfgd

OPTIMIZERS = {"cfgd": cfgd, "cfadam": cfadam, "cfadamw": cfadamw}


def with_optimizers(file, name, expression):
    """Return the test module `file` of optax with `expression` as its list `name`."""
    spec = importlib.util.find_spec(f"optax._src.{file}")
    tree = ast.parse(Path(spec.origin).read_text())
    (assignment,) = (
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name
    )
    assignment.value = ast.parse(expression, mode="eval").body
    module = types.ModuleType(f"{file}_with_cfgd")
    module.__dict__.update(OPTIMIZERS)
    exec(compile(tree, spec.origin, "exec"), module.__dict__)
    return module
