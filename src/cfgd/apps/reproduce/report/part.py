"""What is kept of an experiment as soon as it is finished."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

from cfgd._core.files import write
from cfgd.apps.json_schema import PARTS
from cfgd.apps.reproduce.report.claim import Outcome

PNG = b"\x89PNG\r\n\x1a\n"  # how such a file begins


@dataclasses.dataclass(frozen=True)
class Part:
    """A finished experiment in plain data. `key` is the setting: a part is reused only in it."""

    name: str
    title: str
    where: str
    about: str
    missing: str  # what the paper does not give
    story: str  # the outcome in a sentence
    key: dict[str, Any]
    outcomes: tuple[Outcome, ...]
    parameters: dict[str, Any]
    notes: tuple[str, ...]
    panels: tuple[tuple[tuple[str, str], ...], ...]  # rows of (title, SVG)
    picture: str  # all panels in one PNG, as base64: it can be had again without a run
    seconds: float

    def save(self, folder: Path) -> None:
        write(folder / PARTS / f"{self.name}.json", json.dumps(dataclasses.asdict(self)))

    def draw(self, folder: Path) -> None:
        """The PNG file, if it is not there as it should be."""
        path, raw = folder / f"{self.name}.png", base64.b64decode(self.picture)
        with contextlib.suppress(OSError):
            if path.read_bytes() == raw:
                return
        write(path, raw)


def files_of(names: list[str]) -> list[str]:
    """The files of these parts in the folder of the report."""
    return [f"{name}.png" for name in names] + [f"{PARTS}/{name}.json" for name in names]
