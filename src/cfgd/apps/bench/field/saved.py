"""The saved result of an instance: written when it is measured, read by --resume."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cfgd import __version__
from cfgd.apps.bench.field.instance import Instance, SolverRun, TracePoint
from cfgd.apps.json_schema import (
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
from cfgd.apps.resumable import MAX_SECONDS, machine, save_result


@dataclasses.dataclass(frozen=True)
class InstanceResult:
    """The runs of all solvers on an instance. `key` holds the settings of the run."""

    name: str
    key: dict[str, Any]
    runs: tuple[SolverRun, ...]
    seconds: float

    def save(self, folder: Path) -> None:
        save_result(folder, self.name, dataclasses.asdict(self))


def instance_key(instance: Instance, quick: bool) -> dict[str, Any]:
    """Return the settings that must be equal for a saved result to be reused."""
    return {
        "size": "quick" if quick else "full",
        "data": instance.data,
        "version": __version__,
        "machine": machine(),
    }


def load_results(folder: Path, warn: Callable[[str], None]) -> dict[str, InstanceResult]:
    """Return the results that earlier runs saved, by name; `warn` is called for unusable files."""
    return stored(folder, RESULT, warn)


TRACE_POINT = record({"seconds": number, "value": number, "error": number}, TracePoint)
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
        "status": text,
        "relative_error": number,
        "history": listing(TRACE_POINT),
    },
    SolverRun,
)
KEY = record(
    {
        "size": one_of(("quick", "full")),
        "data": maybe(text),
        "version": text,
        "machine": text,
    }
)
RESULT = record(
    {"name": name, "key": KEY, "runs": listing(RUN), "seconds": between(0, MAX_SECONDS)},
    InstanceResult,
)
