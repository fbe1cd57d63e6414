"""Mark printed tables, whose lines must not be wrapped: a narrow screen scrolls them."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from docutils import nodes

GAP = re.compile(r"\S {2,}\S")
NARROWEST = 80  # characters of a sentence beside a narrow table: a line of a terminal


def mark(app: Any, doctree: nodes.document) -> None:
    """Give the class `columns` to blocks of output that have several lines with gaps in them.

    The sentences in such a block are folded to the width of the table or of a terminal: wide
    screens show them whole, and narrow ones scroll little further than for the table.
    """
    for block in doctree.findall(nodes.literal_block):
        lines = block.astext().splitlines()
        rows = [line for line in lines if GAP.search(line)]
        if block.get("language") == "text" and len(rows) > 1:
            block["classes"].append("columns")
            width = max(NARROWEST, *map(len, rows))
            text = "\n".join(line if line in rows else folded(line, width) for line in lines)
            block.rawsource = text  # Sphinx highlights a block only if it equals its source
            block[:] = [nodes.Text(text)]


def folded(line: str, width: int) -> str:
    """Return a line in lines of at most a width, which begin below one another."""
    indent = " " * (len(line) - len(line.lstrip()))
    whole = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(line, width, subsequent_indent=indent, **whole)


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
