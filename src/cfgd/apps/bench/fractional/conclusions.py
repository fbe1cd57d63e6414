"""Five sentences on the results: what differs, what is the same, what stops where, who wins."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cfgd.apps.bench.fractional.competitors import LBFGS, Competitor
from cfgd.apps.bench.fractional.problems import FractionalProblem
from cfgd.apps.bench.fractional.saved import ProblemResult
from cfgd.apps.bench.fractional.scores import EQUAL, Judged, median_solved, versus

DESCENT = "gradient descent"
# The shares of the problems on which a rule must equal gradient descent, and its nearest control,
# to be called like it. Both are conventions, and the sentences name them.
MOST, ALIKE = 0.8, 0.6
# |g| at the end over |g| at the start, on the quadratics of condition 10, below which a run is said
# to have reached the minimiser: the accuracy of the quadratics, as a convention.
STATIONARY = 1e-6
EASY = "quadratic 1e1 "  # how their names begin
# More names than these are left to the tables: with them a sentence is no longer read.
MOST_NAMED = 7
# Small numbers are words, since the names of the rules begin with digits.
WORDS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


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


def number(n: int) -> str:
    """Return a whole number as a word up to ten."""
    return WORDS[n] if n < len(WORDS) else str(n)


def few(names: Sequence[str]) -> str:
    """Return how many there are, with their names where there are few, and `is` or `are`."""
    named = f" ({listed(names)})" if 0 < len(names) <= MOST_NAMED else ""
    are = "are" if len(names) > 1 else "is"
    return f"{number(len(names))}{named} {are}"


def sentences(comparison: Comparison) -> list[str]:
    """Return the five sentences of the first screen."""
    if not comparison.results:
        return ["No problem was finished."]
    return [
        _differences(comparison),
        _disguises(comparison),
        _stationary(comparison),
        _winners(comparison),
        _summary(comparison),
    ]


def _differences(comparison: Comparison) -> str:
    """Return the sentence on the rules that differ from gradient descent."""
    n = len(comparison.results)
    counts = {rule: comparison.count(rule, DESCENT) for rule in comparison.rules}
    same = [rule for rule, c in counts.items() if c.equal >= MOST * n]
    others = {rule: c.better - c.worse for rule, c in counts.items() if rule not in same}
    better = [rule for rule, more in others.items() if more > 0]
    worse = [rule for rule, more in others.items() if more < 0]
    rules = "rule" if len(counts) == 1 else "rules"
    return (
        f"Which differ: of {number(len(counts))} {rules}, {few(same)} like gradient descent "
        f"(within a factor of {EQUAL:g}) on at least four problems of five; of the others, "
        f"{few(better)} better than it more often than worse, and {few(worse)} worse more often "
        "than better."
    )


def _disguises(comparison: Comparison) -> str:
    """Return the sentence on the rules that are another method."""
    near: dict[str, list[str]] = {}
    for rule in comparison.rules:
        control, equal = comparison.nearest(rule)
        if equal >= ALIKE * len(comparison.results):
            near.setdefault(control, []).append(rule)
    alike = [f"{few(rules)} like {control}" for control, rules in near.items()]
    return (
        "The same in disguise: in steady state rules 1 and 12 are gradient descent on "
        "|g|^(1/alpha), rule 11 is gradient descent or Nesterov's method with a bounded rate, and "
        "on quadratics rule 16 is heavy ball with a momentum for each coordinate; on at least "
        f"three problems of five, {listed(alike) if alike else 'no rule is like a control'}."
    )


def _stationary(comparison: Comparison) -> str:
    """Return the sentence on the points where the rules stop."""
    if not any(p.name.startswith(EASY) for p in comparison.problems):
        return "Stationary points: the quadratics of condition 10 were not run."
    everyone = [*comparison.rules, *comparison.controls]
    norms = {name: comparison.stationary_norm(name) for name in everyone}
    missing = [name for name, norm in norms.items() if not norm <= STATIONARY]
    reach = [
        f"{sum(name not in missing for name in names)} of {len(names)} {kind}"
        for kind, names in (("rules", comparison.rules), ("controls", comparison.controls))
    ]
    left = [f"{name} ({_size(norms[name])})" for name in missing]
    exceptions = f", but not {listed(left)}" if left else ""
    return (
        f"Stationary points: on the quadratics of condition 10, {listed(reach)} reduce the "
        f"gradient to 1e-6 of the first{exceptions}; elsewhere, rules 1 and 5 also stop where a "
        "coordinate's last step was 0, rule 8 where a coordinate is 0, and rule 13 of order 1 "
        "anywhere."
    )


def _size(norm: float) -> str:
    """Return the part of the first gradient that is left."""
    return "diverges" if not norm <= 1 else f"{norm:.0e}"


def _winners(comparison: Comparison) -> str:
    """Return the sentence on who is the best in each group of problems."""
    everyone = [*comparison.rules, *comparison.controls]
    by_group = []
    for group in dict.fromkeys(p.group for p in comparison.problems):
        names = [p.name for p in comparison.problems if p.group == group]
        wins = collections.Counter(comparison.winner(name, everyone) for name in names)
        places = [f"{who} on {count}" for who, count in wins.most_common()]
        by_group.append(f"{group}: {listed(places)} of {len(names)}")
    return f"Who wins, by the median of the gradients: {'; '.join(by_group)}."


def _summary(comparison: Comparison) -> str:
    """Return the last sentence: the best rule against the best control, problem by problem."""
    n = len(comparison.results)
    first_order = [name for name in comparison.controls if name != LBFGS]
    signs = _against(comparison, comparison.rules, first_order)
    better = [problem for problem, sign in signs.items() if sign > 0]
    named = f" ({', '.join(better)})" if 0 < len(better) <= MOST_NAMED else ""
    against_lbfgs = _against(comparison, comparison.rules, [LBFGS])
    summary = (
        "Summary: the best fractional rule, chosen afterwards for each problem, beats the best of "
        f"{listed(first_order)} by more than a factor of {EQUAL:g} on {number(len(better))} of {n} "
        f"problem{'s' if n > 1 else ''}{named} and loses to it by as much on {_times(signs, -1)}; "
        f"it beats L-BFGS, which has no constants to tune, on {_times(against_lbfgs, 1)}"
    )
    ours = [rule for rule in comparison.rules if rule.startswith("16 Shin")]
    if ours:
        signs = _against(comparison, ours, first_order)
        summary += (
            f"; our own rule 16 beats the best control but L-BFGS on {_times(signs, 1)} and loses "
            f"to it on {_times(signs, -1)}"
        )
    return f"{summary}."


def _times(signs: Mapping[str, int], sign: int) -> str:
    """Return on how many problems a sign stands."""
    return number(list(signs.values()).count(sign))


def _against(
    comparison: Comparison, rules: Sequence[str], controls: Sequence[str]
) -> dict[str, int]:
    """Return for each problem whether the best of `rules` is better than the best of `controls`."""
    return {
        problem: versus(
            by[comparison.winner(problem, rules)], by[comparison.winner(problem, controls)]
        )
        for problem, by in comparison.results.items()
    }
