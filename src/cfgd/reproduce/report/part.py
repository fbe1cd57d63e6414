"""What is kept of an experiment as soon as it is finished."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cfgd.output import write
from cfgd.reproduce.report.claim import Outcome

PARTS = "parts"


@dataclasses.dataclass(frozen=True)
class Part:
    """A finished experiment in plain data. `key` is the setting: a part is reused only in it."""

    name: str
    title: str
    where: str
    about: str
    key: dict[str, Any]
    outcomes: tuple[Outcome, ...]
    parameters: dict[str, Any]
    notes: tuple[str, ...]
    panels: tuple[tuple[tuple[str, str], ...], ...]  # rows of (title, SVG)
    seconds: float

    def save(self, folder: Path) -> None:
        write(folder / PARTS / f"{self.name}.json", json.dumps(dataclasses.asdict(self)))


def saved_part(folder: Path, name: str, key: Mapping[str, Any]) -> Part | None:
    """The part that an earlier run left, if it was made in the same setting."""
    try:
        saved = json.loads((folder / PARTS / f"{name}.json").read_text(encoding="utf-8"))
        saved["outcomes"] = tuple(Outcome.read(outcome) for outcome in saved["outcomes"])
        saved["notes"] = tuple(saved["notes"])
        saved["panels"] = tuple(tuple((*panel,) for panel in row) for row in saved["panels"])
        part = Part(**saved)
    except (OSError, ValueError, TypeError, KeyError):
        return None  # missing, cut short, or of another version: run it again
    return part if part.key == key else None
