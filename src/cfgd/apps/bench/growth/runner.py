"""All measurements of growth, each in a new process, written to bench/growth.json and .png."""

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
from cfgd.apps.bench.growth.fresh_process import measure_in_fresh_process
from cfgd.apps.bench.growth.jobs import JOBS
from cfgd.apps.bench.growth.series import UPPER, Series
from cfgd.apps.bench.progress import progress_bar
from cfgd.apps.bench.speed.measure import ReportRow

OUT = Path("bench")
FILES = ("growth.json", "growth.png")
REPEATS = 5
HOW = (
    "CPU seconds on one core. The exponents are fitted by least squares to the logarithms of the "
    f"smallest times, and of memory, for sizes of at least {UPPER:g} times the largest one. Memory "
    "is the peak of a new process minus its memory after the imports."
)


def rows(out: Path = OUT, more: Sequence[Series] = ()) -> Iterator[ReportRow]:
    """Measure all jobs, write the files and yield the rows of the console.

    `more` are series that were measured elsewhere, e.g. over processes.
    """
    check_writable(out, FILES)
    series = [*measure_all(), *more]
    for one in series:
        yield from one.rows()
    write(out / FILES[0], json.dumps(json_safe(report(series)), indent=1))
    write(out / FILES[1], figure(series))
    yield ReportRow(f"exponents: over the upper decade; files: in {out}", " and ".join(FILES))


def measure_all() -> list[Series]:
    series = []
    total = sum(len(job.sizes) for job in JOBS.values())
    with progress_bar(Console(stderr=True), total) as progress:
        for name, job in JOBS.items():
            points = []
            for size in job.sizes:
                title = f"{name}, {size:,} {job.against}"
                progress.describe(title)
                points.append(measure_in_fresh_process(name, size, REPEATS))
                progress.finish(title, reused=False)
            series.append(make_series(name, points))
    return series


def make_series(name: str, points: Sequence[dict[str, Any]]) -> Series:
    job = JOBS[name]
    lists = {field: [point[field] for point in points] for field in ("least", "median", "bytes")}
    numbers = None if job.numbers is None else [float(job.numbers(size)) for size in job.sizes]
    sizes = [float(size) for size in job.sizes]
    return Series(name, job.against, job.fixed, sizes, **lists, numbers=numbers)


def report(series: Sequence[Series]) -> dict[str, Any]:
    return {
        "how": HOW,
        "date": datetime.date.today().isoformat(),
        "machine": describe_core(),
        "series": [one.as_dict() for one in series],
    }


def describe_core() -> str:
    """Return the processor, its number of cores, and the load of the machine."""
    info = Path("/proc/cpuinfo")
    match = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    name = platform.processor() if match is None else match[1].strip()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"one of {os.cpu_count()} cores of {name or 'an unknown processor'}{load}"
