"""Five sentences that summarise the results of the comparison."""

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
# The fractions of the problems on which a rule must equal gradient descent, and its most similar
# baseline, to be called similar to it. Both are conventions, and the sentences state them.
MOST, ALIKE = 0.8, 0.6
# A run on the quadratics with condition number 10 has converged if |g| at the end is at most this
# times |g| at the start: the target of the quadratics, as a convention.
STATIONARY = 1e-6
EASY = "quadratic 1e1 "  # the first characters of the names of these quadratics
# A sentence with more names than these is hard to read: then it has their number only.
MOST_NAMED = 7
# Small numbers are words, because the names of the rules begin with digits.
WORDS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


class Count(NamedTuple):
    """Numbers of problems on which a rule is better than, equal to and worse than a baseline."""

    better: int
    equal: int
    worse: int


@dataclasses.dataclass(frozen=True)
class Comparison:
    """All results by problem and rule, and the counts that compare them."""

    problems: Sequence[FractionalProblem]
    rules: Sequence[str]
    baselines: Sequence[str]
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
        baselines = [one.name for one in competitors if one.is_baseline]
        rules = [one.name for one in competitors if not one.is_baseline]
        return cls(finished, rules, [*baselines, LBFGS], found)

    def count(self, rule: str, baseline: str) -> Count:
        """Count the problems on which a rule is better than, equal to and worse than a baseline."""
        signs = [versus(by[rule], by[baseline]) for by in self.results.values()]
        return Count(signs.count(1), signs.count(0), signs.count(-1))

    def nearest(self, rule: str) -> tuple[str, int]:
        """Return the baseline that a rule equals on the most problems, and their number."""
        equal = {baseline: self.count(rule, baseline).equal for baseline in self.baselines}
        baseline = max(equal, key=lambda name: equal[name])
        return baseline, equal[baseline]

    def winner(self, problem: str, of: Sequence[str]) -> str:
        """Return the method with the fewest gradients, or else with the smallest gap."""

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


def few(names: Sequence[str], word: str = "") -> str:
    """Return the number of names, a word, and the names themselves if they are few."""
    named = f" ({listed(names)})" if 0 < len(names) <= MOST_NAMED else ""
    return f"{number(len(names))}{word}{named}"


def few_are(names: Sequence[str]) -> str:
    """Return the number of names, the names themselves if they are few, and `is` or `are`."""
    return f"{few(names)} {'are' if len(names) > 1 else 'is'}"


def sentences(comparison: Comparison) -> list[str]:
    """Return the five sentences, the most important one first."""
    if not comparison.results:
        return ["No problem was finished."]
    return [
        _summary(comparison),
        _winners(comparison),
        _differences(comparison),
        _equivalents(comparison),
        _convergence(comparison),
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
        f"Compared with gradient descent: of {number(len(counts))} {rules}, "
        f"{few_are(same)} equal to gradient descent (within a factor of {EQUAL:g}) on at least "
        f"{MOST:.0%} of the problems; of the others, {few_are(better)} better on more problems "
        f"than worse, and {few_are(worse)} worse on more problems than better."
    )


def _equivalents(comparison: Comparison) -> str:
    """Return the sentence on the rules that are equivalent to another method."""
    near: dict[str, list[str]] = {}
    for rule in comparison.rules:
        baseline, equal = comparison.nearest(rule)
        if equal >= ALIKE * len(comparison.results):
            near.setdefault(baseline, []).append(rule)
    alike = [
        f"of {baseline} for {few(rules, ' rules' if len(rules) > 1 else ' rule')}"
        for baseline, rules in near.items()
    ]
    return (
        "Equivalent methods: in steady state rules 1 and 12 are gradient descent with "
        "|g|^(1/alpha) sign(g) in place of g, rule 11 is gradient descent or Nesterov's method "
        "with a bounded learning rate, and on quadratics rule 16 is heavy ball with a separate "
        f"momentum for each coordinate; on at least {ALIKE:.0%} of the problems the results "
        f"are equal to those {listed(alike) if alike else 'of a baseline for none'}."
    )


