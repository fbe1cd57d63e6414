"""Collect what the factors of a formula need to know of the training rows, by passes over them."""

from __future__ import annotations

import abc
import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cfgd.apps.fit.categories import MAX_LEVELS
from cfgd.apps.fit.columns import Column
from cfgd.apps.fit.expression import Expression, States
from cfgd.apps.fit.formula import BaseColumns, Formula, monic_polynomials, needs_state
from cfgd.apps.fit.moments import RunningMoments
from cfgd.apps.fit.row_block import RowBlock
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import training_rows
from cfgd.apps.fit.table_statistics import Standardisation


class Collector(abc.ABC):
    """Collects the state of one call; `state` is not None when enough passes are over."""

    def __init__(self, call: Expression) -> None:
        self.call = call
        self.state: dict[str, Any] | None = None

    @abc.abstractmethod
    def add(self, x: np.ndarray) -> None:
        """Take in the argument of the call for a block of rows."""

    @abc.abstractmethod
    def merge(self, other: Any) -> None:
        """Include what another one has found in the rows of the next part."""

    @abc.abstractmethod
    def end_pass(self) -> None:
        """Use what the pass has found."""


class Moments(Collector):
    """The mean, and the deviation with n - 1 in the denominator, of center and scale."""

    def __init__(self, call: Expression) -> None:
        super().__init__(call)
        self.moments = RunningMoments(1)

    def add(self, x: np.ndarray) -> None:
        self.moments.add(x[:, None])

    def merge(self, other: Any) -> None:
        self.moments.merge(other.moments)

    def end_pass(self) -> None:
        rows = self.moments.rows
        deviation = float(np.sqrt(self.moments.sum_of_squares[0] / max(rows - 1, 1)))
        self.state = {"mean": float(self.moments.mean[0]), "deviation": deviation}
        if self.call.function == "scale" and not deviation > 0:
            raise ValueError(f"--formula: {self.call.text!r} is constant in the training rows.")


class Levels(Collector):
    """The different numbers of C(column), the reference level first: the most frequent one."""

    def __init__(self, call: Expression) -> None:
        super().__init__(call)
        self.counts: Counter[float] = Counter()

    def add(self, x: np.ndarray) -> None:
        values, counts = np.unique(x, return_counts=True)
        self.counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        self._check_count()

    def merge(self, other: Any) -> None:
        self.counts.update(other.counts)
        self._check_count()

    def _check_count(self) -> None:
        if len(self.counts) > MAX_LEVELS:
            raise ValueError(
                f"--formula: {self.call.text!r} has more than {MAX_LEVELS} different values, too "
                "many for categories."
            )

    def end_pass(self) -> None:
        reference = self.call.reference
        if reference is None:
            reference = min(self.counts, key=lambda level: (-self.counts[level], level))
        elif reference not in self.counts:
            raise ValueError(
                f"--formula: the reference {reference!r} of {self.call.text!r} is no level in the "
                "training rows."
            )
        self.state = {"levels": sorted(self.counts, key=lambda x: (x != reference, x))}


class Recurrence(Collector):
    """The numbers of the three-term recurrence of `orthogonal`, one more in each pass."""

    def __init__(self, call: Expression) -> None:
        super().__init__(call)
        self.alpha: list[float] = []
        self.norm: list[float] = []
        self.sums = np.zeros(2)
        self.values: np.ndarray = np.zeros(0)  # different ones, as many as are needed

    def add(self, x: np.ndarray) -> None:
        if len(self.values) <= self.call.degree:
            self.values = np.union1d(self.values, x)[: self.call.degree + 1]
        squares = monic_polynomials(x, self.alpha, self.norm)[-1] ** 2
        self.sums += squares.sum(), x @ squares

    def merge(self, other: Any) -> None:
        self.values = np.union1d(self.values, other.values)[: self.call.degree + 1]
        self.sums += other.sums

    def end_pass(self) -> None:
        if len(self.values) <= self.call.degree:
            raise ValueError(
                f"--formula: {self.call.text!r} needs {self.call.degree + 1} different values, got "
                f"{len(self.values)} in the training rows."
            )
        norm, moment = self.sums.tolist()
        self.norm.append(norm)
        if len(self.norm) > self.call.degree:
            self.state = {"alpha": self.alpha, "norm": self.norm}
        else:
            self.alpha.append(moment / norm)
        self.sums = np.zeros(2)


def collect_states(factors: Sequence[Expression], columns: Sequence[Column], rows: Rows) -> States:
    """Return the states of all calls that have one; `rows` are the encoded columns as they are.

    A call whose argument has such calls in it waits for their states.
    """
    waiting: dict[str, Collector] = {}
    for call in (call for factor in factors for call in factor.stateful_calls):
        if needs_state(call, columns):
            kind = {"poly": Recurrence, "C": Levels}.get(str(call.function), Moments)
            waiting.setdefault(call.text, kind(call))
    states: dict[str, dict[str, Any]] = {}
    while waiting:
        ready = [
            collector
            for collector in waiting.values()
            if not any(call.text in waiting for call in collector.call.argument.stateful_calls)
        ]
        parts = rows.map(training_rows, _collected, ready, columns, states)
        ready = [_merged(list(of_parts)) for of_parts in zip(*parts, strict=True)]
        for collector in ready:
            collector.end_pass()
            waiting[collector.call.text] = collector
            if collector.state is not None:
                states[collector.call.text] = collector.state
                del waiting[collector.call.text]
    return states


def _collected(
    blocks: Iterator[RowBlock],
    collectors: Sequence[Collector],
    columns: Sequence[Column],
    states: States,
) -> Sequence[Collector]:
    """Return the collectors with the rows of a part."""
    found = copy.deepcopy(collectors)
    for block in blocks:
        base = BaseColumns(columns, block.X)
        for collector in found:
            argument = collector.call.argument
            x = np.broadcast_to(argument.evaluate(base.numbers, states), len(block.X))
            if not np.isfinite(x).all():
                raise ValueError(f"--formula: {argument.text!r} is no finite number in all rows.")
            collector.add(x)
    return found


def _merged(collectors: Sequence[Collector]) -> Collector:
    for other in collectors[1:]:
        collectors[0].merge(other)
    return collectors[0]


def formula_standardisation(
    formula: Formula, columns: Sequence[Column], rows: Rows
) -> Standardisation:
    """Return means and deviations of the columns of the design matrix, by one pass."""
    moments = RunningMoments(len(formula.products))
    for part in rows.map(training_rows, _moments, formula, columns):
        moments.merge(part)
    for name, low, high in zip(formula.terms, moments.minimum, moments.maximum, strict=True):
        if low == high:
            raise ValueError(
                f"--formula: the column {name!r} is constant in the training rows ({low:g}): leave "
                "it out."
            )
    return Standardisation(moments.mean, moments.deviation)


def _moments(
    blocks: Iterator[RowBlock], formula: Formula, columns: Sequence[Column]
) -> RunningMoments:
    moments = RunningMoments(len(formula.products))
    for block in blocks:
        moments.add(formula(columns, block.X)[0])
    return moments
