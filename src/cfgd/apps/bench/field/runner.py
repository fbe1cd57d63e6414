"""Run the instances one after the other, save each result, and write the report."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax

from cfgd._core.files import check_writable, json_safe, write
from cfgd.apps.bench.field.cases import TARGET
from cfgd.apps.bench.field.claims import check_claims
from cfgd.apps.bench.field.instance import Instance, SolverRun
from cfgd.apps.bench.field.pinn_figure import write_error_figure
from cfgd.apps.bench.field.profiles import write_figure
from cfgd.apps.bench.field.saved import InstanceResult, instance_key, load_results
from cfgd.apps.bench.field.summary import summarize
from cfgd.apps.bench.progress import NoProgress, ProgressDisplay
from cfgd.apps.resumable import RunEnd, machine, result_file, reuse_or_compute

FILES = ("bench.json", "bench.png", "bench.svg", "pinn.png", "pinn.svg")


class BenchReport(NamedTuple):
    runs: list[SolverRun]
    end: RunEnd


def check_files(folder: Path, instances: Sequence[Instance]) -> None:
    """Raise ValueError before the run if a file of the report could not be written."""
    check_writable(folder, [*FILES, *(result_file(one.name) for one in instances)])


def run_instances(
    out: Path,
    instances: Sequence[Instance],
    *,
    quick: bool,
    resume: bool = False,
    progress: ProgressDisplay | None = None,
) -> BenchReport:
    """Measure all instances and write `FILES` to `out`.

    Ctrl-C or a full disk ends the run; finished results are saved. With `resume`, the results that
    an earlier run with the same settings has saved are reused.
    """
    progress = progress or NoProgress()
    saved = load_results(out, progress.warn) if resume else {}
    runs: list[SolverRun] = []
    end = RunEnd()
    with end.catch_write_error():
        with end.catch_interrupt():
            for instance in instances:
                key = instance_key(instance, quick)
                measure = partial(_measure, instance, key, progress)
                result, reused = reuse_or_compute(saved, instance.name, key, measure)
                runs += result.runs  # before saving, so that they are shown if this fails
                if not reused:
                    result.save(out)
                progress.finish(instance.title, reused)
        _write_json(out / "bench.json", runs, quick)
        write_figure(runs, out)
        write_error_figure(runs, out)
    return BenchReport(runs, end)


def _measure(instance: Instance, key: dict[str, Any], progress: ProgressDisplay) -> InstanceResult:
    began = time.perf_counter()
    runs = instance.measure(lambda solver: progress.describe(f"{instance.title}: {solver}"))
    return InstanceResult(instance.name, key, tuple(runs), time.perf_counter() - began)


def _write_json(path: Path, runs: list[SolverRun], quick: bool) -> None:
    data = {
        "machine": {"processor": machine(), "jax": jax.__version__},
        "size": "quick" if quick else "full",
        "target": TARGET,
        "claims": check_claims(runs),
        "table": [dataclasses.asdict(one) for one in summarize(runs)],
        "runs": [dataclasses.asdict(run) for run in runs],
    }
    write(path, json.dumps(json_safe(data, not_finite=lambda _: None), indent=1) + "\n")
