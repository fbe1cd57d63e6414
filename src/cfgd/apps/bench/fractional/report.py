"""The files of the comparison: a page with figures, tables in Markdown, and the data."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from cfgd import __version__
from cfgd._core.files import json_safe, write
from cfgd.apps.bench.fractional.competitors import OTHERS, RATES
from cfgd.apps.bench.fractional.conclusions import Comparison, sentences
from cfgd.apps.bench.fractional.page import page
from cfgd.apps.bench.fractional.saved import ProblemResult
from cfgd.apps.bench.fractional.scores import EQUAL, EQUAL_GAP
from cfgd.apps.bench.fractional.tables import as_csv, markdown
from cfgd.apps.resumable import machine

FILES = ("fractional.html", "fractional.md", "fractional.csv", "fractional.json")
HOW = (
    "Every rule is run with the same number of hyperparameter settings, {settings} ({size}). The "
    "setting with the best median score on {tuning} tuning seeds ({tuning_seeds}) is then run on "
    "{count} test seeds ({seeds}). The seed determines the data of the quadratics, the random "
    "least-squares problems and the logistic regressions; on the other problems it determines the "
    "initial point and the minibatches. Cost is counted in gradient evaluations; a second "
    "derivative counts as the number of gradients that it costs. The relative gap is "
    "(f\u00a0-\u00a0f*) / (f(x0)\u00a0-\u00a0f*), where f* is the minimum. An entry of a table is "
    "the median number of gradients until the relative gap is at most the target, with minimum and "
    'maximum over the seeds in parentheses; "never" means that the target was not reached within '
    "the budget. If most seeds miss the target, the entry is the median of the smallest relative "
    "gap instead, as a power of ten. Two rules are equal on a problem if their gradient counts "
    "differ by at most a factor of {equal:g} or, where both miss the target, their relative gaps "
    "by at most a factor of {equal_gap:g}."
)
FULL_SIZE = f"{RATES} learning rates times {OTHERS} settings of the other hyperparameters"


def write_report(out: Path, plan: Any, results: Sequence[ProblemResult]) -> None:
    """Write `FILES` for the finished problems."""
    comparison = Comparison.of(plan.problems, plan.competitors, results)
    conclusions = sentences(comparison)
    how = how_it_was_made(plan)
    data = f"{FILES[2]} and {FILES[3]}: the results of each seed, the hyperparameters, the curves"
    write(out / FILES[0], page(comparison, plan.competitors, conclusions, how, data))
    write(out / FILES[1], markdown(comparison, plan.competitors, conclusions, how))
    write(out / FILES[2], as_csv(comparison))
    everything = as_dict(comparison, plan, conclusions, how)
    write(out / FILES[3], json.dumps(json_safe(everything, not_finite=lambda _: None)) + "\n")


def how_it_was_made(plan: Any) -> str:
    """Return the paragraph on hyperparameter settings, seeds and the entries of the tables."""
    return HOW.format(
        settings=len(plan.competitors[0].settings),
        size="--quick: a third of the learning rates" if plan.quick else FULL_SIZE,
        tuning=plan.tuning_seeds,
        tuning_seeds=", ".join(map(str, plan.seeds_to_tune)),
        count=plan.seeds,
        seeds=", ".join(map(str, plan.seeds_to_judge)),
        equal=EQUAL,
        equal_gap=EQUAL_GAP,
    )


def as_dict(
    comparison: Comparison, plan: Any, conclusions: Sequence[str], how: str
) -> dict[str, Any]:
    """Return all results with the settings of the run, for JSON."""
    return {
        "version": __version__,
        "machine": {"processor": machine(), "jax": jax.__version__},
        "size": "quick" if plan.quick else "full",
        "how": how,
        "seeds": list(plan.seeds_to_judge),
        "tuning_seeds": list(plan.seeds_to_tune),
        "sentences": conclusions,
        "grids": {
            one.name: {"names": one.names, "settings": one.settings} for one in plan.competitors
        },
        "problems": [
            {
                "name": p.name,
                "group": p.group,
                "what": p.what,
                "gradients": p.gradients,
                "accuracy": p.accuracy,
                "batch": p.batch,
                "rules": {k: dataclasses.asdict(v) for k, v in comparison.results[p.name].items()},
            }
            for p in comparison.problems
        ],
    }
