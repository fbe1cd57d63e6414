"""A check of saved SVG figures: only shapes and text, no scripts, links or external resources.

A figure is part of the page, uses its colours and cannot be escaped. So elements and attributes are
allowed only if matplotlib writes them.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

ELEMENTS = {
    f"{{http://www.w3.org/2000/svg}}{name}"
    for name in ("svg", "defs", "g", "path", "use", "text", "tspan", "clipPath", "rect")
}
HREF = "{http://www.w3.org/1999/xlink}href"
NAME = r"[\w.-]+"
ANYTHING = ".*"  # for attributes that a browser only displays
ATTRIBUTES = {
    "aria-label": ANYTHING,
    "role": ANYTHING,
    "d": ANYTHING,
    **dict.fromkeys(("viewBox", "x", "y", "width", "height"), ANYTHING),
    "transform": r"[\w\s(),.+-]*",
    "id": NAME,
    "clip-path": rf"url\(#{NAME}\)",
    HREF: f"#{NAME}",
}
PROPERTIES = re.compile(
    r"(fill|stroke|opacity|font|text-anchor)(-[a-z]+)*\s*:\s*(var\(--[a-z]+\)|[\w\s.,#%'+-]*)"
)


def check_svg(svg: str) -> None:
    """Raise ValueError if a figure holds anything but shapes and text."""
    # XML and HTML parsers disagree about comments and declarations, so there may be none
    if not svg.startswith("<svg") or "<!" in svg or "<?" in svg:
        raise ValueError("must be an <svg> element without comments or declarations")
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise ValueError(f"must be well-formed XML ({error})") from None
    for element in root.iter():
        if element.tag not in ELEMENTS:
            raise ValueError(f"must be a drawing, without <{_short(element.tag)}>")
        for name, value in element.attrib.items():
            if not _allowed(name, value):
                shown = f"{_short(name)}={value[:40]!r}"
                raise ValueError(f"must be a drawing, without {shown}")


def _allowed(name: str, value: str) -> bool:
    if name == "style":
        return all(PROPERTIES.fullmatch(rule.strip()) for rule in value.split(";") if rule.strip())
    return name in ATTRIBUTES and bool(re.fullmatch(ATTRIBUTES[name], value, re.DOTALL))


def _short(name: str) -> str:
    return name.rsplit("}", 1)[-1][:40]
