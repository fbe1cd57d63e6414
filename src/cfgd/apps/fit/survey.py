"""The first pass over a table: what is missing, what is constant, and the statistics of the rest.

Of the rows that are fitted to: those that are held out have no say in what they are measured by.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cfgd.apps.fit.columns import Column, Number, Text
from cfgd.apps.fit.moments import Moments
from cfgd.apps.fit.split import FOLDS, Split, train
from cfgd.apps.fit.table import Table, numbers, texts

MISSING = ("refuse", "drop", "mean")  # what to do about a value that is not there
MOST_LEVELS = 1000  # of a text, which become as many columns
MOST_LABELS = 100  # of a target
SAMPLE = 100_000  # rows whose targets are kept


class Survey:
    """Counts and moments, block by block."""

    def __init__(self, table: Table, target: str, drop: list[str], missing: str) -> None:
        self.table, self.target, self.missing = table, target, missing
        for option, name in (("--target", target), *(("--drop", name) for name in drop)):
            if name not in table.types:
                shown = ", ".join(map(repr, list(table.types)[:20]))
                raise ValueError(f"{option}: {table.path} has no column {name!r}, only {shown}.")
        if target in drop:
            raise ValueError(f"--drop: {target!r} is the target.")
        self.features = [name for name in table.types if name != target and name not in drop]
        if not self.features:
            raise ValueError(f"{table.path} has no column beside the target {target!r}.")
        kinds = {name: table.kind(name) for name in (*self.features, target)}
        self.numeric = [name for name in self.features if kinds[name] == "number"]
        self.textual = [name for name in self.features if kinds[name] == "text"]
        self.target_is_text = kinds[target] == "text"
        self.rows = self.dropped = self.train = self.test = 0
        self.moments = Moments(len(self.numeric))
        self.levels: dict[str, Counter[str]] = {name: Counter() for name in self.textual}
        # of the target; by label, how many rows are held out and of each fold, unless there are
        # more values than a label has
        self.y, self.least = Moments(1), np.inf
        self.sample: list[np.ndarray] = []
        self.labels: dict[Any, np.ndarray] | None = {}

    @property
    def names(self) -> list[str]:
        return [*self.features, self.target]

    def run(self, split: Split, rows: int, advance: Callable[[int], None]) -> None:
        draws = split.draws()
        for batch in self.table.blocks(self.names, rows):
            self._add(batch, draws(batch.num_rows))
            self.rows += batch.num_rows
            advance(batch.num_rows)
        if not self.rows:
            raise ValueError(f"{self.table.path} has no rows.")
        self._check(split)

    def _add(self, batch: Any, codes: np.ndarray) -> None:
        values = {name: self._finite(name, numbers(batch.column(name))) for name in self.numeric}
        words = {name: texts(batch.column(name)) for name in self.textual}
        gone = {name: np.isnan(entries) for name, entries in values.items()}
        gone |= {name: entries.is_null().to_numpy(False) for name, entries in words.items()}
        y: Any = batch.column(self.target)
        y = texts(y) if self.target_is_text else self._finite(self.target, numbers(y))
        gone[self.target] = y.is_null().to_numpy(False) if self.target_is_text else np.isnan(y)
        kept = self._kept(gone)
        self.dropped += int(np.sum(~kept))
        ours = kept & train(codes)
        self.train += int(np.sum(ours))
        self.test += int(np.sum(kept & ~ours))
        if self.numeric:
            self.moments.add(np.stack(list(values.values()), 1)[ours])
        for name, entries in words.items():
            self._count(name, entries.filter(pa.array(ours)))
        self._add_target(y, kept, ours, codes)

    def _kept(self, gone: dict[str, np.ndarray]) -> np.ndarray:
        """Which rows are used; what is missing and must not be is one sentence."""
        anywhere = np.any(list(gone.values()), 0)
        if self.missing == "drop" or not anywhere.any():
            return ~anywhere
        refused = [*self.textual, self.target] if self.missing == "mean" else list(gone)
        for name in refused:
            if gone[name].any():
                row = self.rows + int(np.argmax(gone[name])) + 1
                start = f"{self.table.path}: the column {name!r} has no value in row {row}"
                if self.missing == "refuse":
                    means = "" if name == self.target else ", --missing mean puts in the mean"
                    raise ValueError(f"{start}: --missing drop leaves such rows out{means}.")
                what = "the target" if name == self.target else "a text"
                said = f"{what} has no mean to put in: --missing drop leaves such rows out"
                raise ValueError(f"{start}, and {said}.")
        return np.ones(len(anywhere), bool)

    def _finite(self, name: str, values: np.ndarray) -> np.ndarray:
        if np.isinf(values).any():
            first = int(np.argmax(np.isinf(values)))
            where = f"{values[first]} in row {self.rows + first + 1}"
            raise ValueError(f"{self.table.path}: the column {name!r} must be finite, got {where}.")
        return values

    def _count(self, name: str, entries: Any) -> None:
        for one in pc.value_counts(entries):
            self.levels[name][one["values"].as_py()] += one["counts"].as_py()
        if len(self.levels[name]) > MOST_LEVELS:
            raise ValueError(
                f"{self.table.path}: the column {name!r} has more than {MOST_LEVELS} different "
                f"texts, too many to be categories: leave it out with --drop {name}."
            )

    def _add_target(self, y: Any, kept: np.ndarray, ours: np.ndarray, codes: np.ndarray) -> None:
        if self.labels is not None:
            words = np.array(y.to_pylist(), object) if self.target_is_text else y
            self._count_labels(words[kept], codes[kept])
        if not self.target_is_text:
            self.y.add(y[ours][:, None])
            self.least = min(self.least, y[kept].min(initial=np.inf))
            if sum(map(len, self.sample)) < SAMPLE:
                self.sample.append(y[ours])

    def _count_labels(self, y: np.ndarray, codes: np.ndarray) -> None:
        assert self.labels is not None
        known, places = np.unique(y, return_inverse=True)
        if len(known) > MOST_LABELS:
            self.labels = None
            return
        for i, label in enumerate(known.tolist()):
            counts = np.bincount(codes[places == i] + 1, minlength=FOLDS + 1)
            self.labels[label] = self.labels.get(label, 0 * counts) + counts
        if len(self.labels) > MOST_LABELS:
            self.labels = None

    def _check(self, split: Split) -> None:
        path = self.table.path
        if self.dropped == self.rows:
            raise ValueError(f"{path}: every row has a missing value; nothing is left.")
        if split.share > 0 and not self.test:
            raise ValueError(f"{path} has too few rows to hold some out: --test 0 holds out none.")
        if not self.train:
            raise ValueError(f"{path}: every row is held out; nothing is left to fit to.")
        for name, low, high in zip(
            self.numeric, self.moments.least, self.moments.most, strict=True
        ):
            if not low < high:
                self._constant(name, f"{low:g}" if low == high else "no value")
        for name, counts in self.levels.items():
            if len(counts) < 2:
                self._constant(name, repr(next(iter(counts), "no value")))

    def _constant(self, name: str, value: str) -> None:
        raise ValueError(
            f"{self.table.path}: the column {name!r} is constant in the rows that are fitted to "
            f"({value}): leave it out with --drop {name}."
        )

    def columns(self) -> list[Column]:
        """In the order of the file."""
        means = dict(zip(self.numeric, self.moments.mean, strict=True))
        return [
            Number(name, float(means[name])) if name in means else _text(name, self.levels[name])
            for name in self.features
        ]

    def scaling(self) -> Scaling:
        """Means and deviations of the columns of the matrix."""
        deviations = dict(zip(self.numeric, self.moments.deviation, strict=True))
        means, sizes = [], []
        for column in self.columns():
            if isinstance(column, Number):
                means.append(column.mean)
                sizes.append(deviations[column.name])
            else:
                counts = self.levels[column.name]
                for level in column.levels:
                    share = counts[level] / counts.total()
                    means.append(share)
                    sizes.append(np.sqrt(share * (1 - share)))
        return Scaling(np.array(means), np.array(sizes))


@dataclasses.dataclass(frozen=True)
class Scaling:
    """(X - mean) / deviation has mean 0 and deviation 1."""

    mean: np.ndarray
    deviation: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean) / self.deviation


def _text(name: str, counts: Counter[str]) -> Text:
    """The most frequent is what others are compared with; of several the first."""
    base = min(counts, key=lambda level: (-counts[level], level))
    return Text(name, base, tuple(sorted(counts.keys() - {base})))
