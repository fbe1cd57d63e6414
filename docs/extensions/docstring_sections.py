"""The sections of a NumPy-style docstring and the entries of their lists."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator

LISTS = ("Parameters", "Attributes", "Returns", "Raises")
TITLES = (*LISTS, "Notes", "Examples", "References", "See Also")
# "float, default 0.5" and "float, optional"
WRITTEN = re.compile(r"(?P<kind>.*?)(, optional|, default (?P<default>.+))?")


@dataclasses.dataclass(frozen=True)
class Section:
    """A title, "" for the text before the first one, and the lines below it."""

    title: str
    lines: list[str]


@dataclasses.dataclass(frozen=True)
class Entry:
    """An entry of a list: its names, its type, the default that is written, and its text."""

    names: list[str]
    kind: str
    default: str | None
    text: list[str]


def sections(docstring: str) -> list[Section]:
    """Return the sections of a docstring that `inspect.cleandoc` has unindented."""
    lines, found = docstring.splitlines(), [Section("", [])]
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line in TITLES and following == "-" * len(line):
            found.append(Section(line, []))
        elif not (line and set(line) == {"-"} and lines[i - 1] == found[-1].title):
            found[-1].lines.append(line)
    return [Section(each.title, _trimmed(each.lines)) for each in found]


def _trimmed(lines: list[str]) -> list[str]:
    return "\n".join(lines).strip("\n").split("\n")


def entries(section: Section) -> Iterator[Entry]:
    """Yield the entries of a section of LISTS."""
    heads = [i for i, line in enumerate(section.lines) if line and not line.startswith(" ")]
    for i, end in zip(heads, [*heads[1:], len(section.lines)], strict=True):
        names, colon, kind = section.lines[i].partition(" : ")
        if section.title in ("Returns", "Raises") and not colon:
            names, kind = "", names
        written = WRITTEN.fullmatch(kind)
        text = inspect.cleandoc("\n".join(section.lines[i + 1 : end])).splitlines()
        yield Entry(
            [name.strip() for name in names.split(",") if name],
            written["kind"],
            written["default"] or ("None" if written[2] else None),
            text,
        )
