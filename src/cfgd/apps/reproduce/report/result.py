"""The result of an experiment: its file is written when it is finished, and read by later runs."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from cfgd._core.files import write
from cfgd.apps.json_schema import (
    between,
    listing,
    maybe,
    name,
    number,
    one_of,
    parameters,
    record,
    stored,
    text,
    truth,
    whole,
    wrong,
)
from cfgd.apps.reproduce.experiment import Size
from cfgd.apps.reproduce.report.claim import VERDICTS, Case, Outcome
from cfgd.apps.reproduce.report.svg import check_svg
from cfgd.apps.resumable import MAX_SECONDS, result_file, save_result

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"  # the first bytes of a PNG file


@dataclasses.dataclass(frozen=True)
class ExperimentResult:
    """A finished experiment in plain data. `key` holds the settings of the run."""

    name: str
    title: str
    where: str
    about: str
    missing: str  # what the paper does not give
    conclusion: str  # the outcome in a sentence
    key: dict[str, Any]
    outcomes: tuple[Outcome, ...]
    parameters: dict[str, Any]
    notes: tuple[str, ...]
    panels: tuple[tuple[tuple[str, str], ...], ...]  # rows of (title, SVG)
    picture: str  # all panels in one PNG, as base64, so that the file can be restored without a run
    seconds: float

    def save(self, folder: Path) -> None:
        save_result(folder, self.name, dataclasses.asdict(self))

    def write_png(self, folder: Path) -> None:
        """Write the PNG file unless it is up to date."""
        path, raw = folder / f"{self.name}.png", base64.b64decode(self.picture)
        with contextlib.suppress(OSError):
            if path.read_bytes() == raw:
                return
        write(path, raw)


def result_files(names: list[str]) -> list[str]:
    """Return the files of these results, relative to the folder of the report."""
    return [f"{name}.png" for name in names] + [result_file(name) for name in names]


def load_results(folder: Path, warn: Callable[[str], None]) -> dict[str, ExperimentResult]:
    """Return the results that earlier runs saved, by name; `warn` is called for unusable files."""
    return stored(folder, RESULT, warn)


def _seeds(value: Any, place: str) -> int | None:
    if value is None or (type(value) is int and value >= 1):
        return value
    raise wrong(place, "null or a number of seeds", value)


def _panel(value: Any, place: str) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise wrong(place, "a title and an SVG", value)
    title, svg = (text(entry, f"{place}[{i}]") for i, entry in enumerate(value))
    try:
        check_svg(svg)
    except ValueError as error:
        raise ValueError(f"{place}[1] {error}") from None
    return title, svg


def _picture(value: Any, place: str) -> str:
    try:
        raw = base64.b64decode(text(value, place), validate=True)
    except ValueError:
        raw = b""
    if not raw.startswith(PNG_SIGNATURE):
        raise wrong(place, "a PNG file in base64", value)
    return str(value)


CASE = record({"name": text, "median": number, "hits": whole, "count": whole, "holds": truth}, Case)
OUTCOME = record(
    {
        "says": text,
        "where": text,
        "wanted": text,
        "values": listing(number),
        "median": number,
        "fraction": between(0, 1),
        "verdict": one_of(VERDICTS),
        "why": text,
        "cases": listing(CASE),
    },
    Outcome,
)
KEY = record(
    {"size": one_of(get_args(Size)), "seeds": _seeds, "data": maybe(text), "version": text}
)
RESULT = record(
    {
        "name": name,
        "title": text,
        "where": text,
        "about": text,
        "missing": text,
        "conclusion": text,
        "key": KEY,
        "outcomes": listing(OUTCOME),
        "parameters": parameters,
        "notes": listing(text),
        "panels": listing(listing(_panel)),
        "picture": _picture,
        "seconds": between(0, MAX_SECONDS),
    },
    ExperimentResult,
)
