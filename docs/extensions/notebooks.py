"""Six guides as Jupyter notebooks, written from the same Markdown as the pages.

The site has them in notebooks/, and each of these pages begins with a link to its notebook. Without
Sphinx: `python docs/extensions/notebooks.py FOLDER` writes them into a folder.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
GUIDES = ("curve", "many", "linear-model", "function", "network", "scikit-learn")
FENCE = re.compile(r"^(`{3,})(\S*)[^\n]*\n(.*?)^\1$\n?", re.DOTALL | re.MULTILINE)
INSTALL = """\
This notebook is the page docs/guides/{name}.md of cfgd. From a copy of the source, \
`pip install '.[plot,sklearn,xarray,dask]'` installs all that the guides need.
"""


def notebook(page: Path) -> dict[str, Any]:
    """Return the notebook of a page, in version 4.5 of the format."""
    cells = [_markdown(INSTALL.format(name=page.stem)), *_cells(page.read_text(encoding="utf-8"))]
    for i, cell in enumerate(cells):
        cell["id"] = f"{page.stem}-{i}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cells(text: str) -> Iterator[dict[str, Any]]:
    """Yield the cells of a page; figures that the site draws are left out."""
    code, position = None, 0
    for block in FENCE.finditer(text):
        between, position = text[position : block.start()], block.end()
        language, content = block[2], block[3]
        if between.strip() or language != "text":
            if code is not None:
                yield code
                code = None
            if between.strip():
                yield _markdown(between)
        if language == "python":
            code = _code(content)
        elif language == "text" and code is not None:
            code["outputs"] = [{"output_type": "stream", "name": "stdout", "text": _lines(content)}]
        elif not language.startswith("{"):
            yield _markdown(block[0])
    if code is not None:
        yield code
    if text[position:].strip():
        yield _markdown(text[position:])


def _code(text: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": _lines(text),
    }


def _markdown(text: str) -> dict[str, Any]:
    """Return a cell of text, without the links to other pages, which a notebook does not have."""
    text = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", text)
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _lines(text: str) -> list[str]:
    return text.strip("\n").splitlines(keepends=True)


def write(folder: Path) -> None:
    """Write the notebook of each guide into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in GUIDES:
        text = json.dumps(notebook(DOCS / "guides" / f"{name}.md"), indent=1, ensure_ascii=False)
        (folder / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")


def add_link(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    folder, _, name = page.rpartition("/")
    if folder == "guides" and name in GUIDES and "body" in context:
        link = f'<a href="../notebooks/{name}.ipynb" download>this page as a notebook</a>'
        heading, end, rest = context["body"].partition("</h1>")
        context["body"] = f'{heading}{end}<p class="notebook">Jupyter: {link}</p>{rest}'


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", add_link)
    app.connect("build-finished", _finish, priority=100)  # before the links are checked
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _finish(app: Any, error: Exception | None) -> None:
    if error is None:
        write(Path(app.outdir) / "notebooks")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
