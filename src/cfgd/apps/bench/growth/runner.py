"""All measurements, each in a fresh process; what is found goes to bench/growth.json and .png."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from cfgd._core.files import check_writable, json_safe, write
from cfgd.apps.bench.growth.figure import figure
from cfgd.apps.bench.growth.jobs import JOBS
from cfgd.apps.bench.growth.one import in_fresh_process
from cfgd.apps.bench.growth.series import UPPER, Series
from cfgd.apps.bench.progress import watched
from cfgd.apps.bench.speed.measure import Row

OUT = Path("bench")
FILES = ("growth.json", "growth.png")
REPEATS = 5
HOW = (
    "Processor seconds on one core. Exponents by least squares in the logarithms of the least "
    f"times, and of memory, over the sizes from {UPPER:g} of the largest on. Memory is the most "
    "that a fresh process has taken beyond what it had after its imports."
)


def rows(out: Path = OUT, more: Sequence[Series] = ()) -> Iterator[Row]:
    """Measure, and say what was found; `more` is what was measured elsewhere, over processes."""
    check_writable(out, FILES)
    found = [*measured(), *more]
    for one in found:
        yield from one.rows()
    write(out / FILES[0], json.dumps(json_safe(report(found)), indent=1))
    write(out / FILES[1], figure(found))
    yield Row("exponents are those of the upper decade", " and ".join(FILES), f"in {out}")


def measured() -> list[Series]:
    found = []
    with watched(Console(stderr=True), sum(len(job.sizes) for job in JOBS.values())) as watch:
        for name, job in JOBS.items():
            points = []
            for size in job.sizes:
                watch.say(f"{name}, {size:,} {job.against}")
                points.append(in_fresh_process(name, size, REPEATS))
                watch.finished(f"{name}, {size:,} {job.against}", reused=False)
            found.append(series(name, points))
    return found


def series(name: str, points: Sequence[dict[str, Any]]) -> Series:
    job = JOBS[name]
    lists = {field: [point[field] for point in points] for field in ("least", "median", "bytes")}
    numbers = None if job.numbers is None else [float(job.numbers(size)) for size in job.sizes]
    sizes = [float(size) for size in job.sizes]
    return Series(name, job.against, job.fixed, sizes, **lists, numbers=numbers)


def report(found: Sequence[Series]) -> dict[str, Any]:
    return {
        "how": HOW,
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "series": [one.stored() for one in found],
    }


def machine() -> str:
    """Its processor, how many cores it has, and how busy they are."""
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    name = platform.processor() if named is None else named[1].strip()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"one of {os.cpu_count()} cores of {name or 'an unknown processor'}{load}"
