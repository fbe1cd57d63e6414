"""A claim: the paper's number, where it stands, a tolerance, and a function of the run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

Relation = Literal["at most", "at least", "equals", "about"]
SIGNS = {"at most": "≤", "at least": "≥", "equals": "=", "about": "≈"}
FACTOR = 3.0  # "about" is a level read off a logarithmic figure: within this factor
HOLDS, FAILS, NOT_COMPARABLE = "holds", "does not hold", "not comparable"
HOLDS_FOR = "holds for"  # some of the cases that a claim speaks of, which are then named
VERDICTS = (HOLDS, HOLDS_FOR, FAILS, NOT_COMPARABLE)
OURS = "not in the paper"  # how `where` begins for a claim that is ours
# A claim judged over seeds holds if its median does and so do nine seeds in ten.
SHARE = 0.9


@dataclasses.dataclass(frozen=True)
class Claim:
    """What the paper says, in a form that a run can be held against.

    `measure` gives one number, or one for each seed; or, by name, such numbers for each case that
    the claim speaks of, and it may then hold for some of them. `expected` and `tolerance`
    (relative) are fixed here, before any run. `excuse` says why a run cannot be compared, if it
    cannot; `note` is for the reader of a claim that fails.

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
        """Hold a run against the claim; not a number never holds."""
        found = self.measure(run)
        several = isinstance(found, Mapping)
        cases = [
            self._case(name, part) for name, part in (found if several else {"": found}).items()
        ]
        values = np.concatenate(
            [np.ravel(part) for part in found.values()] if several else [np.ravel(found)]
        )
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
            cases=tuple(cases) if several else (),
        )

    def _case(self, name: str, measured: Any) -> Case:
        values = np.ravel(np.asarray(measured, dtype=np.float64))
        hits, median = self._holds(values), float(np.median(values))
        holds = float(np.mean(hits)) >= SHARE and bool(self._holds(np.array(median)))
        return Case(name, median, int(np.sum(hits)), len(values), holds)

    @property
    def wanted(self) -> str:
        """The expected value as the table shows it, without a tolerance for mere rounding."""
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
    """One of the cases that a claim speaks of, in plain data."""

    name: str
    median: float
    hits: int
    count: int
    holds: bool

    @property
    def measured(self) -> str:
        often = "" if self.count == 1 else f", {self.hits} of {self.count}"
        return f"{self.name}: {number(self.median)}{often}"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a claim came out, in plain data: it is saved and read back."""

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
        """Whether the paper does not say it."""
        return self.where.startswith(OURS)

    @property
    def which(self) -> str:
        """The cases for which it holds."""
        return ", ".join(case.name for case in self.cases if case.holds)

    @property
    def said(self) -> str:
        """The verdict in words."""
        return f"{HOLDS_FOR} {self.which}" if self.verdict == HOLDS_FOR else self.verdict

    @property
    def measured(self) -> str:
        """The measured value; over seeds, the median and how many of them bear the claim out."""
        if self.cases:
            return "; ".join(case.measured for case in self.cases)
        if len(self.values) == 1:
            return number(self.median)
        hits = round(self.fraction * len(self.values))
        return f"median {number(self.median)}, {hits} of {len(self.values)}"


def number(value: float) -> str:
    """A number as a reader writes it.

    >>> number(70980.0), number(0.25), number(2e-4), number(279.98780395580843), number(np.inf)
    ('70,980', '0.25', '2e-4', '279.988', 'never')
    """
    if not np.isfinite(value):
        return "never" if value == np.inf else "not a number"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.6g}" if abs(value) >= 100 else f"{value:.4g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"
