"""The page of the explorer: its files joined into one that needs no server and no network."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from importlib.resources import files
from importlib.resources.abc import Traversable

from cfgd.apps.page.drawing import DARK, LIGHT

IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (const|function|class) (\w+)", re.MULTILINE)
FIRST = "main.js"


def page() -> str:
    """The whole page, as it is written to a file or shown in a site.

    >>> text = page()
    >>> text.startswith("<!doctype html>"), "http://" in text, "https://" in text
    (True, False, False)
    """
    folder = files("cfgd.apps.explore") / "files"
    script = joined(folder)
    colours = {"LIGHT": _variables(LIGHT), "DARK": _variables(DARK)}
    style = _text(folder, "style.css")
    for theme, variables in colours.items():
        style = style.replace(f"/* {theme} */", variables)
    # the browser runs this script and nothing else, whatever might slip into the page
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    parts = {"POLICY": policy, "STYLE": style, "SCRIPT": script}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _text(folder, "index.html"))


def joined(folder: Traversable, first: str = FIRST) -> str:
    """The modules as one script: a block for each, after those that it imports.

    An import becomes `const { names } = files["path"]`, and what a module exports is put there.
    """
    blocks: dict[str, str] = {}

    def add(path: str, above: tuple[str, ...]) -> None:
        if path in above:
            raise ValueError(f"{path} imports itself: {' imports '.join([*above, path])}.")
        if path in blocks:
            return
        text = _text(folder, path)
        for _, name in IMPORT.findall(text):
            add(_beside(path, name), (*above, path))
        take = functools.partial(_taken, path)
        names = ", ".join(name for _, name in EXPORT.findall(text))
        text = EXPORT.sub(r"\1 \2", IMPORT.sub(take, text)).strip()
        blocks[path] = f'// {path}\n{{\n{text}\nfiles["{path}"] = {{ {names} }};\n}}\n'

    add(first, ())
    return "const files = {};\n" + "\n".join(blocks.values())


def _taken(path: str, found: re.Match[str]) -> str:
    return f'const {{{found[1]}}} = files["{_beside(path, found[2])}"];\n'


def _beside(path: str, name: str) -> str:
    """The path that a module means by "./name" or "../name".

    >>> _beside("method/run.js", "../formula/tape.js")
    'formula/tape.js'
    """
    parts = path.split("/")[:-1]
    for part in name.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _text(folder: Traversable, path: str) -> str:
    return folder.joinpath(*path.split("/")).read_text(encoding="utf-8")


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {code};" for name, code in colours.items())
