"""The first pass over a table: check its values and collect statistics of its columns.

Statistics that the fit uses (means, deviations, categories) are those of the training rows alone,
so that the rows that are held out do not influence the model that they test.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from cfgd.apps.fit.categories import MAX_TEXTS, LevelCounts, parse_references
from cfgd.apps.fit.columns import Column, Mask, NumberColumn, TextColumn
from cfgd.apps.fit.formats import typed
from cfgd.apps.fit.missing_values import DROP, check_for_fit, left_out_rows
from cfgd.apps.fit.moments import RunningMoments
from cfgd.apps.fit.reading_options import ReadingOptions
from cfgd.apps.fit.row_roles import ClusterCodes, RowRoles
from cfgd.apps.fit.split import FOLDS, HELD_OUT, Split, training_rows
from cfgd.apps.fit.table import Table, to_float64, to_strings

MAX_LABELS = 100  # different values of a target that can be classes
# A float holds up to 1.8e308: squares of numbers of this size can be added 1e28 times.
LARGEST = 1e140
SHOWN = 20  # columns that a message names
SAMPLE = 100_000  # rows whose targets are stored, for medians and figures
COUNTS = (
    *("row_count", "left_out_count", "training_count", "held_out_count"),
    *("weight_zero_count", "target_present"),
)
NO_ROLES, PLAIN = RowRoles(), ReadingOptions()


@dataclasses.dataclass(frozen=True)
class Standardisation:
    """The map X -> (X - mean) / deviation, to columns of mean 0 and deviation 1."""

    mean: np.ndarray
    deviation: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        Z = X - self.mean
        Z /= self.deviation
        return Z


class TableStatistics:
    """Row counts and statistics of the columns and of the target, collected block by block.

    Attributes
    ----------
    row_count, left_out_count, training_count, held_out_count : int
        All rows of the file, those left out for missing values, and the two parts of the others.
    weight_zero_count : int
        Rows left out because their weight is 0.
    target_moments : RunningMoments
        Of the training rows, if the target is a number.
    target_minimum : float
        Over all rows that are not left out.
    target_sample : list of arrays
        Targets of the first training rows.
    label_counts : dict or None
        For each value of the target the number of rows that are held out and in each fold; None
        if the target has more than `MAX_LABELS` values.
    missing_counts : Counter
        How many rows of the file have no value in a column.
    code_counts : list of arrays
        For each part of the table the number of rows that are held out and in each fold.
    cluster_codes : dict
        The number of each cluster.
    """

    def __init__(
        self,
        table: Table,
        target: str,
        drop: list[str],
        missing: str,
        roles: RowRoles = NO_ROLES,
        reading: ReadingOptions = PLAIN,
    ) -> None:
        self.table, self.target, self.missing, self.roles = table, target, missing, roles
        self.references, self.rare = parse_references(reading.reference), reading.rare
        given = (("--target", target), *roles.options, *(("--drop", name) for name in drop))
        for option, name in given:
            if name not in table.types:
                known = ", ".join(map(repr, list(table.types)[:20]))
                raise ValueError(f"{option}: {table.path} has no column {name!r}, only {known}.")
        if target in drop:
            raise ValueError(f"--drop: {target!r} is the target.")
        roles.check(table, target)
        others = (target, *drop, *roles.names)
        self.features = [name for name in table.types if name not in others]
        if not self.features:
            raise ValueError(f"{table.path} has no column besides the target {target!r}.")
        self.kinds = {name: table.kind(name) for name in (*self.features, target)}
        self.target_is_text = self.kinds[target] == "text"
        self._begin()
        for name in self.references:
            if name not in self.level_counts:
                known = ", ".join(map(repr, self.text_columns[:20])) or "none"
                raise ValueError(f"--reference: {name!r} is no column of texts; there are {known}.")

    def _begin(self) -> None:
        """Forget what is known of the rows."""
        self.number_columns = [name for name in self.features if self.kinds[name] == "number"]
        self.text_columns = [name for name in self.features if self.kinds[name] == "text"]
        self.row_count = self.left_out_count = self.training_count = self.held_out_count = 0
        self.weight_zero_count = self.target_present = 0
        self.moments = RunningMoments(len(self.number_columns))
        self.level_counts = {name: LevelCounts() for name in self.text_columns}
        self.target_moments, self.target_minimum = RunningMoments(1), np.inf
        self.target_sample: list[np.ndarray] = []
        self.label_counts: dict[Any, np.ndarray] | None = {}
        self.missing_counts: Counter[str] = Counter()
        self.code_counts: list[np.ndarray] = []
        self.cluster_codes: ClusterCodes = {}

    @property
    def names(self) -> list[str]:
        """The columns that are read: the features, the target, weights, offsets and clusters."""
        return [*self.features, self.target, *self.roles.names]

    def collect(self, split: Split, block_rows: int, on_rows_read: Callable[[int], None]) -> None:
        """Read the table once; raise a `ValueError` for the first thing that prevents a fit."""
        report = self.table.workers.reporting(on_rows_read)
        for found in self.table.map(_collected, self._of_part(None), split, block_rows, report):
            self._merge(found)
        if not self.row_count:
            raise ValueError(f"{self.table.path} has no rows.")
        for name in self.text_columns:
            self._check_texts(name)
        self._check(split)

    def _of_part(self, part: Table | None) -> TableStatistics:
        """Return statistics of no rows, for a part of the table."""
        other = copy.copy(self)
        # there is none while the statistics are sent
        other.table = part  # type: ignore[assignment]
        other._begin()
        return other

    def _merge(self, other: TableStatistics) -> None:
        """Include the rows of the next part."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.code_counts += other.code_counts
        self.moments.merge(other.moments)
        for name, counts in other.level_counts.items():
            self.level_counts[name].merge(counts)
        self.target_moments.merge(other.target_moments)
        self.target_minimum = min(self.target_minimum, other.target_minimum)
        if sum(map(len, self.target_sample)) < SAMPLE:
            self.target_sample += other.target_sample
        if self.label_counts is not None and other.label_counts is not None:
            for label, by_code in other.label_counts.items():
                self.label_counts[label] = self.label_counts.get(label, 0 * by_code) + by_code
        else:
            self.label_counts = None
        if len(self.label_counts or ()) > MAX_LABELS:
            self.label_counts = None
        self.missing_counts.update(other.missing_counts)
        for value in other.cluster_codes:
            self.cluster_codes.setdefault(value, len(self.cluster_codes))

    def _add(self, batch: pa.RecordBatch, codes: np.ndarray) -> None:
        numbers = {name: self._finite_numbers(name, batch) for name in self.number_columns}
        texts = {name: to_strings(batch.column(name)) for name in self.text_columns}
        missing = {name: np.isnan(values) for name, values in numbers.items()}
        missing |= {name: values.is_null().to_numpy(False) for name, values in texts.items()}
        y: Any
        if self.target_is_text:
            y = to_strings(batch.column(self.target))
            missing[self.target] = y.is_null().to_numpy(False)
        else:
            y = self._finite_numbers(self.target, batch)
            missing[self.target] = np.isnan(y)
        self.target_present += int(np.sum(~missing[self.target]))
        used = self._used_rows(missing)
        self.roles.check_values(self.table.path, batch, self.missing, self._rows_before)
        self.roles.add_clusters(batch, self.cluster_codes)
        roles = self.roles.read(batch, self.cluster_codes)
        self.weight_zero_count += int(np.sum(roles.is_weight_zero))
        used &= ~roles.unused
        training = used & training_rows(codes)
        self.left_out_count += int(np.sum(~used & ~roles.is_weight_zero))
        self.training_count += int(np.sum(training))
        self.held_out_count += int(np.sum(used & ~training))
        self.code_counts[-1] += np.bincount(codes[used] - HELD_OUT, minlength=FOLDS + 1)
        if numbers:
            self.moments.add(np.stack(list(numbers.values()), 1)[training])
        for name, values in texts.items():
            self._count_levels(name, values, used, training)
        self._add_target(y, used, training, codes)

    @property
    def _rows_before(self) -> int:
        """The rows of the file before the next block."""
        return self.table.rows_before_in_file + self.row_count

    def _finite_numbers(self, name: str, batch: pa.RecordBatch) -> np.ndarray:
        """Return a column as numbers, with NaN for missing values; infinity is an error."""
        values = to_float64(batch.column(name))
        infinite = np.isinf(values)
        if infinite.any():
            first = int(np.argmax(infinite))
            got = f"{values[first]} in row {self._rows_before + first + 1}"
            raise ValueError(
                f"{self.table.path}: the column {name!r} must be finite, got {got}: "
                f"--na {values[first]} takes it as missing."
            )
        large = np.abs(values) > LARGEST  # false for NaN
        if large.any():
            first = int(np.argmax(large))
            raise ValueError(
                f"{self.table.path}: the column {name!r} must be at most {LARGEST:g} in size, so "
                f"that squares can be added, got {values[first]:g} in row "
                f"{self._rows_before + first + 1}: use other units."
            )
        return values

    def _used_rows(self, missing: dict[str, Mask]) -> Mask:
        any_missing = np.any(list(missing.values()), 0)
        if any_missing.any():
            self.missing_counts.update({name: int(np.sum(of)) for name, of in missing.items()})
            path = self.table.path
            before = self._rows_before
            check_for_fit(path, self.missing, self.kinds, self.target, missing, before)
        return ~left_out_rows(self.missing, any_missing)

    def _count_levels(self, name: str, values: pa.Array, used: Mask, training: Mask) -> None:
        counts = self.level_counts[name]
        counts.add(values, pa.array(used), pa.array(training))
        self._check_texts(name)

    def _check_texts(self, name: str) -> None:
        if len(self.level_counts[name].all) > MAX_TEXTS:
            raise ValueError(
                f"{self.table.path}: the column {name!r} has more than {MAX_TEXTS} different "
                f"texts, too many for categories: leave it out with {typed('--drop', name)}."
            )

    def _add_target(self, y: Any, used: Mask, training: Mask, codes: np.ndarray) -> None:
        if self.label_counts is not None:
            values = np.array(y.to_pylist(), object) if self.target_is_text else y
            self._count_labels(values[used], codes[used])
        if not self.target_is_text:
            self.target_moments.add(y[training][:, None])
            self.target_minimum = min(self.target_minimum, y[used].min(initial=np.inf))
            if sum(map(len, self.target_sample)) < SAMPLE:
                self.target_sample.append(y[training])

    def _count_labels(self, y: np.ndarray, codes: np.ndarray) -> None:
        assert self.label_counts is not None
        labels, index = np.unique(y, return_inverse=True)
        if len(labels) <= MAX_LABELS:
            for i, label in enumerate(labels.tolist()):
                counts = np.bincount(codes[index == i] - HELD_OUT, minlength=FOLDS + 1)
                self.label_counts[label] = self.label_counts.get(label, 0 * counts) + counts
        if max(len(labels), len(self.label_counts)) > MAX_LABELS:
            self.label_counts = None

    def _check(self, split: Split) -> None:
        path = self.table.path
        if self.weight_zero_count == self.row_count:
            raise ValueError(f"--weights: every row of {path} has the weight 0.")
        if self.left_out_count + self.weight_zero_count == self.row_count:
            if not self.target_present:
                raise ValueError(f"{path}: the target {self.target!r} has no value.")
            raise ValueError(f"{path}: every row has a missing value, so no row is left.")
        if split.test_share > 0 and not self.held_out_count:
            raise ValueError(f"{path} has too few rows to hold some out: --test 0 holds out none.")
        if not self.training_count:
            raise ValueError(f"{path}: every row is held out, so no row is left to fit to.")
        if self.training_count == 1:
            raise ValueError(f"{path} has one row to fit to, which is too few.")
        self._check_deviations(self.number_columns, self.moments)
        if not self.target_is_text:
            self._check_deviations([self.target], self.target_moments)

    def _constants(self) -> dict[str, str]:
        """Return the columns that are constant in the training rows, each with its value."""
        limits = zip(self.moments.minimum, self.moments.maximum, strict=True)
        found = {
            name: f"{low:g}" if low == high else "no value"
            for name, (low, high) in zip(self.number_columns, limits, strict=True)
            if not low < high
        }
        return found | {
            name: repr(next(iter(counts.training), "no value"))
            for name, counts in self.level_counts.items()
            if len(counts.training) < 2
        }

    def leave_out_constants(
        self, split: Split, block_rows: int, on_rows_read: Callable[[int], None]
    ) -> list[str]:
        """Leave out the columns that are constant in the training rows, and say so.

        Rows that were left out for a missing value in such a column count again: the table is then
        read once more.
        """
        constants = self._constants()
        if not constants:
            return []
        self.features = [name for name in self.features if name not in constants]
        if not self.features:
            shown = ", ".join(map(repr, list(constants)[:SHOWN]))
            raise ValueError(
                f"{self.table.path}: no column varies in the training rows besides the target "
                f"{self.target!r}: {shown}."
            )
        sentences = [
            f"The column {name!r} is left out: it is constant in the training rows ({value})."
            f"{self._describe_missing_level(name)}"
            for name, value in constants.items()
        ]
        if self.missing != DROP or not any(self.missing_counts[name] for name in constants):
            return sentences
        self._begin()
        self.collect(split, block_rows, on_rows_read)
        return sentences + self.leave_out_constants(split, block_rows, on_rows_read)

    def _describe_missing_level(self, name: str) -> str:
        """Return a sentence about a column that is one text or missing, "" for other columns."""
        rows = self.missing_counts[name]
        if self.missing != DROP or self.kinds[name] != "text" or not rows:
            return ""
        return (
            f" It has no value in {rows:,} row{'s' * (rows > 1)}, which --missing mean makes a "
            "level of its own."
        )

    def refuse_constants(self) -> None:
        """Raise a `ValueError` if a column that a formula names is constant."""
        for name, value in self._constants().items():
            raise ValueError(
                f"{self.table.path}: the column {name!r} is constant in the training rows "
                f"({value}): leave it out of the formula."
            )

    def _check_deviations(self, names: list[str], moments: RunningMoments) -> None:
        """Raise a `ValueError` where values differ and the squares of their differences vanish."""
        for i, name in enumerate(names):
            if moments.minimum[i] < moments.maximum[i] and not moments.deviation[i] > 0:
                raise ValueError(
                    f"{self.table.path}: the column {name!r} varies so little around "
                    f"{moments.mean[i]:g} that squares of its differences are 0: use other units."
                )

    def columns(self) -> list[Column]:
        """Return the columns in the order of the file, with what their encoding needs."""
        means = dict(zip(self.number_columns, self.moments.mean, strict=True))
        return [
            NumberColumn(name, float(means[name])) if name in means else self._text_column(name)
            for name in self.features
        ]

    def _text_column(self, name: str) -> TextColumn:
        counts = self.level_counts[name]
        return counts.column(self.table.path, name, self.references.get(name), self.rare)

    def standardisation(self) -> Standardisation:
        """Return means and deviations of the columns of the design matrix."""
        number_deviations = dict(zip(self.number_columns, self.moments.deviation, strict=True))
        means, deviations = [], []
        for column in self.columns():
            if isinstance(column, NumberColumn):
                means.append(column.mean)
                deviations.append(number_deviations[column.name])
            else:
                for share in self.level_counts[column.name].shares(column):
                    means.append(share)
                    deviations.append(np.sqrt(share * (1 - share)))
        return Standardisation(np.array(means), np.array(deviations))


def _collected(
    part: Table,
    empty: TableStatistics,
    split: Split,
    block_rows: int,
    report: Callable[[int], None],
) -> TableStatistics:
    """Return the statistics of a part of the table."""
    found = empty._of_part(part)
    found.code_counts.append(np.zeros(FOLDS + 1, int))
    next_codes = split.code_generator(part.rows_before)
    for batch in part.blocks(found.names, block_rows):
        found._add(batch, next_codes(batch.num_rows))
        found.row_count += batch.num_rows
        report(batch.num_rows)
    found.table = empty.table
    return found
