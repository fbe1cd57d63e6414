"""The pages as the tests read them: blocks of code, and the output that is shown below them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDERS = (DOCS, DOCS / "guides", DOCS / "how", DOCS / "reference")  # the gallery is built
PAGES = {
    "README.md": ROOT / "README.md",
    **{
        str(page.relative_to(DOCS)): page
        for folder in FOLDERS
        for page in sorted(folder.glob("*.md"))
    },
}
FENCE = re.compile(r"^```(\S+)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str


def blocks(page):
    return [Block(*found) for found in FENCE.findall(page.read_text(encoding="utf-8"))]


def with_output(page):
    """Yield each block of Python with the block of text below it, its output, or None."""
    found = blocks(page)
    for i, block in enumerate(found):
        if block.language == "python":
            under = found[i + 1] if i + 1 < len(found) else Block("", "")
            yield block.text, under.text if under.language == "text" else None


def commands(page):
    """Yield the arguments of each line of a shell block that calls cfgd."""
    for block in blocks(page):
        if block.language in ("shell", "sh"):
            for line in block.text.splitlines():
                words = line.partition("#")[0].split()
                if words[:1] == ["cfgd"]:
                    yield words[1:]
