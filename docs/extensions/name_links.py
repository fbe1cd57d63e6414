"""Link public names that pages write as code to their entries in the reference."""

from __future__ import annotations

import importlib
import inspect
import re
from importlib.util import find_spec
from typing import Any

from docutils import nodes
from sphinx import addnodes

import cfgd

INTEGRATIONS = ("scipy", "sklearn", "optax", "torch", "lmfit")


def names() -> dict[str, str]:
    """Return the names that are linked, each with the full name of its entry."""
    found: dict[str, str] = {}
    for name in cfgd.__all__:
        if not inspect.ismodule(getattr(cfgd, name)):
            found[name] = found[f"cfgd.{name}"] = f"cfgd.{name}"
    for inside in filter(lambda name: inspect.ismodule(getattr(cfgd, name)), cfgd.__all__):
        for name in getattr(cfgd, inside).__all__:
            full = f"cfgd.{inside}.{name}"
            found[f"{inside}.{name}"] = found[full] = full
            if inside == "zoo" and name[0].isupper():
                found[name] = full  # the name of a source means nothing else
    for integration in INTEGRATIONS:
        if integration in ("torch", "lmfit") and find_spec(integration) is None:
            continue
        module = importlib.import_module(f"cfgd.integrations.{integration}")
        for name in module.__all__:
            full = f"{module.__name__}.{name}"
            found[full] = full
            if name.startswith(("Caputo", "CF", "cfadam", "scale_by", "Hutchinson")):
                found.setdefault(name, full)  # the others have another meaning elsewhere
    return found


def link(app: Any, doctree: nodes.document) -> None:
    entries = names()
    for literal in list(doctree.findall(nodes.literal)):
        called = re.fullmatch(r"([\w.]+)(\(.*\))?", literal.astext())
        # a member is described in the entry of its class
        owner = called[1].rpartition(".")[0] if called else ""
        target = (entries.get(called[1]) or entries.get(owner)) if called else None
        above = (nodes.reference, addnodes.pending_xref, nodes.title, addnodes.desc_signature)
        if target is None or any(isinstance(node, above) for node in ancestors(literal)):
            continue
        reference = addnodes.pending_xref(
            "",
            literal.deepcopy(),
            refdomain="py",
            reftype="obj",
            reftarget=target,
            refexplicit=True,
            refdoc=app.env.docname,
        )
        literal.replace_self(reference)


def ancestors(node: nodes.Node) -> Any:
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
