"""The explorer as a file of the site, explore.html."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cfgd.apps.explore import page


def write(app: Any, error: Exception | None) -> None:
    if error is None:
        (Path(app.outdir) / "explore.html").write_text(page(), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", write, priority=100)  # before the links are checked
    return {"parallel_read_safe": True, "parallel_write_safe": True}
