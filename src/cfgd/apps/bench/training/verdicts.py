"""What the standings say in words: where ours lose, and which gamma and lag are worth taking."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from cfgd.apps.bench.training.optimizers import BASES, DEFAULT
from cfgd.apps.bench.training.table import GRADIENTS, MEASURES, Standing

SAME = 0.02  # a loss within two percent is called the same


@dataclasses.dataclass(frozen=True)
class Pair:
    """A gamma and a lag: the loss over that with gamma = 0, problem by problem."""

    kind: str
    gamma: float
    lag: int
    measure: str
    ratios: dict[str, float]

    @property
    def mean(self) -> float:
        """The geometric mean; infinite where a run diverged at every learning rate."""
        return float(np.exp(np.mean(np.log(list(self.ratios.values())))))


def pairs(found: Sequence[Standing]) -> list[Pair]:
    """For each of ours and each measure; problems without the optimizer of gamma = 0 are out."""
    losses = {(one.measure, one.problem, one.optimizer.name): one.loss[0] for one in found}
    made: dict[tuple[str, float, int, str], dict[str, float]] = {}
    for one in found:
        own = one.optimizer
        base = losses.get((one.measure, one.problem, BASES.get(own.kind, "")))
        if base is not None:
            of_pair = made.setdefault((own.kind, own.gamma, own.lag, one.measure), {})
            of_pair[one.problem] = one.loss[0] / base if 0 < base < np.inf else np.inf
    return [Pair(*key, ratios) for key, ratios in made.items()]


def verdicts(found: Sequence[Standing]) -> list[str]:
    said = []
    for problem in dict.fromkeys(one.problem for one in found):
        for measure in MEASURES:
            some = [one for one in found if (one.problem, one.measure) == (problem, measure)]
            said += _against_the_best(problem, measure, some)
    every = pairs(found)
    for kind, base in BASES.items():
        for measure in MEASURES:
            some_pairs = [one for one in every if (one.kind, one.measure) == (kind, measure)]
            if some_pairs:
                said += _of_the_default(kind, base, measure, some_pairs)
    for kind, base in BASES.items():
        said += _chosen(kind, base, [one for one in every if one.kind == kind])
    return said


def _against_the_best(problem: str, measure: str, some: list[Standing]) -> list[str]:
    """The best of ours was chosen among many: that it is below is no proof that it helps."""
    ours = [one for one in some if one.optimizer.ours]
    rivals = [one for one in some if not one.optimizer.ours]
    if not ours or not rivals:
        return []
    own, rival = (min(group, key=lambda one: one.loss[0]) for group in (ours, rivals))
    word, factor = compared(own.loss[0], rival.loss[0])
    overlap = own.loss[1] <= rival.loss[2] and rival.loss[1] <= own.loss[2]
    within = ", within the spread" if overlap and word != "the same" else ""
    return [
        f"{problem}, {MEASURES[measure]}: {word}{within}. The best of {len(ours)} of ours is "
        f"{own.optimizer.name} with the loss {own.loss[0]:.3g} (test error {own.error[0]:.3g}), "
        f"{factor:.2f} times that of the best rival, {rival.optimizer.name}: {rival.loss[0]:.3g} "
        f"({rival.error[0]:.3g})."
    ]


def compared(ours: float, theirs: float) -> tuple[str, float]:
    """Who has the lower loss, and ours over theirs."""
    factor = ours / theirs if theirs > 0 else float("inf")
    if abs(factor - 1) <= SAME:
        return "the same", factor
    return ("ours lose" if not factor < 1 else "ours win"), factor


def _of_the_default(kind: str, base: str, measure: str, some: list[Pair]) -> list[str]:
    said = []
    for one in some:
        if (one.gamma, one.lag) == DEFAULT:
            words = []
            for word in ("ours lose", "the same", "ours win"):
                on = [f"{p} ({r:.2f})" for p, r in one.ratios.items() if compared(r, 1)[0] == word]
                words += [f"{word} on {', '.join(on)}"] if on else []
            name = f"{kind} ({one.gamma:g}, {one.lag})"
            said.append(f"{name} against {base}, {MEASURES[measure]}: {'; '.join(words)}.")
    return said


def _chosen(kind: str, base: str, every: list[Pair]) -> list[str]:
    """The best pair of all problems, and what choosing by the other problems gives on each."""
    some = [one for one in every if one.measure == GRADIENTS]
    if not some:
        return []
    best = min(some, key=lambda one: one.mean)
    said = (
        f"{kind}: of {len(some)} pairs, (gamma, lag) = ({best.gamma:g}, {best.lag}) has the least "
        f"loss over {base}, {best.mean:.2f} in the geometric mean with equal gradients"
    )
    if len(best.ratios) < 3:
        return [f"{said}."]
    unseen = {}
    for problem in best.ratios:
        others = [
            dataclasses.replace(
                one, ratios={name: r for name, r in one.ratios.items() if name != problem}
            )
            for one in some
        ]
        picked = min(range(len(some)), key=lambda i: others[i].mean)
        unseen[problem] = some[picked].ratios[problem]
    on = ", ".join(f"{problem} {ratio:.2f}" for problem, ratio in unseen.items())
    return [f"{said}; a pair that is chosen by the other problems has on {on}."]
