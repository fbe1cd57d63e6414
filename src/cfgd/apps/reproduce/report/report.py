"""The report: index.html, results.json and the figures, from the results of the experiments."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cfgd._core.files import json_safe, write
from cfgd.apps.reproduce.report.claim import VERDICTS, Outcome
from cfgd.apps.reproduce.report.conclusions import conclusions
from cfgd.apps.reproduce.report.page import page
from cfgd.apps.reproduce.report.result import ExperimentResult
from cfgd.apps.resumable import machine

PAGE, RESULTS = "index.html", "results.json"
PACKAGES = ("cfgd", "jax", "numpy", "scipy", "matplotlib")


def write_report(
    folder: Path, results: Sequence[ExperimentResult], setting: Mapping[str, Any]
) -> Path:
    """Write the page, `results.json` and the figures; return the path of the page."""
    for result in results:
        result.write_png(folder)
    outcomes = [outcome for result in results for outcome in result.outcomes]
    facts = {
        "setting": dict(setting),
        "versions": versions(),
        "seconds": round(sum(result.seconds for result in results), 1),
        "verdicts": count_verdicts([one for one in outcomes if not one.ours]),
        "verdicts on our own claims": count_verdicts([one for one in outcomes if one.ours]),
        "story": conclusions(results),
    }
    content = {**facts, "experiments": [_as_json(result) for result in results]}
    write(folder / RESULTS, json.dumps(content, indent=1, ensure_ascii=False))
    write(folder / PAGE, page(results, facts))
    return folder / PAGE


def count_verdicts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return how many outcomes have each verdict."""
    return {verdict: sum(one.verdict == verdict for one in outcomes) for verdict in VERDICTS}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages, and the machine."""
    packages = {package: importlib.metadata.version(package) for package in PACKAGES}
    return {"python": platform.python_version(), **packages, "machine": machine()}


def _as_json(result: ExperimentResult) -> Any:
    """Return an entry of results.json: without drawings, and with the names of that format."""
    entry = dataclasses.asdict(result)
    del entry["picture"]
    entry["panels"] = [[title for title, _ in row] for row in result.panels]
    entry["setting"] = entry.pop("key")  # results of runs with other settings may be in one report
    entry["story"] = entry.pop("conclusion")
    return json_safe(entry)
