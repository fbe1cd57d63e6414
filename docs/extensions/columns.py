"""Mark printed tables, whose lines must not be wrapped: a narrow screen scrolls them."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

GAP = re.compile(r"\S {2,}\S")


def mark(app: Any, doctree: nodes.document) -> None:
    """Give the class `columns` to blocks of output that have several lines with gaps in them."""
    for block in doctree.findall(nodes.literal_block):
        lines = block.astext().splitlines()
        if block.get("language") == "text" and sum(bool(GAP.search(line)) for line in lines) > 1:
            block["classes"].append("columns")


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
