"""The tables of the comparison, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np

from cfgd.apps.bench.fractional.competitors import Competitor
from cfgd.apps.bench.fractional.conclusions import DESCENT, Comparison
from cfgd.apps.bench.fractional.problems import FractionalProblem
from cfgd.apps.bench.fractional.scores import Judged, median_solved

RESULTS = ("gradients", "gap", "last_gap", "gradient_norm")
COLUMNS = ("problem", "group", "rule", "seed", *RESULTS, "setting")
GRIDS = (
    "The learning rates form geometric sequences. For rules that multiply the gradient, the "
    "learning rates and lambda are in units of 1/L, where L is the largest eigenvalue of the "
    "Hessian at the initial point. For Adam and the rules based on it (7 in Adam and 13) the "
    "learning rate is the length of a step in each coordinate and is not scaled."
)
SUMMARY = (
    "rule",
    "problems solved",
    "problems better / equal / worse than gradient descent",
    "most similar baseline",
)
PROBLEMS = ("problem", "description")
HYPERPARAMETERS = ("rule", "hyperparameter values")


def as_csv(comparison: Comparison) -> str:
    """Return one row for each problem, rule and seed."""
    buffer = io.StringIO()
    rows = csv.writer(buffer, lineterminator="\n")
    rows.writerow(COLUMNS)
    for p in comparison.problems:
        for rule, one in comparison.results[p.name].items():
            setting = " ".join(f"{name}={value:.6g}" for name, value in one.setting.items())
            for seed, solved in enumerate(one.solved):
                gradients = "" if solved is None else f"{solved:g}"
                numbers = (one.gaps[seed], one.ends[seed], one.norms[seed])
                shown = [f"{value:.6g}" for value in numbers]
                rows.writerow([p.name, p.group, rule, seed, gradients, *shown, setting])
    return buffer.getvalue()


def cell(one: Judged) -> str:
    """Return a result as text: gradients with minimum and maximum, or a power of ten."""
    middle = median_solved(one)
    if middle is not None:
        each = [np.inf if n is None else n for n in one.solved]
        high = "never" if np.isinf(max(each)) else f"{max(each):.0f}"
        return f"{middle:.0f} ({min(each):.0f} to {high})"
    exponent = f"{np.log10(np.median(one.gaps)):.1f}".replace("-", "−")
    return f"10<sup>{exponent}</sup>"


def summary_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return a row of the columns `SUMMARY` for each rule and baseline."""
    rows: list[tuple[str, ...]] = []
    for name in (*comparison.rules, *comparison.baselines):
        count = comparison.count(name, DESCENT)
        baseline, equal = comparison.nearest(name)
        problems = f"{equal} problem{'' if equal == 1 else 's'}"
        similar = f"{baseline} ({problems})" if equal else "none"
        near = similar if name in comparison.rules else ""
        signs = f"{count.better} / {count.equal} / {count.worse}"
        rows.append((name, _solved(comparison, name), signs, near))
    return rows


def _solved(comparison: Comparison, rule: str) -> str:
    """Return the number of problems on which the median seed reaches the target."""
    found = [median_solved(by[rule]) is not None for by in comparison.results.values()]
    return f"{sum(found)} of {len(found)}"


def problem_rows(comparison: Comparison) -> list[tuple[str, str]]:
    """Return each problem with its description."""
    return [(p.name, p.what) for p in comparison.problems]


def grid_rows(competitors: Sequence[Competitor]) -> list[tuple[str, str]]:
    """Return each competitor with the values of its hyperparameters."""
    rows = []
    for one in competitors:
        columns = zip(*one.settings, strict=True)
        values = [list(dict.fromkeys(column)) for column in columns]
        shown = [f"{name}: {_values(v)}" for name, v in zip(one.names, values, strict=True)]
        rows.append((one.name, "; ".join(shown)))
    return rows


def _values(values: Sequence[float]) -> str:
    """Return up to four values as a list, more by their number and range."""
    if len(values) <= 4:
        return ", ".join(f"{v:.3g}" for v in values)
    return f"{len(values)} from {min(values):.3g} to {max(values):.3g}"


def accuracy_and_budget(problems: Sequence[FractionalProblem]) -> str:
    """Return the target and the budget of a group; all of its problems have the same."""
    first = problems[0]
    text = f"Target: relative gap at most {first.accuracy:g}. Budget: {first.gradients} gradients"
    if first.batch is None:
        return f"{text}."
    return (
        f"{text} of minibatches. L-BFGS evaluates gradients on all training data; each counts as "
        "(rows of the data) / (rows of a minibatch) gradients."
    )


def groups(problems: Sequence[FractionalProblem]) -> dict[str, list[FractionalProblem]]:
    """Return the problems by group."""
    found: dict[str, list[FractionalProblem]] = {}
    for problem in problems:
        found.setdefault(problem.group, []).append(problem)
    return found


def capitalised(text: str) -> str:
    """Return the text with a capital first letter, as in a heading."""
    return text[:1].upper() + text[1:]


def markdown(
    comparison: Comparison, competitors: Sequence[Competitor], conclusions: Sequence[str], how: str
) -> str:
    """Return the summary sentences and the tables as Markdown."""
    lines = [f"{i}. {sentence}" for i, sentence in enumerate(conclusions, 1)]
    lines += ["", how, "", *_table(SUMMARY, summary_rows(comparison))]
    for group, problems in groups(comparison.problems).items():
        head = ["rule", *(p.name for p in problems)]
        rows = [
            [rule, *(cell(comparison.results[p.name][rule]) for p in problems)]
            for rule in (*comparison.rules, *comparison.baselines)
        ]
        lines += [
            "",
            f"## {capitalised(group)}",
            "",
            accuracy_and_budget(problems),
            "",
            *_table(head, rows),
        ]
    lines += ["", "## Problems", "", *_table(PROBLEMS, problem_rows(comparison))]
    lines += ["", "## Hyperparameter grids", "", GRIDS, ""]
    lines += _table(HYPERPARAMETERS, grid_rows(competitors))
    return "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rule = "|" + "---|" * len(head)
    return [f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]
