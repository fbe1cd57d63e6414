"""From values to scores: what a setting is tuned by, and what a rule is judged by."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cfgd.apps.bench.fractional.engine import Runs

# Rounding hides gaps below this part of the first one.
LEAST_GAP = 1e-16
# The score of a run that ends at a value that is not finite: above any that is.
DIVERGED = 100.0
CURVE_POINTS = 40  # of a saved curve
# A rule counts as equal to a control where the ratio of their gradients is within this factor: the
# grids have rates a factor 2 apart, and gradient descent's number of steps is as 1/rate.
EQUAL = 2.0
# The same for what is left of f(x0) - f*, where neither reaches the accuracy: one decade.
EQUAL_GAP = 10.0


@dataclasses.dataclass(frozen=True)
class Judged:
    """A rule on a problem: its tuned constants, and what the judged seeds gave.

    Parameters
    ----------
    setting
        The constants by name.
    tuning
        The median score over the tuning seeds.
    solved
        For each seed the gradients to the accuracy of the problem; None where it was not reached.
    gaps
        For each seed the least (f - f*) / (f(x0) - f*) within the budget.
    ends
        The same at the last point, 1e300 where that was not finite.
    norms
        For each seed |g| at the last point over |g(x0)|.
    cost
        The gradients of an iteration.
    curve
        Gradients, and the median of the gaps up to there.
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
    """Return the least (f - f*) / (f(x0) - f*) so far; infinite before a finite value."""
    least = np.asarray(minima, float)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = (runs.values - least) / (runs.values[:, :1] - least)
    gaps = np.where(np.isfinite(gaps), np.maximum(gaps, LEAST_GAP), np.inf)
    return np.minimum.accumulate(gaps, axis=1)


def score(runs: Runs, minima: Sequence[float], accuracy: float) -> Any:
    """Return the score of each run, smaller being better.

    For a run that reaches the accuracy, the share of the budget until then; for others 1 plus the
    decades that are missing. One that ends at no finite value is `DIVERGED`: a constant that does
    not diverge is preferred, whatever was seen on the way.
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
    """Return the result of the judged seeds, one of `runs` for each."""
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
    """Return for each rule its gradients over the fewest of any, one for each problem and seed.

    `results` are by problem and rule. What nobody solved is left out; what a rule did not solve is
    infinite (Dolan and Moré, 2002).
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
    """Return 1 where `one` is better than `other` by more than `EQUAL`, -1 where worse, else 0.

    Better is: fewer gradients in the median, where both solved the problem in the median; else the
    smaller median gap, by more than `EQUAL_GAP`.
    """
    a, b = median_solved(one), median_solved(other)
    if a is not None and b is not None:
        return int(b > EQUAL * a) - int(a > EQUAL * b)
    if (a is None) != (b is None):
        return 1 if b is None else -1
    x, y = np.median(one.gaps), np.median(other.gaps)
    return int(y > EQUAL_GAP * x) - int(x > EQUAL_GAP * y)


def median_solved(one: Judged) -> float | None:
    """Return the median of the gradients to the accuracy; None where most seeds miss it."""
    middle = float(np.median([np.inf if n is None else n for n in one.solved]))
    return middle if np.isfinite(middle) else None
