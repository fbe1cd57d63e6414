"""Train every optimizer on every problem, save each result, and write the report."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from cfgd._core.files import check_writable, json_safe, write
from cfgd.apps.bench.progress import NoProgress, ProgressDisplay
from cfgd.apps.bench.training.comparison import (
    OptimizerSummary,
    conclusions,
    gamma_lag_ratios,
    summarize,
)
from cfgd.apps.bench.training.optimizers import Optimizer
from cfgd.apps.bench.training.problem import TrainingProblem
from cfgd.apps.bench.training.report import COST_NOTE, markdown
from cfgd.apps.bench.training.saved import (
    FOLDER,
    TrainingResult,
    load_results,
    result_name,
    training_key,
)
from cfgd.apps.bench.training.trainer import Curves, Trainer
from cfgd.apps.resumable import RunEnd, machine, result_file, reuse_or_compute

FILES = ("training.json", "training.md")


class TrainingPlan(NamedTuple):
    problems: Sequence[TrainingProblem]
    optimizers: Sequence[Optimizer]
    rates: tuple[float, ...]
    seeds: int
    quick: bool

    @property
    def runs(self) -> int:
        return len(self.problems) * len(self.optimizers)


class TrainingReport(NamedTuple):
    summaries: list[OptimizerSummary]
    end: RunEnd


def check_files(out: Path, plan: TrainingPlan) -> None:
    """Raise ValueError before the run if a file of the report could not be written."""
    names = [result_name(p, o) for p in plan.problems for o in plan.optimizers]
    check_writable(out, [*FILES, *(f"{FOLDER}/{result_file(name)}" for name in names)])


def run_plan(
    out: Path,
    plan: TrainingPlan,
    *,
    resume: bool = False,
    progress: ProgressDisplay | None = None,
) -> TrainingReport:
    """Train all optimizers on all problems and write `FILES` to `out`.

    Ctrl-C or a full disk ends the run; finished results are saved. With `resume`, the results that
    an earlier run with the same settings has saved are reused.
    """
    progress = progress or NoProgress()
    saved = load_results(out, progress.warn) if resume else {}
    curves: list[Curves] = []
    end = RunEnd()
    with end.catch_write_error():
        with end.catch_interrupt():
            for problem in plan.problems:
                _train_problem(out, plan, problem, saved, curves, progress)
        _write_report(out, plan, summarize(curves))
    return TrainingReport(summarize(curves), end)


def _train_problem(
    out: Path,
    plan: TrainingPlan,
    problem: TrainingProblem,
    saved: dict[str, TrainingResult],
    curves: list[Curves],
    progress: ProgressDisplay,
) -> None:
    """Append the curves of every optimizer on a problem to `curves`."""
    trainer, results = Trainer(problem, plan.seeds), []
    key = training_key(problem, plan.seeds, plan.rates)
    for optimizer in plan.optimizers:
        name, title = result_name(problem, optimizer), f"{problem.name}: {optimizer.name}"

        def train(name: str = name, optimizer: Optimizer = optimizer) -> TrainingResult:
            progress.describe(f"{problem.name}: {optimizer.name}")
            return TrainingResult(name, key, trainer.curves(optimizer, plan.rates))

        result, reused = reuse_or_compute(saved, name, key, train)
        curves.append(result.curves)  # before saving, so that they are shown if this fails
        if not reused:
            result.save(out)
        results.append(result)
        progress.finish(title, reused)
    if not all(result.curves.timed for result in results):
        progress.describe(f"{problem.name}: timing of a step")
        curves[-len(results) :] = _time_steps(out, trainer, results)


def _time_steps(out: Path, trainer: Trainer, results: list[TrainingResult]) -> list[Curves]:
    """Time all optimizers of a problem in turns, and save their results with these times."""
    seconds = trainer.seconds([result.curves.optimizer for result in results])
    timed = [
        dataclasses.replace(
            result, curves=dataclasses.replace(result.curves, seconds=of_step, timed=True)
        )
        for result, of_step in zip(results, seconds, strict=True)
    ]
    for result in timed:
        result.save(out)
    return [result.curves for result in timed]


def _write_report(out: Path, plan: TrainingPlan, summaries: list[OptimizerSummary]) -> None:
    data: dict[str, Any] = {
        "machine": {"processor": machine(), "jax": jax.__version__},
        "size": "quick" if plan.quick else "full",
        "seeds": plan.seeds,
        "rates": plan.rates,
        "counted": COST_NOTE,
        "problems": [
            {"name": one.name, "what": one.what, "steps": one.steps, "batch": one.batch}
            for one in plan.problems
        ],
        "conclusions": conclusions(summaries),
        "pairs": [
            dataclasses.asdict(one) | {"mean": one.mean} for one in gamma_lag_ratios(summaries)
        ],
        "table": [
            dataclasses.asdict(one) | {"optimizer": one.optimizer.name, "cost": one.optimizer.cost}
            for one in summaries
        ],
    }
    write(out / FILES[0], json.dumps(json_safe(data, not_finite=lambda _: None), indent=1) + "\n")
    write(out / FILES[1], markdown(plan.problems, summaries, plan.seeds))
