"""What is kept of a run: a part for each finished experiment, and what is made of the parts."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cfgd.reproduce.report.claim import VERDICTS, Outcome
from cfgd.reproduce.report.page import page

PARTS = "parts"
PACKAGES = ("cfgd", "jax", "numpy", "scipy", "matplotlib")


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
        part = Part(**saved)
    except (OSError, ValueError, TypeError, KeyError):
        return None  # missing, cut short, or of another version: run it again
    return part if part.key == key else None


def write_report(folder: Path, parts: Sequence[Part], setting: Mapping[str, Any]) -> Path:
    """`index.html` and `results.json` of the parts; returns the page."""
    facts = {
        "setting": dict(setting),
        "versions": versions(),
        "seconds": round(sum(part.seconds for part in parts), 1),
        "verdicts": count([outcome for part in parts for outcome in part.outcomes]),
    }
    results = {**facts, "experiments": [_plain(part) for part in parts]}
    write(folder / "results.json", json.dumps(results, indent=1, ensure_ascii=False))
    write(folder / "index.html", page(parts, facts))
    return folder / "index.html"


def count(outcomes: Sequence[Outcome]) -> dict[str, int]:
    return {verdict: sum(o.verdict == verdict for o in outcomes) for verdict in VERDICTS}


def versions() -> dict[str, str]:
    found = {package: importlib.metadata.version(package) for package in PACKAGES}
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {"python": platform.python_version(), **found, "machine": machine}


def plain(value: Any) -> Any:
    """Arrays and ranges as lists, for JSON; what is not finite as a word, since JSON has none."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | range):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def _plain(part: Part) -> Any:
    kept = dataclasses.asdict(part)
    del kept["panels"], kept["key"]
    kept["panels"] = [[title for title, _ in row] for row in part.panels]
    return plain(kept)


def write(path: Path, text: str) -> None:
    """All or nothing: an interrupted write leaves the file that was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(name, 0o644)
    os.replace(name, path)
