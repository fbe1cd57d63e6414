"""Every block of Python in the README and in docs/ runs, and says what it is said to say."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {page.name: page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
SAYS = {
    "README.md": ["converged", "Converged"],
    "extending.md": ["converged [2. 2.]", "[-0.3    -0.2857 -0.2727]", "[35 31 28]"],
}


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.usefixtures("unchecked")  # as a user runs them
@pytest.mark.parametrize("name", [name for name in PAGES if blocks(PAGES[name])])
def test_the_blocks_run(name, capsys):
    names: dict = {"__name__": "__main__"}
    for block in blocks(PAGES[name]):
        if "import torch" not in block or find_spec("torch") is not None:  # is no part of `dev`
            exec(block, names)
    said = capsys.readouterr().out
    for words in SAYS[name]:
        assert words in said


def test_links_lead_somewhere():
    for page in PAGES.values():
        for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert link.startswith("http") or (page.parent / link).exists(), (page.name, link)


def test_the_map_names_files_that_are_there():
    text = PAGES["map.md"].read_text()
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", text)
    assert len(named) > 15
    for name in named:
        there = [
            (ROOT / "src/cfgd" / name).exists(),
            (ROOT / "src" / name).exists(),
            (ROOT / name).exists(),
        ]
        assert any(there), name
    assert 40 <= len(text.splitlines()) <= 60
