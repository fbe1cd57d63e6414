"""`cfgd explore`: write the page and open it in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from cfgd._core.files import check_writable, printable, write
from cfgd.apps.explore.page import page


def show_explorer(console: Console, path: Path, open_browser: bool) -> int:
    """Write the explorer to a file and, if asked to, open it; return the exit code."""
    check_writable(path.parent, [path.name])
    write(path, page())
    shown_path = escape(printable(str(path)))
    console.print(f"The explorer is in {shown_path}.", highlight=False, soft_wrap=True)
    if open_browser and not _open_in_browser(path):
        console.print("No browser could be started: open the file in a browser.")
    return 0


def _open_in_browser(path: Path) -> bool:
    """Return whether a browser could be started."""
    try:
        return webbrowser.open(path.resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False
