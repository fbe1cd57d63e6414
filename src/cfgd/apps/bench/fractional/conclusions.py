"""Five sentences: which rules differ, which are another method, where they stop, who wins."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cfgd.apps.bench.fractional.competitors import LBFGS, Competitor
from cfgd.apps.bench.fractional.problems import FractionalProblem
from cfgd.apps.bench.fractional.saved import ProblemResult
from cfgd.apps.bench.fractional.scores import Judged, median_solved, versus

DESCENT = "gradient descent"
# A rule is said to be equal to gradient descent where it is on this share of the problems, and is
# named beside its nearest control from the other one on.
MOST, ALIKE = 0.8, 0.6
# |g| at the end over |g| at the start, on the quadratics of condition 10: below it a run has
# reached the minimiser as far as any use of it goes.
STATIONARY = 1e-6
EASY = "quadratic 1e1 "  # how their names begin
# Names in a sentence, beyond which it is no longer read.
MOST_NAMED = 7


class Count(NamedTuple):
    """On how many problems a rule is better than, equal to and worse than a control."""

    better: int
    equal: int
    worse: int


@dataclasses.dataclass(frozen=True)
class Comparison:
    """All results, by problem and rule, with what is said about them."""

    problems: Sequence[FractionalProblem]
    rules: Sequence[str]
    controls: Sequence[str]
    results: Mapping[str, Mapping[str, Judged]]

    @classmethod
    def of(
        cls,
        problems: Sequence[FractionalProblem],
        competitors: Sequence[Competitor],
        results: Sequence[ProblemResult],
    ) -> Comparison:
        finished = list(problems)[: len(results)]
        found = {p.name: r.rules for p, r in zip(finished, results, strict=True)}
        controls = [one.name for one in competitors if one.is_control]
        rules = [one.name for one in competitors if not one.is_control]
        return cls(finished, rules, [*controls, LBFGS], found)

    def count(self, rule: str, control: str) -> Count:
        """Count the problems on which a rule is better than a control, equal, worse."""
        signs = [versus(by[rule], by[control]) for by in self.results.values()]
        return Count(signs.count(1), signs.count(0), signs.count(-1))

    def nearest(self, rule: str) -> tuple[str, int]:
        """Return the control that a rule equals on most problems, and on how many."""
        equal = {control: self.count(rule, control).equal for control in self.controls}
        control = max(equal, key=lambda name: equal[name])
        return control, equal[control]

    def winner(self, problem: str, of: Sequence[str]) -> str:
        """Return who needs the fewest gradients, or else ends with the least gap."""

        def rank(name: str) -> tuple[float, float]:
            one = self.results[problem][name]
            solved = median_solved(one)
            return (np.inf if solved is None else solved), float(np.median(one.gaps))

        return min(of, key=rank)

    def stationary_norm(self, rule: str) -> float:
        """Return the largest median of |g| / |g(x0)| on the quadratics of condition 10."""
        names = [p.name for p in self.problems if p.name.startswith(EASY)]
        return max((float(np.median(self.results[n][rule].norms)) for n in names), default=np.nan)


def listed(names: Sequence[str]) -> str:
    """Return names with commas and an `and`; "none" for none."""
    if len(names) < 2:
        return names[0] if names else "none"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def few(names: Sequence[str]) -> str:
    """Return how many there are, with their names where there are few; the tables have all."""
    count = str(len(names))
    return f"{count} ({listed(names)})" if 0 < len(names) <= MOST_NAMED else count


def sentences(comparison: Comparison) -> list[str]:
    """Return the five sentences of the first screen."""
    n = len(comparison.results)
    if n == 0:
        return ["No problem was finished."]
    everyone = [*comparison.rules, *comparison.controls]
    by_group = []
    for group in dict.fromkeys(p.group for p in comparison.problems):
        names = [p.name for p in comparison.problems if p.group == group]
        winners = [comparison.winner(name, everyone) for name in names]
        places = [
            f"{who} {winners.count(who)}"
            for who in sorted(dict.fromkeys(winners), key=lambda who: -winners.count(who))
        ]
        by_group.append(f"{group}: {', '.join(places)} of {len(names)}")
    return [
        _differences(comparison),
        _disguises(comparison),
        _stationary(comparison),
        f"Who wins where, by the median of gradients to the accuracy: {'; '.join(by_group)}.",
        _summary(comparison),
    ]


def _differences(comparison: Comparison) -> str:
    """Return the sentence on the rules that differ from gradient descent."""
    n = len(comparison.results)
    counts = {rule: comparison.count(rule, DESCENT) for rule in comparison.rules}
    same = [rule for rule, c in counts.items() if c.equal >= MOST * n]
    better = [rule for rule, c in counts.items() if c.better > c.worse and rule not in same]
    worse = [rule for rule, c in counts.items() if c.worse > c.better and rule not in same]
    return (
        f"Which differ at all: of {len(counts)} rules {few(same)} do on four problems of five what "
        f"gradient descent does, within a factor of 2; {few(better)} are better than it on more "
        f"problems than worse, and {few(worse)} worse on more than better."
    )


def _disguises(comparison: Comparison) -> str:
    """Return the sentence on the rules that are another method."""
    near: dict[str, list[str]] = {}
    for rule in comparison.rules:
        control, equal = comparison.nearest(rule)
        if equal >= ALIKE * len(comparison.results):
            near.setdefault(control, []).append(rule)
    alike = listed([f"{few(rules)} of {control}" for control, rules in near.items()])
    return (
        "The same in disguise: in steady state rules 1 and 12 are gradient descent on "
        "|g|^(1/alpha), rule 11 has a rate that is clipped, and on quadratics rule 16 is heavy "
        "ball with one momentum for each coordinate; measured on three problems of five, within a "
        f"factor of 2 of the nearest control: {alike}."
    )


def _stationary(comparison: Comparison) -> str:
    """Return the sentence on the points where the rules stop."""
    if not any(p.name.startswith(EASY) for p in comparison.problems):
        return "Stationary points: the quadratics of condition 10 were not run."
    norms = {rule: comparison.stationary_norm(rule) for rule in comparison.rules}
    fail = [f"{rule} {norm:.0e}" for rule, norm in norms.items() if not norm <= STATIONARY]
    others = {name: comparison.stationary_norm(name) for name in comparison.controls}
    also = [f"{name} {norm:.0e}" for name, norm in others.items() if not norm <= STATIONARY]
    return (
        f"Stationary points: on quadratics of condition 10, {len(norms) - len(fail)} rules reduce "
        f"the gradient to 1e-6 of the first, and {few(fail)} do not (of the controls {few(also)}); "
        "elsewhere rules 1 and 5 stay where a coordinate's last step was 0, rule 8 where a "
        "coordinate is 0, and rule 13 of order 1 anywhere (docs/fractional.md)."
    )


def _summary(comparison: Comparison) -> str:
    """Return the last sentence: the best rule against the best control, problem by problem."""
    n = len(comparison.results)
    first_order = [name for name in comparison.controls if name != LBFGS]
    wins, losses, ours, ours_lose = [], 0, 0, 0
    own = [rule for rule in comparison.rules if rule.startswith("16 Shin")]
    for problem, by in comparison.results.items():
        control = by[comparison.winner(problem, first_order)]
        sign = versus(by[comparison.winner(problem, comparison.rules)], control)
        wins += [problem] * (sign > 0)
        losses += sign < 0
        if own:
            sign = versus(by[comparison.winner(problem, own)], control)
            ours += sign > 0
            ours_lose += sign < 0
    lbfgs = sum(
        versus(by[comparison.winner(problem, comparison.rules)], by[LBFGS]) > 0
        for problem, by in comparison.results.items()
    )
    where = f" ({', '.join(wins)})" if wins else ""
    return (
        f"Summary: the best fractional rule, chosen afterwards for each problem, beats the best of "
        f"{listed(first_order)} by more than a factor of 2 on {len(wins)} of {n} problems{where} "
        f"and loses by as much on {losses}; it beats L-BFGS, which has no constants to tune, on "
        f"{lbfgs}; our own rule 16, by gamma or by momentum, beats the best control on {ours} and "
        f"loses to it on {ours_lose}."
    )
