"""Figures that the build draws, as pictures that follow the light and the dark theme.

    ```{drawn} momentum
    ```

stands for `figures/momentum.py`, which has `PANELS`, rows of `cfgd.apps.page.drawing.Panel`, and
`data()`, what they draw. In the page its colours are variables, as in the project's reports.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from cfgd.apps.page.document import figures
from cfgd.apps.page.drawing import svgs
from extensions.kept import BUILD, LIBRARY, key

FIGURES = Path(__file__).parents[1] / "figures"
DRAWING: list[subprocess.Popen[bytes]] = []  # what draws ahead


class Drawn(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        (name,) = self.arguments
        script = FIGURES / f"{name}.py"
        if not script.exists():
            raise self.error(f"There is no figure {script}.")
        self.env.note_dependency(str(script))
        for process in DRAWING:
            process.wait()
        return [nodes.raw("", keep(script).read_text(encoding="utf-8"), format="html")]


def keep(script: Path) -> Path:
    """The file with the figure, drawn now or before."""
    path = kept(script)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(drawn(script), encoding="utf-8")
    return path


def kept(script: Path) -> Path:
    text, page = script.read_text(encoding="utf-8"), FIGURES.parent / f"{script.stem}.md"
    if page.exists():  # a figure may draw what the page of its name says
        text += page.read_text(encoding="utf-8")
    return BUILD / "figures" / f"{script.stem}-{key(text)}.html"


def drawn(script: Path) -> str:
    """The figure of a script as HTML: its panels with their titles, side by side."""
    made = runpy.run_path(str(script))
    rows = svgs(script.stem, made["PANELS"], made["data"]())
    titled = [
        [(panel.title, svg) for panel, svg in zip(panels, row, strict=True)]
        for panels, row in zip(made["PANELS"], rows, strict=True)
    ]
    return f'<div class="drawn">{figures(titled)}</div>'


def ahead(app: Any) -> None:
    """Draw in a process of its own, while the scripts of the gallery run."""
    if not all(kept(script).exists() for script in FIGURES.glob("*.py")):
        path = os.pathsep.join([str(FIGURES.parent), str(LIBRARY.parent)])
        command = [sys.executable, "-m", "extensions.drawn"]
        DRAWING.append(subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}))


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("drawn", Drawn)
    app.connect("builder-inited", ahead, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    for each in sorted(FIGURES.glob("*.py")):
        keep(each)
