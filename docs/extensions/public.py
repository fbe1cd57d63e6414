"""The reference: public names with their signatures and docstrings, which are Markdown.

    ```{public} cfgd
    Solution: message summary
    Status
    ```

makes entries for `cfgd.Solution` with two of its members, and for `cfgd.Status`. The examples of a
docstring are shown unchanged; the tests run them.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

import cfgd
from extensions.docstring_sections import LISTS, Entry, entries as listed, sections

CLASSES = {name for name in cfgd.__all__ if inspect.isclass(getattr(cfgd, name))}


class Public(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        (module,) = self.arguments
        text = [line for entry in self.content for line in entries(module, entry)]
        node = nodes.container()
        self.state.nested_parse(StringList(text, self.env.docname), 0, node)
        return node.children


def entries(module: str, entry: str) -> Iterator[str]:
    """Yield the Markdown of `name` or `name: member member`."""
    name, _, members = entry.partition(":")
    library = module.rpartition(".")[2]
    if library in ("torch", "lmfit") and find_spec(library) is None:
        yield f"`{name}`: these pages were built where there is no {library}.\n"
        return
    found = getattr(module_of(module), name.strip())
    yield from described(f"{module}.{name.strip()}", found, depth=4, members=members.split())
    yield ""


def module_of(name: str) -> Any:
    """Return a module by its public name, which need not be that of its file."""
    inside = name.removeprefix("cfgd.")
    if inside in cfgd.__all__:
        return getattr(cfgd, inside)
    return importlib.import_module(name)


def described(name: str, found: Any, depth: int, members: list[str]) -> Iterator[str]:
    """Yield a Python directive of Sphinx with the docstring and the members of an object."""
    fence = ":" * depth
    yield f"{fence}{{py:{kind(found, member=depth < 4)}}} {name}{signature(found)}"
    yield from markdown(inspect.getdoc(found) or "", found)
    for member in members:
        yield from described(member, inspect.getattr_static(found, member), depth - 1, [])
    yield fence
    yield ""


def kind(found: Any, member: bool) -> str:
    if isinstance(found, property):
        return "property"
    if inspect.isclass(found):
        return "exception" if issubclass(found, BaseException) else "class"
    if isinstance(found, classmethod):
        return "classmethod"
    return "method" if member else "function"


def parameters(found: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function or class, without self; a property has none."""
    if not callable(getattr(found, "__func__", found)):
        return {}
    given = inspect.signature(getattr(found, "__func__", found)).parameters
    return {name: each for name, each in given.items() if name not in ("self", "cls")}


def shown(value: Any) -> str:
    """Return the text of a default; a number of NumPy is shown as Python's."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def signature(found: Any) -> str:
    """Return the names and defaults of the parameters, without annotations."""
    if not callable(getattr(found, "__func__", found)) or hasattr(found, "__members__"):
        return ""  # a property, or an enumeration
    stripped = [
        each.replace(annotation=each.empty, default=Shown.of(each.default))
        for each in parameters(found).values()
    ]
    return str(inspect.Signature(stripped))


@dataclasses.dataclass(frozen=True)
class Shown:
    """A default in a signature, which prints it by its repr."""

    value: Any

    def __repr__(self) -> str:
        return shown(self.value)

    @classmethod
    def of(cls, value: Any) -> Any:
        return value if value is inspect.Parameter.empty else cls(value)


def markdown(docstring: str, found: Any = None) -> Iterator[str]:
    """Yield the docstring as Markdown: sections that list something become tables."""
    for section in sections(docstring):
        if section.title:
            yield from (f"**{section.title}**", "")
        if section.title in LISTS:
            yield from table(section.title, list(listed(section)), found)
        else:
            yield from with_blocks(section.lines)
        yield ""


def table(title: str, rows: list[Entry], found: Any) -> Iterator[str]:
    """Yield the table of a section: names, types, defaults from the signature, and texts."""
    given = defaults(found) if title == "Parameters" else {}
    columns: dict[str, list[list[str]]] = {
        NAMED[title]: [[", ".join(f"`{name}`" for name in row.names)] for row in rows],
        KINDS[title]: [[with_code(row.kind)] for row in rows],
        "default": [[default(row, given)] for row in rows] if given else [],
        "meaning": [row.text or [""] for row in rows],
    }
    columns = {name: cells for name, cells in columns.items() if any(any(cell) for cell in cells)}
    yield from ("```{list-table}", ":header-rows: 1", f":class: {title.lower()}", "")
    yield from cells_of([[name] for name in columns])
    for row in zip(*columns.values(), strict=True):
        yield from cells_of(row)
    yield "```"


NAMED = {"Parameters": "parameter", "Attributes": "attribute", "Returns": "name", "Raises": ""}
KINDS = {"Parameters": "type", "Attributes": "type", "Returns": "type", "Raises": "error"}


def cells_of(cells: Iterable[list[str]]) -> Iterator[str]:
    """Yield a row of a list-table: a list in a list."""
    lines = [line for first, *rest in cells for line in (f"  - {first}", *indented(rest))]
    yield from (f"* {line[2:]}" if i == 0 else line for i, line in enumerate(lines))


def indented(lines: Iterable[str]) -> Iterator[str]:
    yield from (f"    {line}".rstrip() for line in lines)


def with_code(kind: str) -> str:
    """Return a type with the classes of the library as code, which name_links makes links."""

    def code(name: re.Match[str]) -> str:
        is_public = name[0] in CLASSES or name[0].startswith("cfgd.")
        return f"`{name[0]}`" if is_public else name[0]

    return re.sub(r"[\w.]+", code, kind)


def default(row: Entry, given: dict[str, str]) -> str:
    """Return the defaults of an entry of the signature, once if they are equal."""
    found = [given.get(name.lstrip("*"), "") for name in row.names]
    return ", ".join(dict.fromkeys(each for each in found if each))


def defaults(found: Any) -> dict[str, str]:
    """Return the defaults in the signature of a function or class as the table has them."""
    return {name: default_of(each) for name, each in parameters(found).items()}


def default_of(parameter: inspect.Parameter) -> str:
    """Return the default as code, or "required"; what collects keywords has none."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return ""
    return "required" if parameter.default is parameter.empty else f"`{shown(parameter.default)}`"


def with_blocks(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with their examples as blocks of code: >>> would be a quotation."""
    inside = False
    for line in lines:
        starts = line.lstrip().startswith(">>>")
        if starts and not inside:
            yield "```pycon"
        elif inside and not line.strip():
            yield "```"
        inside = starts or (inside and bool(line.strip()))
        yield line
    if inside:
        yield "```"


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("public", Public)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