def _convergence(comparison: Comparison) -> str:
    """Return the sentence on the rules that do not converge to a stationary point."""
    if not any(p.name.startswith(EASY) for p in comparison.problems):
        return "Convergence: the quadratics with condition number 10 were not run."
    everyone = [*comparison.rules, *comparison.baselines]
    norms = {name: comparison.stationary_norm(name) for name in everyone}
    missing = [name for name, norm in norms.items() if not norm <= STATIONARY]
    reach = [
        f"{sum(name not in missing for name in names)} of {len(names)} {kind}"
        for kind, names in (("rules", comparison.rules), ("baselines", comparison.baselines))
    ]
    left = [f"{name} ({_reduction(norms[name])})" for name in missing]
    exceptions = f", except {listed(left)}" if left else ""
    return (
        f"Convergence: on the quadratics with condition number 10, {listed(reach)} reduce the "
        f"gradient norm to 1e-6 of its initial value{exceptions}; by their formulas, "
        "rules 1 and 5 also stop where a coordinate's last step was 0, rule 8 where a coordinate "
        "is 0, and rule 13 with alpha = 1 at any point."
    )


def _reduction(norm: float) -> str:
    """Return the final gradient norm divided by the initial one, or "diverges"."""
    return "diverges" if not norm <= 1 else f"{norm:.0e}"


def _winners(comparison: Comparison) -> str:
    """Return the sentence on the best method of each group of problems."""
    everyone = [*comparison.rules, *comparison.baselines]
    by_group = []
    for group in dict.fromkeys(p.group for p in comparison.problems):
        names = [p.name for p in comparison.problems if p.group == group]
        wins = collections.Counter(comparison.winner(name, everyone) for name in names)
        places = [f"{who} on {count}" for who, count in wins.most_common()]
        by_group.append(f"{group}: {listed(places)} of {len(names)}")
    return f"Fewest gradients (median over the seeds), by group: {'; '.join(by_group)}."


def _summary(comparison: Comparison) -> str:
    """Return the sentence on the best rule against the best baseline, problem by problem."""
    n = len(comparison.results)
    first_order = [name for name in comparison.baselines if name != LBFGS]
    signs = _against(comparison, comparison.rules, first_order)
    better = [problem for problem, sign in signs.items() if sign > 0]
    named = f" ({', '.join(better)})" if 0 < len(better) <= MOST_NAMED else ""
    against_lbfgs = _against(comparison, comparison.rules, [LBFGS])
    summary = (
        "Best fractional rule: selected for each problem after the runs, it is better "
        f"than the best of {listed(first_order)} by more than a factor of {EQUAL:g} on "
        f"{number(len(better))} of {n} problem{'s' if n > 1 else ''}{named} and worse by more than "
        f"this factor on {_times(signs, -1)}; it is better than L-BFGS, which has no "
        f"hyperparameters to tune, on {_times(against_lbfgs, 1)}"
    )
    ours = [rule for rule in comparison.rules if rule.startswith("16 Shin")]
    if ours:
        signs = _against(comparison, ours, first_order)
        summary += (
            f"; rule 16, the method of this library, is better than the best of these baselines on "
            f"{_times(signs, 1)} and worse on {_times(signs, -1)}"
        )
    return f"{summary}."


def _times(signs: Mapping[str, int], sign: int) -> str:
    """Return the number of problems with this sign, as a word."""
    return number(list(signs.values()).count(sign))


def _against(
    comparison: Comparison, rules: Sequence[str], baselines: Sequence[str]
) -> dict[str, int]:
    """Return the sign of `versus` for the best rule and the best baseline of each problem."""
    return {
        problem: versus(
            by[comparison.winner(problem, rules)], by[comparison.winner(problem, baselines)]
        )
        for problem, by in comparison.results.items()
    }
