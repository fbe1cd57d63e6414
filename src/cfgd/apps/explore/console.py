"""`cfgd explore`: write the page and open it in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from cfgd._core.files import check_writable, printable, write
from cfgd.apps.explore.page import page


def show_explorer(path: Path, open_browser: bool) -> int:
    """Write the explorer to a file and, if asked to, open it; return the exit code."""
    check_writable(path.parent, [path.name])
    write(path, page())
    print(f"The explorer is in {printable(str(path))}.")
    if open_browser and not _open_in_browser(path):
        print("No browser could be started: open the file in a browser.")
    return 0


def _open_in_browser(path: Path) -> bool:
    """Return whether a browser could be started."""
    try:
        return webbrowser.open(path.resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False
