"""What `cfgd explore` does: write the page and open it."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from cfgd._core.files import check_writable, printable, write
from cfgd.apps.explore.page import page


def show_explorer(console: Console, path: Path, opens: bool) -> int:
    check_writable(path.parent, [path.name])
    write(path, page())
    said = escape(printable(str(path)))
    console.print(f"The explorer is in {said}.", highlight=False, soft_wrap=True)
    if opens and not _opened(path):
        console.print("There is no browser here that could open it: open the file in one.")
    return 0


def _opened(path: Path) -> bool:
    try:
        return webbrowser.open(path.resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False
