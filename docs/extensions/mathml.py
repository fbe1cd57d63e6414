"""Formulas as MathML, made in the build: browsers show it without a script or a font."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def mathml(tex: str, display: str = "inline") -> str:
    # a prime that is a character stands right in every font; as an exponent it stands too high
    return convert(tex.replace("''", "″").replace("'", "′"), display=display)


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_displaymath(self: Any, node: nodes.math_block) -> None:
    formula = mathml(node.astext(), display="block")
    self.body.append(self.starttag(node, "div", CLASS="formula") + formula + "</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
