"""Scores of runs: for the selection of hyperparameters, and for the comparison of rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cfgd.apps.bench.fractional.engine import Runs

# Relative gaps below this are rounding errors.
LEAST_GAP = 1e-16
# The score of a run that ends at a value that is not finite: larger than that of any other run.
DIVERGED = 100.0
CURVE_POINTS = 40  # points of a saved convergence curve
# A rule is equal to a baseline if their numbers of gradients differ by at most this factor: the
# learning rates of the grids differ by factors of 2, and gradient descent needs 1/rate steps.
EQUAL = 2.0
# The same for the relative gaps, if neither reaches the target: one decade.
EQUAL_GAP = 10.0


@dataclasses.dataclass(frozen=True)
class Judged:
    """The result of a rule on a problem: the selected setting, and the runs on the test seeds.

    Parameters
    ----------
    setting
        The selected hyperparameters by name.
    tuning
        The median score over the tuning seeds.
    solved
        The number of gradients to the target, for each seed; None if it was not reached.
    gaps
        The smallest relative gap (f - f*) / (f(x0) - f*) within the budget, for each seed.
    ends
        The relative gap at the last point, for each seed; 1e300 if it is not finite.
    norms
        |g| at the last point divided by |g(x0)|, for each seed.
    cost
        The cost of an iteration in gradients.
    curve
        Numbers of gradients, and the median over the seeds of the smallest gap so far.
    """

    setting: Mapping[str, float]
    tuning: float
    solved: tuple[float | None, ...]
    gaps: tuple[float, ...]
    ends: tuple[float, ...]
    norms: tuple[float, ...]
    cost: float
    curve: tuple[tuple[float, ...], tuple[float, ...]]


def relative_gaps(runs: Runs, minima: Sequence[float]) -> Any:
    """Return the smallest relative gap so far; infinite before the first finite value."""
    least = np.asarray(minima, float)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = (runs.values - least) / (runs.values[:, :1] - least)
    gaps = np.where(np.isfinite(gaps), np.maximum(gaps, LEAST_GAP), np.inf)
    return np.minimum.accumulate(gaps, axis=1)


def score(runs: Runs, minima: Sequence[float], accuracy: float) -> Any:
    """Return the score of each run; smaller is better.

    The score is the fraction of the budget that a run needs to reach the target, or, if it does not
    reach it, 1 + log10(smallest gap / target). It is `DIVERGED` if the last value is not finite: a
    setting that does not diverge is preferred, even if the diverging run had reached the target.
    """
    gaps = relative_gaps(runs, minima)
    reached = gaps <= accuracy
    first = np.argmax(reached, axis=1)
    share = runs.gradients[first] / runs.gradients[-1]
    missing = 1 + np.log10(gaps[:, -1] / accuracy)
    found = np.where(reached.any(axis=1), share, missing)
    return np.where(np.isfinite(runs.values[:, -1]), found, DIVERGED)


def judged(
    setting: Mapping[str, float],
    tuning: float,
    runs: Sequence[Runs],
    minima: Sequence[float],
    accuracy: float,
) -> Judged:
    """Return the result on the test seeds; each seed has one entry of `runs`."""
    gaps = [relative_gaps(one, [least])[0] for one, least in zip(runs, minima, strict=True)]
    solved = tuple(
        float(one.gradients[np.argmax(g <= accuracy)]) if g[-1] <= accuracy else None
        for one, g in zip(runs, gaps, strict=True)
    )
    longest = max(runs, key=lambda one: len(one.gradients)).gradients
    shown = np.unique(np.geomspace(1, len(longest), CURVE_POINTS).astype(int)) - 1
    padded = [np.concatenate([g, np.full(len(longest) - len(g), g[-1])]) for g in gaps]
    middle = np.median(padded, axis=0)
    ends = [
        (one.values[0, -1] - least) / (one.values[0, 0] - least)
        for one, least in zip(runs, minima, strict=True)
    ]
    return Judged(
        setting,
        float(tuning),
        solved,
        tuple(float(g[-1]) for g in gaps),
        tuple(float(np.nan_to_num(e, nan=1e300, posinf=1e300)) for e in ends),
        tuple(float(np.nan_to_num(one.norms[0], nan=1e300, posinf=1e300)) for one in runs),
        float(longest[1] if len(longest) > 1 else 1.0),
        (
            tuple(float(v) for v in longest[shown]),
            tuple(float(v) for v in np.minimum(middle[shown], 1e300)),
        ),
    )


def profile(results: Mapping[str, Mapping[str, Judged]]) -> dict[str, list[float]]:
    """Return the performance ratios of Dolan and Moré (2002) of each rule.

    A ratio is the number of gradients of the rule divided by the smallest number of any rule, for
    one problem and seed; it is infinite if the rule did not reach the target. Pairs of problem and
    seed that no rule has solved are left out. `results` are by problem and rule.
    """
    factors: dict[str, list[float]] = {}
    for by_rule in results.values():
        for i in range(len(next(iter(by_rule.values())).solved)):
            needed = {name: one.solved[i] for name, one in by_rule.items()}
            fewest = min((n for n in needed.values() if n is not None), default=None)
            if fewest is None:
                continue
            for name, n in needed.items():
                ratio = np.inf if n is None else n / max(fewest, 1.0)
                factors.setdefault(name, []).append(float(ratio))
    return factors


def versus(one: Judged, other: Judged) -> int:
    """Return 1 if `one` is better than `other`, -1 if it is worse, and 0 if they are equal.

    If the median seeds of both reach the target, the numbers of gradients are compared, with the
    factor `EQUAL`; if only one does, it is better; if neither does, the median gaps are compared,
    with the factor `EQUAL_GAP`.
    """
    a, b = median_solved(one), median_solved(other)
    if a is not None and b is not None:
        return int(b > EQUAL * a) - int(a > EQUAL * b)
    if (a is None) != (b is None):
        return 1 if b is None else -1
    x, y = np.median(one.gaps), np.median(other.gaps)
    return int(y > EQUAL_GAP * x) - int(x > EQUAL_GAP * y)


def median_solved(one: Judged) -> float | None:
    """Return the median number of gradients to the target; None if the median is infinite."""
    middle = float(np.median([np.inf if n is None else n for n in one.solved]))
    return middle if np.isfinite(middle) else None
