"""A claim: a number of the paper, its place there, a tolerance, and how a run measures it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

Relation = Literal["at most", "at least", "equals", "about"]
SIGNS = {"at most": "≤", "at least": "≥", "equals": "=", "about": "≈"}
FACTOR = 3.0  # of "about", for levels that are read off a logarithmic axis
HOLDS, FAILS, NOT_COMPARABLE = "holds", "does not hold", "not comparable"
HOLDS_FOR = "holds for"  # some of the cases of a claim, which are then named
VERDICTS = (HOLDS, HOLDS_FOR, FAILS, NOT_COMPARABLE)
OURS = "not in the paper"  # the first words of `where` in a claim that is ours
# A claim over seeds holds if it holds for the median and for this share of the seeds.
SEED_SHARE = 0.9


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of the paper that a run can be checked against.

    Parameters
    ----------
    says : the statement
    where : its place in the paper; begins with "not in the paper" if it is ours
    expected, relation, tolerance : the measured number must be in this relation to `expected`,
        with a relative tolerance; all are fixed before any run
    measure : returns the number of a run, or one for each seed, or a mapping from the names of
        cases to such numbers; the claim may then hold for some of the cases
    excuse : returns why a run cannot be compared with the paper, or None
    note : shown if the claim does not hold

    >>> claim = Claim("four iterations", "figure 1", 4, "at most", lambda run: run["iterations"])
    >>> claim.judge({"iterations": 4}).verdict, claim.judge({"iterations": 9}).verdict
    ('holds', 'does not hold')
    """

    says: str
    where: str
    expected: float
    relation: Relation
    measure: Callable[[Any], Any]
    tolerance: float = 0.0
    excuse: Callable[[Any], str | None] = lambda run: None
    note: str = ""

    def judge(self, run: Any) -> Outcome:
        """Check the claim against a run; a NaN never holds."""
        measured = self.measure(run)
        has_cases = isinstance(measured, Mapping)
        by_case = measured if has_cases else {"": measured}
        cases = [self._case(name, numbers) for name, numbers in by_case.items()]
        values = np.concatenate([np.ravel(numbers) for numbers in by_case.values()])
        reason, held = self.excuse(run), [case.holds for case in cases]
        verdict = HOLDS if all(held) else HOLDS_FOR if any(held) else FAILS
        return Outcome(
            says=self.says,
            where=self.where,
            wanted=self.wanted,
            values=tuple(float(value) for value in values),
            median=float(np.median(values)),
            fraction=float(np.mean(self._holds(values))),
            verdict=NOT_COMPARABLE if reason else verdict,
            why=reason or ("" if all(held) else self.note),
            cases=tuple(cases) if has_cases else (),
        )

    def _case(self, name: str, measured: Any) -> Case:
        values = np.ravel(np.asarray(measured, dtype=np.float64))
        hits, median = self._holds(values), float(np.median(values))
        holds = float(np.mean(hits)) >= SEED_SHARE and bool(self._holds(np.array(median)))
        return Case(name, median, int(np.sum(hits)), len(values), holds)

    @property
    def wanted(self) -> str:
        """Return the expected value for the table; a tolerance for rounding is not shown."""
        about = f" ± {100 * self.tolerance:g} %" if self.tolerance >= 1e-4 else ""
        return f"{SIGNS[self.relation]} {number(self.expected)}{about}"

    def _holds(self, value: Any) -> Any:
        slack = self.tolerance * abs(self.expected)
        if self.relation == "at most":
            return value <= self.expected + slack
        if self.relation == "at least":
            return value >= self.expected - slack
        if self.relation == "about":
            return (value >= self.expected / FACTOR) & (value <= self.expected * FACTOR)
        return np.abs(value - self.expected) <= slack


@dataclasses.dataclass(frozen=True)
class Case:
    """One of the cases of a claim, in plain data; `hits` of `count` seeds satisfy it."""

    name: str
    median: float
    hits: int
    count: int
    holds: bool

    @property
    def measured(self) -> str:
        """Return the measured value for the table."""
        seeds = "" if self.count == 1 else f", {self.hits} of {self.count}"
        return f"{self.name}: {number(self.median)}{seeds}"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of checking a claim, in plain data that is saved and read again."""

    says: str
    where: str
    wanted: str
    values: tuple[float, ...]
    median: float
    fraction: float
    verdict: str
    why: str = ""
    cases: tuple[Case, ...] = ()

    @property
    def ours(self) -> bool:
        """Return whether the claim is not in the paper."""
        return self.where.startswith(OURS)

    @property
    def holding_cases(self) -> str:
        """Return the names of the cases for which it holds."""
        return ", ".join(case.name for case in self.cases if case.holds)

    @property
    def verdict_text(self) -> str:
        """Return the verdict with the cases for which it holds."""
        return f"{HOLDS_FOR} {self.holding_cases}" if self.verdict == HOLDS_FOR else self.verdict

    @property
    def measured(self) -> str:
        """Return the measured value; over seeds, the median and how many satisfy the claim."""
        if self.cases:
            return "; ".join(case.measured for case in self.cases)
        if len(self.values) == 1:
            return number(self.median)
        hits = round(self.fraction * len(self.values))
        return f"median {number(self.median)}, {hits} of {len(self.values)}"


def number(value: float) -> str:
    """Return a number in the notation of the tables.

    >>> number(70980.0), number(0.25), number(2e-4), number(279.98780395580843), number(np.inf)
    ('70,980', '0.25', '2e-4', '279.988', 'never')
    """
    if not np.isfinite(value):
        return "never" if value == np.inf else "not a number"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.6g}" if abs(value) >= 100 else f"{value:.4g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"
