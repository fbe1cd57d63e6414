"""Running experiments one after the other, keeping each as soon as it is finished."""

from __future__ import annotations

import base64
import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cfgd._core.files import NotWrittenError, check_writable, json_safe
from cfgd.apps.page.drawing import render
from cfgd.apps.reproduce.experiment import Experiment, Meter, Setting, Silent
from cfgd.apps.reproduce.experiments.catalogue import EXPERIMENTS
from cfgd.apps.reproduce.kept import Kept
from cfgd.apps.reproduce.report.part import Part, files_of
from cfgd.apps.reproduce.report.report import PAGE, RESULTS, versions, write_report
from cfgd.apps.reproduce.report.saved import saved_parts


@dataclasses.dataclass(frozen=True)
class Result:
    """What a call left behind: the page, the parts of this call, and what ended it early."""

    page: Path | None
    parts: tuple[Part, ...]
    interrupted: bool  # by Ctrl-C
    unwritten: NotWrittenError | None = None  # the last part is then in memory only, or in part


def reproduce(
    experiments: Sequence[Experiment],
    setting: Setting,
    folder: Path,
    *,
    resume: bool = False,
    meter_of: Callable[[Experiment], Meter] = lambda experiment: Silent(),
    finished: Callable[[Part, bool], None] = lambda part, reused: None,
    say: Callable[[str], None] = lambda said: None,
) -> Result:
    """Run the experiments and write the report into `folder` after each one.

    The page shows what earlier runs left in the folder too. Ctrl-C or a full disk ends the run
    and keeps the finished experiments. With `resume`, parts that an earlier run in the same
    setting finished are taken over. `finished` is told of each part, `say` of damaged ones.
    """
    names = [experiment.name for experiment in experiments]
    check_files(folder, names)
    shown = saved_parts(folder, say)
    check_files(folder, list(shown))
    parts: list[Part] = []
    page, interrupted, unwritten = None, False, None
    try:
        for experiment in experiments:
            part = shown.get(experiment.name) if resume else None
            reused = part is not None and part.key == key_of(experiment, setting)
            if part is None or not reused:
                kept = Kept(folder, experiment.name, key_of(experiment, setting))
                if not resume:
                    kept.clear()
                own = dataclasses.replace(setting, kept=kept)
                part = run_one(experiment, own, meter_of(experiment))
            parts.append(part)
            shown[part.name] = part
            if not reused:
                part.save(folder)
                Kept(folder, experiment.name, part.key).clear()
            page = write_report(folder, in_order(shown, names), described(setting))
            finished(part, reused)
    except KeyboardInterrupt:
        interrupted = True
    except NotWrittenError as error:
        unwritten = error
    return Result(page, tuple(parts), interrupted, unwritten)


def check_files(folder: Path, names: list[str]) -> None:
    """Find out before the run what is in the way of the report."""
    check_writable(folder, [PAGE, RESULTS, *files_of(names)])


def in_order(parts: dict[str, Part], names: list[str]) -> list[Part]:
    """As in the paper; those that it does not have, as they were asked for."""
    order = list(dict.fromkeys([*EXPERIMENTS, *sorted(parts.keys() - names), *names]))
    return sorted(parts.values(), key=lambda part: order.index(part.name))


def run_one(experiment: Experiment, setting: Setting, meter: Meter) -> Part:
    began = time.perf_counter()
    record = experiment.run(setting, meter)
    panels, png = render(experiment.name, experiment.panels, record.data)
    return Part(
        name=experiment.name,
        title=experiment.title,
        where=experiment.where,
        about=experiment.about,
        missing=experiment.missing,
        story=record.story,
        key=key_of(experiment, setting),
        outcomes=tuple(claim.judge(record.data) for claim in experiment.claims),
        parameters=json_safe(record.parameters),
        notes=record.notes,
        panels=tuple(
            tuple((panel.title, svg) for panel, svg in zip(row, drawn, strict=True))
            for row, drawn in zip(experiment.panels, panels, strict=True)
        ),
        picture=base64.b64encode(png).decode(),
        seconds=time.perf_counter() - began,
    )


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
