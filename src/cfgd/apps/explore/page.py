"""Bundle the files of the explorer into one HTML page that needs no server and no network."""

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
ENTRY = "main.js"


def page() -> str:
    """Return the page as HTML.

    >>> text = page()
    >>> text.startswith("<!doctype html>"), "http://" in text, "https://" in text
    (True, False, False)
    """
    folder = files("cfgd.apps.explore") / "files"
    script = bundle(folder)
    colours = {"LIGHT": _variables(LIGHT), "DARK": _variables(DARK)}
    style = _text(folder, "style.css")
    for theme, variables in colours.items():
        style = style.replace(f"/* {theme} */", variables)
    # the content security policy lets the browser run this script and nothing else; a saved map
    # has its contours as an image in it
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    policy += f"script-src 'sha256-{digest}'"
    parts = {"POLICY": policy, "STYLE": style, "SCRIPT": script}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _text(folder, "index.html"))


def bundle(folder: Traversable, entry: str = ENTRY) -> str:
    """Return the JavaScript modules as one script, with a block for each after those it imports.

    A module assigns its exports to `files["path"]`, and an import of it becomes
    `const { names } = files["path"]`. A cycle of imports raises a `ValueError`.
    """
    blocks: dict[str, str] = {}

    def add(path: str, importers: tuple[str, ...]) -> None:
        if path in importers:
            raise ValueError(f"{path} imports itself: {' imports '.join([*importers, path])}.")
        if path in blocks:
            return
        text = _text(folder, path)
        for _, name in IMPORT.findall(text):
            add(_resolve(path, name), (*importers, path))
        rewrite = functools.partial(_rewrite_import, path)
        names = ", ".join(name for _, name in EXPORT.findall(text))
        text = EXPORT.sub(r"\1 \2", IMPORT.sub(rewrite, text)).strip()
        blocks[path] = f'// {path}\n{{\n{text}\nfiles["{path}"] = {{ {names} }};\n}}\n'

    add(entry, ())
    return "const files = {};\n" + "\n".join(blocks.values())


def _rewrite_import(path: str, found: re.Match[str]) -> str:
    return f'const {{{found[1]}}} = files["{_resolve(path, found[2])}"];\n'


def _resolve(path: str, name: str) -> str:
    """Return the path of the module that another one imports as "./name" or "../name".

    >>> _resolve("method/run.js", "../formula/tape.js")
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
    """Return colours as CSS variables."""
    return " ".join(f"--{name}: {code};" for name, code in colours.items())
