"""The gallery: a page for each script under examples/gallery/, with what it draws and prints.

A script begins with a docstring whose first line is its title, prints a few lines, and saves its
figure to the path that it is given. It is run again only if its text or the library has changed;
its output is cached in build/gallery. The pages are written to docs/gallery/, which git ignores.
"""

from __future__ import annotations

import ast
import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

from extensions.build_cache import BUILD, LIBRARY, cache_key

ROOT = Path(__file__).parents[2]
PICTURES = (".png", ".gif", ".svg")
LONGEST = 1800  # seconds that a script may take, on a machine that is busy
INTRODUCTION = """\
Short programs, each with one figure: copy one and change it. The figures, and what is printed
below them, were made by the build of these pages.
"""


@dataclasses.dataclass(frozen=True)
class Example:
    """A script of the gallery with its title, text, figures and printed lines."""

    script: Path
    title: str
    about: str
    folder: Path  # with its pictures
    printed: str

    @property
    def made(self) -> list[Path]:
        return sorted(each for each in self.folder.iterdir() if each.name != PRINTED)

    @property
    def has_colour_map(self) -> bool:
        return "cmap" in self.script.read_text(encoding="utf-8")

    @property
    def pictures(self) -> list[Path]:
        return [each for each in self.made if each.suffix in PICTURES]


PRINTED = "printed.txt"


def run(script: Path, cache: Path) -> Example:
    """Return the output of a script, which is run unless it is cached."""
    text = script.read_text(encoding="utf-8")
    title, _, about = (ast.get_docstring(ast.parse(text)) or "").partition("\n")
    if not title:
        raise ExtensionError(f"{script} must begin with a docstring: its first line is the title.")
    folder = cache / f"{script.stem}-{cache_key(text)}"
    if not (folder / PRINTED).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        printed = _printed(script, folder / f"{script.stem}.png")
        (folder / PRINTED).write_text(printed, encoding="utf-8")
    printed = (folder / PRINTED).read_text(encoding="utf-8")
    example = Example(script, title.rstrip("."), about.strip(), folder, printed)
    if not example.pictures:
        shutil.rmtree(folder)
        raise ExtensionError(f"{script} must save a figure to the path it is given.")
    return example


def _printed(script: Path, picture: Path) -> str:
    path = os.pathsep.join([str(LIBRARY.parent), os.environ.get("PYTHONPATH", "")])
    # run it as a user does: without the XLA flags of the build
    env = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, str(script), str(picture)],
        capture_output=True,
        text=True,
        timeout=LONGEST,
        env={**env, "MPLBACKEND": "Agg", "PYTHONPATH": path},
    )
    if done.returncode != 0:
        raise ExtensionError(f"{script} failed:\n{done.stderr}")
    return done.stdout


def page(example: Example, folder: Path) -> Iterator[str]:
    """Yield the Markdown of the page of an example, to be written into `folder`."""
    yield f"# {example.title}\n\n{example.about}\n"
    for made in example.made:
        alt = example.title.replace("]", "")
        if made.suffix in PICTURES:
            yield f":::{{container}} {classes('picture', example)}\n![{alt}]({made.name})\n:::\n"
        else:
            yield f"[Open {made.name}]({made.name})\n"
    if example.printed.strip():
        yield f"It prints:\n\n```text\n{example.printed.rstrip()}\n```\n"
    script = os.path.relpath(example.script, folder)
    yield f"```{{literalinclude}} {script}\n:language: python\n```\n"
    yield f"{{download}}`{example.script.name} <{script}>`\n"


def classes(name: str, example: Example) -> str:
    """Return the classes of a picture: the dark theme keeps the colours of a colour map."""
    return f"{name} colour-map" if example.has_colour_map else name


def index(examples: Sequence[Example]) -> Iterator[str]:
    """Yield the Markdown of the page with a figure of each example."""
    yield f"# Gallery\n\n{INTRODUCTION}\n::::{{container}} thumbnails\n"
    for example in examples:
        picture, name = example.pictures[0].name, example.script.stem
        yield f":::{{container}} {classes('thumbnail', example)}\n[![]({picture})]({name}.md)\n"
        yield f"[{example.title}]({name}.md)\n:::\n"
    yield "::::\n\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def write(scripts: Sequence[Path], folder: Path, cache: Path) -> None:
    """Write all pages into `folder`, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    with ThreadPoolExecutor(2) as pool:
        examples = list(pool.map(lambda script: run(script, cache), scripts))
    folder.mkdir(parents=True)
    for example in examples:
        for made in example.made:
            shutil.copy(made, folder / made.name)
        text = "\n".join(page(example, folder))
        (folder / f"{example.script.stem}.md").write_text(text, encoding="utf-8")
    (folder / "index.md").write_text("\n".join(index(examples)), encoding="utf-8")


def make(app: Any) -> None:
    scripts = sorted((ROOT / "examples" / "gallery").glob("*.py"))
    write(scripts, Path(app.srcdir) / "gallery", BUILD / "gallery")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", make)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
