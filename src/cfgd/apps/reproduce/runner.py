"""Run experiments one after the other, save each result, and write the report."""

from __future__ import annotations

import base64
import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cfgd._core.files import check_writable, json_safe
from cfgd.apps.page.drawing import render
from cfgd.apps.reproduce.experiment import Experiment, Meter, Setting, SilentMeter
from cfgd.apps.reproduce.experiments.catalogue import EXPERIMENTS
from cfgd.apps.reproduce.report.report import PAGE, RESULTS, versions, write_report
from cfgd.apps.reproduce.report.result import ExperimentResult, load_results, result_files
from cfgd.apps.reproduce.run_cache import RunCache
from cfgd.apps.resumable import RunEnd, reuse_or_compute


@dataclasses.dataclass(frozen=True)
class ReproduceReport:
    """The page, the results of this call, and what ended it early.

    If a file could not be written, the last result may not be saved.
    """

    page: Path | None
    results: tuple[ExperimentResult, ...]
    end: RunEnd


def reproduce(
    experiments: Sequence[Experiment],
    setting: Setting,
    folder: Path,
    *,
    resume: bool = False,
    meter_for: Callable[[Experiment], Meter] = lambda experiment: SilentMeter(),
    on_finished: Callable[[ExperimentResult, bool], None] = lambda result, reused: None,
    warn: Callable[[str], None] = lambda text: None,
) -> ReproduceReport:
    """Run the experiments and write the report into `folder` after each one.

    The page also shows the results that earlier runs saved in the folder. Ctrl-C or a full disk
    ends the run; finished experiments are saved.

    Parameters
    ----------
    resume
        Whether to reuse the results that an earlier run with the same settings saved.
    meter_for
        Returns the progress meter of an experiment.
    on_finished
        Called with each result, and whether it was reused.
    warn
        Called with a sentence for each saved result that cannot be used.
    """
    names = [experiment.name for experiment in experiments]
    check_files(folder, names)
    saved = load_results(folder, warn)
    check_files(folder, list(saved))
    results: list[ExperimentResult] = []
    page, end = None, RunEnd()
    with end.catch_write_error(), end.catch_interrupt():
        for experiment in experiments:
            key = experiment_key(experiment, setting)
            cache = RunCache(folder, experiment.name, key)

            def compute(
                experiment: Experiment = experiment, cache: RunCache = cache
            ) -> ExperimentResult:
                if not resume:
                    cache.clear()
                own = dataclasses.replace(setting, run_cache=cache)
                return run_experiment(experiment, own, meter_for(experiment))

            result, reused = reuse_or_compute(
                saved if resume else {}, experiment.name, key, compute
            )
            results.append(result)
            saved[result.name] = result
            if not reused:
                result.save(folder)
                cache.clear()
            page = write_report(folder, in_paper_order(saved, names), describe_setting(setting))
            on_finished(result, reused)
    return ReproduceReport(page, tuple(results), end)


def check_files(folder: Path, names: list[str]) -> None:
    """Raise ValueError before the run if a file of the report could not be written."""
    check_writable(folder, [PAGE, RESULTS, *result_files(names)])


def in_paper_order(
    results: dict[str, ExperimentResult], names: list[str]
) -> list[ExperimentResult]:
    """Return the results in the order of the paper, others at the end in the order of `names`."""
    order = list(dict.fromkeys([*EXPERIMENTS, *sorted(results.keys() - names), *names]))
    return sorted(results.values(), key=lambda result: order.index(result.name))


def run_experiment(experiment: Experiment, setting: Setting, meter: Meter) -> ExperimentResult:
    """Run one experiment, check its claims and draw its figure."""
    began = time.perf_counter()
    record = experiment.run(setting, meter)
    panels, png = render(experiment.name, experiment.panels, record.data)
    return ExperimentResult(
        name=experiment.name,
        title=experiment.title,
        where=experiment.where,
        about=experiment.about,
        missing=experiment.missing,
        conclusion=record.conclusion,
        key=experiment_key(experiment, setting),
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


def describe_setting(setting: Setting) -> dict[str, Any]:
    """Return the setting as the page shows it."""
    seeds = "the default of each experiment" if setting.seeds is None else setting.seeds
    return {"size": setting.size, "seeds": seeds}


def experiment_key(experiment: Experiment, setting: Setting) -> dict[str, Any]:
    """Return the settings that must be equal for a saved result to be reused."""
    gas = setting.gas if experiment.needs_gas else None
    return {
        "size": setting.size,
        "seeds": setting.seeds,
        "data": None if gas is None else gas.digest,
        "version": versions()["cfgd"],
    }
