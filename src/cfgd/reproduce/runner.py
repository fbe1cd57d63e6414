"""Running experiments one after the other, keeping each as soon as it is finished."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cfgd.output import check_writable, plain
from cfgd.reproduce.experiment import Experiment, Meter, Setting, Silent
from cfgd.reproduce.report.drawing import render
from cfgd.reproduce.report.part import Part, saved_part
from cfgd.reproduce.report.report import versions, write_report


@dataclasses.dataclass(frozen=True)
class Result:
    """What a call left behind: the page, its parts, and whether Ctrl-C ended it."""

    page: Path | None
    parts: tuple[Part, ...]
    interrupted: bool


def reproduce(
    experiments: Sequence[Experiment],
    setting: Setting,
    folder: Path,
    *,
    resume: bool = False,
    meter_of: Callable[[Experiment], Meter] = lambda experiment: Silent(),
    finished: Callable[[Part, bool], None] = lambda part, reused: None,
) -> Result:
    """Run the experiments and write the report into `folder` after each one.

    Ctrl-C ends the running experiment and keeps the finished ones. With `resume`, parts that an
    earlier run in the same setting finished are taken over. `finished` is told of each part.
    """
    check_writable(folder)
    parts: list[Part] = []
    page, interrupted = None, False
    for experiment in experiments:
        key = key_of(experiment, setting)
        part = saved_part(folder, experiment.name, key) if resume else None
        reused = part is not None
        try:
            part = part or run_one(experiment, setting, folder, meter_of(experiment))
        except KeyboardInterrupt:
            interrupted = True
            break
        parts.append(part)
        page = write_report(folder, parts, described(setting))
        finished(part, reused)
    return Result(page, tuple(parts), interrupted)


def run_one(experiment: Experiment, setting: Setting, folder: Path, meter: Meter) -> Part:
    began = time.perf_counter()
    record = experiment.run(setting, meter)
    panels = render(
        experiment.name, experiment.panels, record.data, folder / f"{experiment.name}.png"
    )
    part = Part(
        name=experiment.name,
        title=experiment.title,
        where=experiment.where,
        about=experiment.about,
        key=key_of(experiment, setting),
        outcomes=tuple(claim.judge(record.data) for claim in experiment.claims),
        parameters=plain(record.parameters),
        notes=record.notes,
        panels=tuple(
            tuple((panel.title, svg) for panel, svg in zip(row, drawn, strict=True))
            for row, drawn in zip(experiment.panels, panels, strict=True)
        ),
        seconds=time.perf_counter() - began,
    )
    part.save(folder)
    return part


def described(setting: Setting) -> dict[str, Any]:
    seeds = "as each experiment has them" if setting.seeds is None else setting.seeds
    return {"size": setting.size, "seeds": seeds}


def key_of(experiment: Experiment, setting: Setting) -> dict[str, Any]:
    """What must be equal for a saved part to stand for a run."""
    gas = setting.gas if experiment.needs_gas else None
    return {
        "size": setting.size,
        "seeds": setting.seeds,
        "data": None if gas is None else gas.digest,
        "version": versions()["cfgd"],
    }
