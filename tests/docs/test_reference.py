"""The reference has every public name, and every name an example that runs."""

import doctest
import importlib
import inspect
import re
import sys
from importlib.util import find_spec

import pytest
from blocks import DOCS

import cfgd
from cfgd import Status

pytestmark = pytest.mark.every_case

sys.path.insert(0, str(DOCS))

PUBLIC = re.compile(r"^```\{public\} (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MODULES = {name for name in cfgd.__all__ if inspect.ismodule(getattr(cfgd, name))}
# what `make test` may have to do without
OPTIONAL = [f"cfgd.integrations.{name}" for name in ("torch", "lmfit") if not find_spec(name)]
INTEGRATIONS = [
    name
    for name in ("scipy", "sklearn", "optax", "torch", "lmfit")
    if f"cfgd.integrations.{name}" not in OPTIONAL
]


def listed():
    """Return the names on the pages of the reference, by module."""
    found = {}
    for page in (DOCS / "reference").glob("*.md"):
        for module, entries in PUBLIC.findall(page.read_text(encoding="utf-8")):
            for entry in entries.split("\n"):
                name = entry.partition(":")[0].strip()
                if name:
                    found.setdefault(module, []).append(name)
    return found


def own(module):
    """Return the public names that a module defines itself."""
    return {
        name
        for name, each in vars(module).items()
        if not name.startswith("_")
        and getattr(each, "__module__", "") == module.__name__
        and getattr(each, "__name__", name) == name  # no alias
    }


def test_every_public_name_has_an_entry():
    names = listed()
    assert sorted(names["cfgd"]) == sorted(set(cfgd.__all__) - MODULES)
    assert {f"cfgd.{name}" for name in MODULES} <= set(names)
    assert sorted(names["cfgd.theory"]) == sorted(cfgd.theory.__all__)
    assert set(names["cfgd.terminal"]) == own(cfgd.terminal)
    # what checks, and what lays out, is for the solver
    assert set(names["cfgd.order"]) == own(cfgd.order) - {"alpha_and_beta", "Stage"}
    assert set(names["cfgd.settings"]) == {"number", "table", "point", "points"}
    assert set(names["cfgd.zoo"]) == set(cfgd.zoo.__all__)
    for name in INTEGRATIONS:
        module = importlib.import_module(f"cfgd.integrations.{name}")
        assert sorted(names[module.__name__]) == sorted(module.__all__)


ENTRIES = [
    (module, name) for module, names in listed().items() for name in names if module not in OPTIONAL
]


each_entry = pytest.mark.parametrize(
    ("module", "name"), ENTRIES, ids=[".".join(each) for each in ENTRIES]
)


@each_entry
def test_an_entry_has_an_example(module, name):
    inside = module.removeprefix("cfgd.")
    holder = getattr(cfgd, inside) if inside in cfgd.__all__ else importlib.import_module(module)
    docstring = inspect.getdoc(getattr(holder, name))
    assert doctest.DocTestParser().get_examples(docstring), f"{module}.{name} has no example"


@pytest.mark.slow
@each_entry
def test_an_entry_can_be_rendered(module, name):
    from extensions.public import markdown, module_of, signature

    found = getattr(module_of(module), name)
    docstring = inspect.getdoc(found)
    text = "\n".join(markdown(docstring))
    assert text.count("```") % 2 == 0
    assert signature(found).count("(") == signature(found).count(")")
    assert "0x" not in signature(found)  # no address of an object


def test_modules_that_are_public_have_an_example():
    for name in MODULES:
        assert ">>>" in getattr(cfgd, name).__doc__


@pytest.mark.slow
def test_examples_are_blocks_and_not_quotations():
    from extensions.public import markdown

    text = "One line.\n\n>>> 1 + 1\n2\n\nMore.\n\n    d = g\n\n>>> 3\n3"
    middle = "```pycon\n>>> 1 + 1\n2\n```\n\nMore.\n\n    d = g"
    wanted = f"One line.\n\n{middle}\n\n```pycon\n>>> 3\n3\n```\n"
    assert "\n".join(markdown(text)) == wanted


@pytest.mark.slow
def test_numpy_sections_are_tables():
    from extensions.public import markdown

    def found(a, b, c=0.5, **others):
        pass

    text = (
        "One.\n\nParameters\n----------\na, b : Quadratic\n    Two.\n    More.\n"
        "c : float, default 0.5\n    Three.\n**others\n\nReturns\n-------\nfloat\n    Four.\n\n"
        "Raises\n------\nValueError\n    Five.\n\nExamples\n--------\n>>> 1\n1"
    )
    wanted = [
        *("One.", "", "**Parameters**", ""),
        *("```{list-table}", ":header-rows: 1", ":class: parameters", ""),
        *("* - parameter", "  - type", "  - default", "  - meaning"),
        *("* - `a`, `b`", "  - `Quadratic`", "  - required", "  - Two.", "    More."),
        *("* - `c`", "  - float", "  - `0.5`", "  - Three."),
        *("* - `**others`", "  - ", "  - ", "  - ", "```", ""),
        *(
            "**Returns**",
            "",
            "```{list-table}",
            ":header-rows: 1",
            ":class: returns",
            "",
        ),
        *("* - type", "  - meaning", "* - float", "  - Four.", "```", ""),
        *(
            "**Raises**",
            "",
            "```{list-table}",
            ":header-rows: 1",
            ":class: raises",
            "",
        ),
        *("* - error", "  - meaning", "* - ValueError", "  - Five.", "```", ""),
        *("**Examples**", "", "```pycon", ">>> 1", "1", "```", ""),
    ]
    assert list(markdown(text, found)) == wanted


def test_every_status_is_on_the_page_of_messages():
    text = (DOCS / "messages.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (\w+)$", text, re.MULTILINE)
    assert sorted(headings) == sorted(status.name for status in Status)
    for status in Status:
        section = re.search(rf"^## {status.name}$(.*?)(?=^## )", text, re.DOTALL | re.MULTILINE)[1]
        shown = section.rpartition("```text\n")[2]
        assert status.name in section.partition("```text")[2] or status.value[:40] in shown
        if status not in (Status.converged, Status.callback, Status.running):
            assert "**Cause:**" in section
            assert "**Remedy:**" in section
