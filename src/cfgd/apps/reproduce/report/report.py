"""The report: what is made of the parts of a run."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cfgd._core.files import json_safe, write
from cfgd.apps.reproduce.report.claim import VERDICTS, Outcome
from cfgd.apps.reproduce.report.page import page
from cfgd.apps.reproduce.report.part import Part
from cfgd.apps.reproduce.report.story import story

PAGE, RESULTS = "index.html", "results.json"
PACKAGES = ("cfgd", "jax", "numpy", "scipy", "matplotlib")


def write_report(folder: Path, parts: Sequence[Part], setting: Mapping[str, Any]) -> Path:
    """`index.html`, `results.json` and the figures of the parts; returns the page."""
    for part in parts:
        part.draw(folder)
    facts = {
        "setting": dict(setting),
        "versions": versions(),
        "seconds": round(sum(part.seconds for part in parts), 1),
        "verdicts": count([o for part in parts for o in part.outcomes if not o.ours]),
        "verdicts on rows of ours": count([o for part in parts for o in part.outcomes if o.ours]),
        "story": story(parts),
    }
    results = {**facts, "experiments": [_plain(part) for part in parts]}
    write(folder / RESULTS, json.dumps(results, indent=1, ensure_ascii=False))
    write(folder / PAGE, page(parts, facts))
    return folder / PAGE


def count(outcomes: Sequence[Outcome]) -> dict[str, int]:
    return {verdict: sum(o.verdict == verdict for o in outcomes) for verdict in VERDICTS}


def versions() -> dict[str, str]:
    found = {package: importlib.metadata.version(package) for package in PACKAGES}
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {"python": platform.python_version(), **found, "machine": machine}


def _plain(part: Part) -> Any:
    kept = dataclasses.asdict(part)
    del kept["panels"], kept["picture"]
    kept["setting"] = kept.pop("key")  # parts of other runs may stand beside those of this one
    kept["panels"] = [[title for title, _ in row] for row in part.panels]
    return json_safe(kept)
