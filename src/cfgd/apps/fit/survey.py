"""One pass over a table that finds out how the texts of its columns are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from cfgd.apps.fit.column_survey import MIN_DAYS, ColumnSurvey
from cfgd.apps.fit.csv_table import TypesChanged
from cfgd.apps.fit.dates import (
    days_of_numbers,
    is_date,
    is_time,
)
from cfgd.apps.fit.ids import Uniqueness
from cfgd.apps.fit.missing_marks import MissingMarks
from cfgd.apps.fit.table import Table, is_numeric, is_text, to_float64, value_type

# Numbers that mark missing values in many files, if they are more than once in a column and farther
# from all others than these are from each other.
SENTINELS = tuple(sign * (10.0**k - 1) for sign in (-1, 1) for k in range(2, 8))
EXACT = 2.0**53  # from which on float64 does not have every integer
NO_UNITS: Mapping[str, str] = MappingProxyType({})


class NumberSurvey:
    """What a column of numbers looks like: how many values, and whether they are an id.

    `is_long` says that there are integers that no float64 holds exactly, and `is_date` that all
    values are dates such as 20240131.
    """

    def __init__(self, compares: bool) -> None:
        self.rows = self.present = 0
        self.has_decimals = self.is_long = False
        self.is_date = True
        self.days: set[float] = set()  # the first different ones
        self.uniqueness = Uniqueness() if compares else None
        self.low, self.high = np.inf, -np.inf  # of the values that are no sentinels
        self._sentinels: Counter[float] = Counter()

    @property
    def sentinels(self) -> dict[float, int]:
        """Values that may mark missing ones, each with its number of rows."""
        span = self.high - self.low
        return {
            value: count
            for value, count in self._sentinels.items()
            if count > 1 and not self.low - span <= value <= self.high + span and span > 0
        }

    def _add_extremes(self, finite: np.ndarray) -> None:
        """Add the least and the largest values; sentinels are looked for among these."""
        while len(finite):
            low, high = float(finite.min()), float(finite.max())
            found = [value for value in {low, high} if value in SENTINELS]
            if not found:
                self.low, self.high = min(self.low, low), max(self.high, high)
                return
            for value in found:
                self._sentinels[value] += int(np.sum(finite == value))
                finite = finite[finite != value]

    def add(self, column: pa.Array, marks: MissingMarks) -> None:
        """Add the numbers of the next rows."""
        values = marks.in_numbers(to_float64(column))
        present = ~np.isnan(values)
        self.rows, self.present = self.rows + len(values), self.present + int(present.sum())
        is_finite = np.isfinite(values)
        finite = values if is_finite.all() else values[is_finite]
        self.has_decimals = self.has_decimals or bool(np.any(finite != np.rint(finite)))
        self._add_extremes(finite)
        largest = max(finite.max(initial=0), -finite.min(initial=0))
        self.is_long = self.is_long or bool(largest >= EXACT)
        if self.is_date and len(finite):
            days = days_of_numbers(finite)
            self.is_date = not np.isnan(days).any()
            if len(self.days) < MIN_DAYS:
                self.days.update(days[: 10 * MIN_DAYS].tolist())
        if self.uniqueness is not None and self.uniqueness.is_unique:
            # as integers: float64 does not tell long ones apart
            is_integer = pa.types.is_integer(value_type(column.type))
            exact = column.to_pylist() if is_integer else values.tolist()
            rows = zip(exact, present.tolist(), strict=True)
            self.uniqueness.add([value if here else None for value, here in rows])

    def merge(self, other: NumberSurvey) -> None:
        """Add the numbers of the rows after these."""
        self.rows, self.present = self.rows + other.rows, self.present + other.present
        self.has_decimals |= other.has_decimals
        self.is_long |= other.is_long
        self.is_date &= other.is_date
        self.days |= other.days
        if self.uniqueness is not None and other.uniqueness is not None:
            self.uniqueness.merge(other.uniqueness)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self._sentinels.update(other._sentinels)

    @property
    def is_compact_date(self) -> bool:
        """Whether the values are different dates such as 20240131."""
        return self.is_date and len(self.days - {np.nan}) >= MIN_DAYS


Surveys = dict[str, ColumnSurvey | NumberSurvey]


def survey(
    table: Table,
    names: Sequence[str],
    compared: Callable[[str], bool],
    marks: MissingMarks,
    rows: int,
    units: Mapping[str, str] = NO_UNITS,
    dates: Collection[str] = (),
) -> Surveys:
    """Read columns of a table once, and return what their values look like.

    Parameters
    ----------
    names
        The columns: of numbers, of texts, or of dates.
    compared
        Whether a column of numbers, of this name, may be an id.
    rows
        About how many rows are read at once.
    units
        The units that stand behind the numbers of columns of texts.
    dates
        Columns of numbers that are dates such as 20240131.
    """
    if not names:
        return {}
    is_compared = {name for name in names if compared(name)}
    while True:
        results = list(table.map(_survey_part, names, is_compared, marks, rows, units, dates))
        changed = [part for surveys, part in results if surveys is None]
        for part in changed:  # read the file again with the types that it has
            table.learn_types(part)
        if not changed:
            break
    if table.infers_types:
        table.learn_blank_rows([part for _, part in results])
    table.set_counts([next(iter(surveys.values())).rows for surveys, _ in results])
    found: Surveys = results[0][0]
    for surveys, _ in results[1:]:
        for name, known in found.items():
            known.merge(surveys[name])
    for known in found.values():
        if isinstance(known, ColumnSurvey):
            known.label_rows(table.row_label)
    return found


def _survey_part(
    table: Table,
    names: Sequence[str],
    compared: Collection[str],
    marks: MissingMarks,
    rows: int,
    units: Mapping[str, str],
    dates: Collection[str],
) -> tuple[Surveys | None, Table | None]:
    """Survey a part of a table, and return it, if the pass may have changed it.

    There are no surveys if it has changed the type of a column.
    """
    found: Surveys = {}
    for name in names:
        is_number = is_numeric(value_type(table.types[name]))
        if is_number and name not in dates:
            found[name] = NumberSurvey(name in compared)
        else:
            found[name] = ColumnSurvey(units.get(name, ""))
    try:
        for batch in table.blocks(list(names), rows):
            _add(found, batch, marks)
    except TypesChanged:
        return None, table
    return found, table if table.infers_types else None


def _add(found: Surveys, batch: pa.RecordBatch, marks: MissingMarks) -> None:
    for name, known in found.items():
        column = batch.column(name)
        is_text_column = is_text(value_type(column.type))
        if isinstance(known, ColumnSurvey) and not is_text_column:
            known.add_dates(column, marks)
        else:
            known.add(column, marks)


def is_surveyed(table: Table, name: str) -> bool:
    """Return whether a column has texts, dates or times, so that there is something to find out."""
    column_type = value_type(table.types[name])
    return is_text(column_type) or is_date(column_type) or is_time(column_type)
