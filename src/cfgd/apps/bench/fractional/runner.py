"""Tune every rule, run it on the test seeds, save each problem, and write the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cfgd._core.files import check_writable
from cfgd.apps.bench.fractional import engine
from cfgd.apps.bench.fractional.competitors import LBFGS, Competitor, Scale
from cfgd.apps.bench.fractional.problems import FractionalProblem, Instance
from cfgd.apps.bench.fractional.quasi_newton import run_lbfgs
from cfgd.apps.bench.fractional.report import FILES, write_report
from cfgd.apps.bench.fractional.saved import (
    FOLDER,
    ProblemResult,
    digest_of,
    key_of,
    load_results,
    problem_file,
)
from cfgd.apps.bench.fractional.scores import Judged, judged, score
from cfgd.apps.bench.progress import NoProgress, ProgressDisplay
from cfgd.apps.resumable import RunEnd, result_file

# Tuning seeds start here and test seeds at 0, so that no instance is used for both.
FIRST_TUNING_SEED = 1000


class FractionalPlan(NamedTuple):
    problems: Sequence[FractionalProblem]
    competitors: Sequence[Competitor]
    seeds: int
    tuning_seeds: int
    quick: bool

    @property
    def seeds_to_judge(self) -> range:
        """The test seeds, on which the rules are compared."""
        return range(self.seeds)

    @property
    def seeds_to_tune(self) -> range:
        """The tuning seeds, on which the hyperparameters are selected."""
        return range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + self.tuning_seeds)


class FractionalReport(NamedTuple):
    results: list[ProblemResult]
    end: RunEnd


def check_files(out: Path, plan: FractionalPlan) -> None:
    """Raise ValueError before the run if a file of the report could not be written."""
    files = [f"{FOLDER}/{result_file(problem_file(one))}" for one in plan.problems]
    check_writable(out, [*FILES, *files])


def run_plan(
    out: Path,
    plan: FractionalPlan,
    *,
    resume: bool = False,
    progress: ProgressDisplay | None = None,
) -> FractionalReport:
    """Run all problems and write `FILES` to `out`.

    Ctrl-C or a full disk ends the run; finished problems are saved. With `resume`, the results that
    an earlier run with the same settings has saved are reused, rule by rule.
    """
    progress = progress or NoProgress()
    saved = load_results(out, progress.warn) if resume else {}
    results: list[ProblemResult] = []
    end = RunEnd()
    with end.catch_write_error():
        with end.catch_interrupt():
            for problem in plan.problems:
                result, reused = _result(plan, problem, saved, progress)
                results.append(result)  # before saving, so that it is shown if this fails
                if not reused:
                    result.save(out)
                progress.finish(problem.name, reused)
        write_report(out, plan, results)
    return FractionalReport(results, end)


def _result(
    plan: FractionalPlan,
    problem: FractionalProblem,
    saved: dict[str, ProblemResult],
    progress: ProgressDisplay,
) -> tuple[ProblemResult, bool]:
    """Return the result of a problem, and whether all of it comes from an earlier run."""
    name, key = problem_file(problem), key_of(problem, plan.seeds, plan.tuning_seeds)
    before = saved.get(name)
    if before is None or before.key != key:
        before = ProblemResult(name, key, {}, {})
    digests = {one.name: digest_of(one) for one in plan.competitors} | {LBFGS: ""}
    rules = {
        rule: one
        for rule, one in before.rules.items()
        if before.digests.get(rule) == digests.get(rule)
    }
    missing = [one for one in plan.competitors if one.name not in rules]
    if not missing and LBFGS in rules:
        return dataclasses.replace(before, digests=digests, rules=rules), True
    to_tune = [problem.make(seed) for seed in plan.seeds_to_tune]
    to_judge = [problem.make(seed) for seed in plan.seeds_to_judge]
    scales = [engine.scale_of(problem, instance) for instance in (*to_tune, *to_judge)]
    for one in missing:
        progress.describe(f"{problem.name}: {one.name}")
        rules[one.name] = judge(problem, one, to_tune, to_judge, scales)
    if LBFGS not in rules:
        runs = [run_lbfgs(problem, instance) for instance in to_judge]
        minima = [instance.minimum for instance in to_judge]
        rules[LBFGS] = judged({}, 0.0, runs, minima, problem.accuracy)
    ordered = {rule: rules[rule] for rule in digests}
    return ProblemResult(name, key, digests, ordered), False


def judge(
    problem: FractionalProblem,
    one: Competitor,
    to_tune: Sequence[Instance],
    to_judge: Sequence[Instance],
    scales: Sequence[Scale],
) -> Judged:
    """Select the setting with the best median score on `to_tune`, and run it on `to_judge`.

    `scales` are those of `to_tune`, followed by those of `to_judge`.
    """
    pairs = [(s, i) for s in range(len(one.settings)) for i in range(len(to_tune))]
    with engine.precision(problem):
        rules = [one.make(scales[i], *one.settings[s]) for s, i in pairs]
    seeds = [FIRST_TUNING_SEED + i for _, i in pairs]
    runs = engine.run(problem, [to_tune[i] for _, i in pairs], rules, seeds)
    scores = score(runs, [to_tune[i].minimum for _, i in pairs], problem.accuracy)
    medians = np.median(scores.reshape(len(one.settings), len(to_tune)), axis=1)
    best = int(np.argmin(medians))
    setting = one.settings[best]
    with engine.precision(problem):
        rules = [one.make(scale, *setting) for scale in scales[len(to_tune) :]]
    out = engine.run(problem, to_judge, rules, range(len(to_judge)))
    each = [
        engine.Runs(out.values[i : i + 1], out.gradients, out.norms[i : i + 1])
        for i in range(len(to_judge))
    ]
    return judged(
        dict(zip(one.names, setting, strict=True)),
        float(medians[best]),
        each,
        [instance.minimum for instance in to_judge],
        problem.accuracy,
    )
