"""The parts that earlier runs of `cfgd reproduce` left."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

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
from cfgd.apps.reproduce.report.part import PNG, Part
from cfgd.apps.reproduce.report.svg import check_svg

LONGEST = 1e9  # seconds


def saved_parts(folder: Path, say: Callable[[str], None]) -> dict[str, Part]:
    """By name; `say` is told of those that cannot be used."""
    return stored(folder, PART, say)


def seeds(value: Any, place: str) -> int | None:
    if value is None or (type(value) is int and value >= 1):
        return value
    raise wrong(place, "null or a number of seeds", value)


def panel(value: Any, place: str) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise wrong(place, "a title and an SVG", value)
    title, svg = (text(entry, f"{place}[{i}]") for i, entry in enumerate(value))
    try:
        check_svg(svg)
    except ValueError as error:
        raise ValueError(f"{place}[1] {error}") from None
    return title, svg


def picture(value: Any, place: str) -> str:
    try:
        raw = base64.b64decode(text(value, place), validate=True)
    except ValueError:
        raw = b""
    if not raw.startswith(PNG):
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
KEY = record({"size": one_of(get_args(Size)), "seeds": seeds, "data": maybe(text), "version": text})
PART = record(
    {
        "name": name,
        "title": text,
        "where": text,
        "about": text,
        "missing": text,
        "story": text,
        "key": KEY,
        "outcomes": listing(OUTCOME),
        "parameters": parameters,
        "notes": listing(text),
        "panels": listing(listing(panel)),
        "picture": picture,
        "seconds": between(0, LONGEST),
    },
    Part,
)
