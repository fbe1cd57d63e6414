"""The reference: public names with their signatures and docstrings, which are Markdown.

    ```{public} cfgd
    Solution: message summary
    Status
    ```

makes entries for `cfgd.Solution` with two of its members, and for `cfgd.Status`. The examples of a
docstring are shown unchanged; the tests run them.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

import cfgd


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
    yield from markdown(inspect.getdoc(found) or "")
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


def signature(found: Any) -> str:
    """Return the names and defaults of the parameters, without annotations."""
    enumerated = inspect.isclass(found) and hasattr(found, "__members__")
    if isinstance(found, property) or enumerated:
        return ""
    found = getattr(found, "__func__", found)
    given = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in inspect.signature(found).parameters.values()
        if each.name not in ("self", "cls")
    ]
    return str(inspect.Signature(given))


def sections(lines: list[str]) -> Iterator[str]:
    """Turn NumPy-style sections ("Parameters" over dashes) into bold headings over lists."""
    in_section = False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line and set(following) == {"-"} and len(following) >= len(line):
            in_section = True
            yield from (f"**{line}**", "")
        elif in_section and line and set(line) == {"-"}:
            continue
        elif not line:
            in_section = False
            yield line
        elif in_section and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            yield f"- `{names}` ({kind}):" if kind else f"- `{names}`:"
        else:
            yield line.removeprefix("  ") if in_section else line


def markdown(docstring: str) -> Iterator[str]:
    """Return the docstring with its examples as blocks of code: >>> would be a quotation."""
    inside = False
    for line in sections(docstring.splitlines()):
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
