"""All instances one after the other, each kept as soon as it is measured."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax

from cfgd._core.files import NotWrittenError, check_writable, json_safe, write
from cfgd.apps.bench.field.cases import TARGET
from cfgd.apps.bench.field.instance import Instance, Say
from cfgd.apps.bench.field.part import Part, files_of, key_of, machine, saved_parts
from cfgd.apps.bench.field.profiles import figure
from cfgd.apps.bench.field.standing import Run, table
from cfgd.apps.bench.field.verdicts import verdicts

FILES = ("bench.json", "bench.png", "bench.svg")


class Report(NamedTuple):
    runs: list[Run]
    interrupted: bool
    unwritten: NotWrittenError | None = None


def check_files(folder: Path, instances: Sequence[Instance]) -> None:
    """Find out before the run what is in the way of the report."""
    check_writable(folder, [*FILES, *files_of([one.name for one in instances])])


def run(
    out: Path,
    instances: Sequence[Instance],
    *,
    quick: bool,
    resume: bool = False,
    say: Callable[[Instance, str], None] = lambda instance, what: None,
    finished: Callable[[Instance, bool], None] = lambda instance, reused: None,
    warn: Say = lambda said: None,
) -> Report:
    """Measure all and write `FILES` to `out`; Ctrl-C or a full disk keeps what is finished.

    With `resume`, instances that an earlier run in the same setting finished are taken over.
    `say` is told what is going on, `finished` of each instance, `warn` of damaged files.
    """
    saved = saved_parts(out, warn) if resume else {}
    runs: list[Run] = []
    interrupted, unwritten = False, None
    try:
        try:
            for instance in instances:
                part, key = saved.get(instance.name), key_of(instance, quick)
                reused = part is not None and part.key == key
                if part is None or not reused:
                    began = time.perf_counter()
                    found = instance.measure(lambda what, one=instance: say(one, what))  # type: ignore[misc]
                    part = Part(instance.name, key, tuple(found), time.perf_counter() - began)
                    runs += part.runs  # even if they cannot be written
                    part.save(out)
                else:
                    runs += part.runs
                finished(instance, reused)
        except KeyboardInterrupt:
            interrupted = True
        _write(out / "bench.json", runs, quick)
        figure(runs, out)
    except NotWrittenError as error:
        unwritten = error
    return Report(runs, interrupted, unwritten)


def _write(path: Path, runs: list[Run], quick: bool) -> None:
    data = {
        "machine": {"processor": machine(), "jax": jax.__version__},
        "size": "quick" if quick else "full",
        "target": TARGET,
        "verdicts": verdicts(runs),
        "table": [dataclasses.asdict(standing) for standing in table(runs)],
        "runs": [dataclasses.asdict(run) for run in runs],
    }
    write(path, json.dumps(json_safe(data, not_finite=lambda _: None), indent=1) + "\n")
