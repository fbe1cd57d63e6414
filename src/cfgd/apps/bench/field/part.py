"""What is kept of an instance as soon as it is measured, and read again by --resume."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cfgd import __version__
from cfgd._core.files import write
from cfgd.apps.bench.field.instance import Instance
from cfgd.apps.bench.field.standing import Run
from cfgd.apps.json_schema import (
    PARTS,
    between,
    listing,
    maybe,
    name,
    number,
    one_of,
    record,
    stored,
    text,
    truth,
    whole,
)

LONGEST = 1e9  # seconds


@dataclasses.dataclass(frozen=True)
class Part:
    """All solvers on an instance. `key` is the setting: a part is reused only in it."""

    name: str
    key: dict[str, Any]
    runs: tuple[Run, ...]
    seconds: float

    def save(self, folder: Path) -> None:
        write(folder / PARTS / f"{self.name}.json", json.dumps(dataclasses.asdict(self)))


def key_of(instance: Instance, quick: bool) -> dict[str, Any]:
    """What must be equal for a saved part to stand for a run."""
    return {
        "size": "quick" if quick else "full",
        "data": instance.data,
        "version": __version__,
        "machine": machine(),
    }


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def saved_parts(folder: Path, say: Callable[[str], None]) -> dict[str, Part]:
    """The parts that earlier runs left, by name; `say` is told of those that cannot be used."""
    return stored(folder, PART, say)


def files_of(names: list[str]) -> list[str]:
    """The files of these parts in the folder of the report."""
    return [f"{PARTS}/{name}.json" for name in names]


RUN = record(
    {
        "problem": text,
        "group": text,
        "unit": text,
        "solver": text,
        "seed": whole,
        "work": number,
        "seconds": number,
        "value": number,
        "solved": truth,
        "to_reference": number,
        "error": text,
        "digits": number,
        "dimension": whole,
    },
    Run,
)
KEY = record(
    {
        "size": one_of(("quick", "full")),
        "data": maybe(text),
        "version": text,
        "machine": text,
    }
)
PART = record(
    {"name": name, "key": KEY, "runs": listing(RUN), "seconds": between(0, LONGEST)}, Part
)
