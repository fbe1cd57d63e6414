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
    "Every rule has the same number of settings, {settings} ({size}). Each setting is run on "
    "{tuning} tuning seeds ({tuning_seeds}); the one with the best median is judged on {count} "
    "other seeds ({seeds}). A seed decides the data of quadratics, random least squares and "
    "logistic regressions, and elsewhere the start and the minibatches. Work is counted in "
    "gradients; second derivatives count as the gradients that they cost. A number is the median "
    "of the gradients until f\u00a0-\u00a0f* is at most the accuracy times f(x0)\u00a0-\u00a0f*, "
    "with the smallest and the largest in brackets; where most seeds do not get there, it is the "
    "median of the part of f(x0)\u00a0-\u00a0f* that is left, as a power of ten. Two rules are "
    "equal on a problem within a factor of {equal:g} in gradients, or of {equal_gap:g} in what is "
    "left."
)


def write_report(out: Path, plan: Any, results: Sequence[ProblemResult]) -> None:
    """Write `FILES` for the finished problems."""
    comparison = Comparison.of(plan.problems, plan.competitors, results)
    conclusions = sentences(comparison)
    how = how_it_was_made(plan)
    data = f"{FILES[2]} and {FILES[3]}, with all seeds and settings"
    write(out / FILES[0], page(comparison, plan.competitors, conclusions, how, data))
    write(out / FILES[1], markdown(comparison, plan.competitors, conclusions, how))
    write(out / FILES[2], as_csv(comparison))
    everything = as_dict(comparison, plan, conclusions, how)
    write(out / FILES[3], json.dumps(json_safe(everything, not_finite=lambda _: None)) + "\n")


def how_it_was_made(plan: Any) -> str:
    """Return the paragraph on settings, seeds and numbers."""
    return HOW.format(
        settings=len(plan.competitors[0].settings),
        size="--quick, a third of the rates" if plan.quick else f"{RATES} rates times {OTHERS}",
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
    """Return all results with what made them, for JSON."""
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
