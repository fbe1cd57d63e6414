"""Comparison of the optimizers: losses at equal cost, and the effect of gamma and lag.

Equal gradients: the budget in gradients is the number of steps of a run, so an optimizer with more
expensive steps is evaluated after fewer steps. Equal time: the budget is the time of the fastest
optimizer on the problem; slower ones are evaluated at their last checkpoint within it. The learning
rate of an optimizer is the one with the lowest median training loss. A loss or an error is the
median of the last three checkpoints, because at a constant learning rate a single one may be an
outlier.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from cfgd.apps.bench.training.optimizers import BASES, DEFAULT, Optimizer
from cfgd.apps.bench.training.trainer import CHECKPOINTS, Curves

GRADIENTS, SECONDS = "gradients", "seconds"
STEPS = "steps"  # ignores the cost of Hessian products: the effect of the direction alone
MEASURES = {GRADIENTS: "at equal gradients", SECONDS: "at equal time"}
LAST = 3  # checkpoints whose median is reported
EQUAL = 0.02  # losses that differ by at most two percent are equal
Quartiles = tuple[float, float, float]  # median, lower and upper quartile


# ---------------------------------------------------------------------- summaries over seeds


@dataclasses.dataclass(frozen=True)
class OptimizerSummary:
    """One optimizer on one problem, at its best learning rate."""

    problem: str
    optimizer: Optimizer
    measure: str
    rate: float
    at_the_edge: bool  # whether the rate is the first or last of the grid
    share: float  # fraction of the steps of a run within the budget
    loss: Quartiles
    error: Quartiles
    seconds: float  # time of a step


def summarize(curves: Sequence[Curves]) -> list[OptimizerSummary]:
    """Return a summary for each problem, optimizer and measure."""
    summaries = []
    for problem in dict.fromkeys(one.problem for one in curves):
        some = [one for one in curves if one.problem == problem]
        for measure in (*MEASURES, STEPS):
            summaries += [
                _summary(one, measure, checkpoints_in_budget(one, measure, some)) for one in some
            ]
    return summaries


def checkpoints_in_budget(one: Curves, measure: str, all_curves: Sequence[Curves]) -> int:
    """Return the number of checkpoints within the budget, at least one."""
    share = {
        GRADIENTS: 1 / one.optimizer.cost,
        SECONDS: min(other.seconds for other in all_curves) / one.seconds,
        STEPS: 1.0,
    }[measure]
    return max(1, int(CHECKPOINTS * share + 1e-9))


def _summary(one: Curves, measure: str, checkpoints: int) -> OptimizerSummary:
    last = slice(max(0, checkpoints - LAST), checkpoints)
    losses, errors = (np.median(cube[:, :, last], axis=2) for cube in (one.losses, one.errors))
    by_rate = [quartiles(of_rate) for of_rate in losses]
    best = min(range(len(by_rate)), key=lambda i: by_rate[i][0])
    return OptimizerSummary(
        problem=one.problem,
        optimizer=one.optimizer,
        measure=measure,
        rate=one.rates[best],
        at_the_edge=len(one.rates) > 1 and best in (0, len(one.rates) - 1),
        share=checkpoints / CHECKPOINTS,
        loss=by_rate[best],
        error=quartiles(errors[best]),
        seconds=one.seconds,
    )


def quartiles(numbers: Any) -> Quartiles:
    """Return median and quartiles without interpolation, which fails for infinite numbers."""
    middle, low, high = (
        float(np.quantile(numbers, q, method=method))  # type: ignore[call-overload]
        for q, method in ((0.5, "higher"), (0.25, "lower"), (0.75, "higher"))
    )
    return middle, low, high


# ---------------------------------------------------------------------- compared with gamma = 0


@dataclasses.dataclass(frozen=True)
class GammaLagRatios:
    """The ratios loss / loss with gamma = 0 of one gamma and lag, by problem."""

    kind: str
    gamma: float
    lag: int
    measure: str
    ratios: dict[str, float]

    @property
    def mean(self) -> float:
        """Return the geometric mean; infinite if a run diverged at every learning rate."""
        return float(np.exp(np.mean(np.log(list(self.ratios.values())))))

    def without(self, problem: str) -> GammaLagRatios:
        """Return the ratios of the other problems."""
        ratios = {name: ratio for name, ratio in self.ratios.items() if name != problem}
        return dataclasses.replace(self, ratios=ratios)


def gamma_lag_ratios(summaries: Sequence[OptimizerSummary]) -> list[GammaLagRatios]:
    """Return the ratios of each optimizer of cfgd and each measure.

    Problems without the optimizer that has gamma = 0 are left out.
    """
    losses = {(one.measure, one.problem, one.optimizer.name): one.loss[0] for one in summaries}
    ratios: dict[tuple[str, float, int, str], dict[str, float]] = {}
    for one in summaries:
        optimizer = one.optimizer
        base = losses.get((one.measure, one.problem, BASES.get(optimizer.kind, "")))
        if base is not None:
            key = optimizer.kind, optimizer.gamma, optimizer.lag, one.measure
            ratio = one.loss[0] / base if 0 < base < np.inf else np.inf
            ratios.setdefault(key, {})[one.problem] = ratio
    return [GammaLagRatios(*key, of_problems) for key, of_problems in ratios.items()]


# ---------------------------------------------------------------------- conclusions


def conclusions(summaries: Sequence[OptimizerSummary]) -> list[str]:
    """Return sentences on the best optimizers, the default setting, and the best gamma and lag."""
    sentences = []
    for problem in dict.fromkeys(one.problem for one in summaries):
        for measure in MEASURES:
            some = [one for one in summaries if (one.problem, one.measure) == (problem, measure)]
            sentences += _against_best_other(problem, measure, some)
    ratios = gamma_lag_ratios(summaries)
    for kind, base in BASES.items():
        for measure in MEASURES:
            of_kind = [one for one in ratios if (one.kind, one.measure) == (kind, measure)]
            sentences += _default_against_base(kind, base, measure, of_kind)
    for kind, base in BASES.items():
        sentences += _best_gamma_and_lag(kind, base, [one for one in ratios if one.kind == kind])
    return sentences


def compare(ours: float, other: float) -> tuple[str, float]:
    """Return whether `ours` is lower than `other`, higher, or equal, and their ratio."""
    factor = ours / other if other > 0 else float("inf")
    if abs(factor - 1) <= EQUAL:
        return "equal", factor
    return ("higher" if not factor < 1 else "lower"), factor


def _against_best_other(problem: str, measure: str, some: list[OptimizerSummary]) -> list[str]:
    # The best of ours is selected from many, so a lower loss alone does not show an advantage.
    ours = [one for one in some if one.optimizer.ours]
    others = [one for one in some if not one.optimizer.ours]
    if not ours or not others:
        return []
    own, other = (min(group, key=lambda one: one.loss[0]) for group in (ours, others))
    result, factor = compare(own.loss[0], other.loss[0])
    overlap = own.loss[1] <= other.loss[2] and other.loss[1] <= own.loss[2]
    within = "; the quartiles overlap" if overlap and result != "equal" else ""
    has = "the same loss as" if result == "equal" else f"a {result} loss than"
    return [
        f"{problem}, {MEASURES[measure]}: {own.optimizer.name}, the best of {len(ours)} cfgd "
        f"optimizers, has {has} {other.optimizer.name}, the best other ({own.loss[0]:.3g} and "
        f"{other.loss[0]:.3g}, ratio {factor:.2f}{within}; test errors {own.error[0]:.3g} and "
        f"{other.error[0]:.3g})."
    ]


def _default_against_base(
    kind: str, base: str, measure: str, some: list[GammaLagRatios]
) -> list[str]:
    sentences = []
    for one in some:
        if (one.gamma, one.lag) == DEFAULT:
            results = []
            for result in ("higher", "equal", "lower"):
                problems = [
                    f"{problem} ({ratio:.2f})"
                    for problem, ratio in one.ratios.items()
                    if compare(ratio, 1)[0] == result
                ]
                results += [f"{result} on {', '.join(problems)}"] if problems else []
            name = f"{kind} ({one.gamma:g}, {one.lag})"
            sentences.append(
                f"{name}, {MEASURES[measure]}, loss compared with {base} (ratio): "
                f"{'; '.join(results)}."
            )
    return sentences


def _best_gamma_and_lag(kind: str, base: str, ratios: list[GammaLagRatios]) -> list[str]:
    """Name the best pair, and evaluate the selection by leaving out one problem at a time."""
    some = [one for one in ratios if one.measure == GRADIENTS]
    if not some:
        return []
    best = min(some, key=lambda one: one.mean)
    sentence = (
        f"{kind}: of {len(some)} pairs (gamma, lag), ({best.gamma:g}, {best.lag}) has the lowest "
        f"geometric mean of loss / loss of {base} at equal gradients, {best.mean:.2f}"
    )
    if len(best.ratios) < 3:
        return [f"{sentence}."]
    held_out = {}
    for problem in best.ratios:
        chosen = min(some, key=lambda one: one.without(problem).mean)
        held_out[problem] = chosen.ratios[problem]
    on = ", ".join(f"{problem} {ratio:.2f}" for problem, ratio in held_out.items())
    return [f"{sentence}; ratio on each problem with the pair selected on the others: {on}."]
