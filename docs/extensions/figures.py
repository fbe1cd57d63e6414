"""The directive `drawn`: figures that the build draws, for the light and the dark theme.

    ```{drawn} momentum
    ```

inserts the figure of `figures/momentum.py`, which defines `PANELS`, rows of
`cfgd.apps.page.drawing.Panel`, and `data()`, whose result the panels draw. In the page its colours
are CSS variables, as in the project's reports.
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
from extensions.build_cache import BUILD, LIBRARY, cache_key

FIGURES = Path(__file__).parents[1] / "figures"
PROCESSES: list[subprocess.Popen[bytes]] = []  # that draw figures in the background


class Drawn(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        (name,) = self.arguments
        script = FIGURES / f"{name}.py"
        if not script.exists():
            raise self.error(f"There is no figure {script}.")
        self.env.note_dependency(str(script))
        for process in PROCESSES:
            process.wait()
        return [nodes.raw("", drawn_file(script).read_text(encoding="utf-8"), format="html")]


def drawn_file(script: Path) -> Path:
    """Return the file with the figure, which is drawn unless it is cached."""
    path = cached_path(script)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(drawn(script), encoding="utf-8")
    return path


def cached_path(script: Path) -> Path:
    """Return where the figure is cached."""
    text, page = script.read_text(encoding="utf-8"), FIGURES.parent / f"{script.stem}.md"
    if page.exists():  # a figure may draw a table of the page of its name
        text += page.read_text(encoding="utf-8")
    return BUILD / "figures" / f"{script.stem}-{cache_key(text)}.html"


def drawn(script: Path) -> str:
    """Return the figure of a script as HTML: its panels side by side, with their titles."""
    made = runpy.run_path(str(script))
    rows = svgs(script.stem, made["PANELS"], made["data"]())
    titled = [
        [(panel.title, svg) for panel, svg in zip(panels, row, strict=True)]
        for panels, row in zip(made["PANELS"], rows, strict=True)
    ]
    return f'<div class="drawn">{figures(titled)}</div>'


def draw_in_background(app: Any) -> None:
    """Draw in a separate process, while the scripts of the gallery run."""
    if not all(cached_path(script).exists() for script in FIGURES.glob("*.py")):
        path = os.pathsep.join([str(FIGURES.parent), str(LIBRARY.parent)])
        command = [sys.executable, "-m", "extensions.figures"]
        PROCESSES.append(subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}))


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("drawn", Drawn)
    app.connect("builder-inited", draw_in_background, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    for each in sorted(FIGURES.glob("*.py")):
        drawn_file(each)
