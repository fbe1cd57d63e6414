"""One pass over a table that finds out how the texts of its columns are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from cfgd.apps.fit.column_format import Values, boolean_numbers
from cfgd.apps.fit.csv_table import TypesChanged
from cfgd.apps.fit.dates import ORDERS, PARTS, DateTexts, days_of, hours_of_day, is_date, part_of
from cfgd.apps.fit.ids import Uniqueness
from cfgd.apps.fit.missing_marks import PLUS, MissingMarks
from cfgd.apps.fit.number_text import DECIMALS, NumberTexts
from cfgd.apps.fit.table import Table, is_numeric, is_text, to_float64, value_type

EXAMPLES = 20  # different texts of a class that are remembered
EXAMPLE_ROWS = 3  # rows that are remembered of each
MANY_TEXTS = 10_000  # different texts that are counted

TextClass = str  # "number", "date", "time" or "text"


class Examples:
    """The first different texts of a class, with their numbers of rows and their first rows."""

    def __init__(self) -> None:
        self.count = 0
        self.rows: dict[str, list[int]] = {}

    def add(self, texts: list[str], chosen: np.ndarray, index: np.ndarray, before: int) -> None:
        """Add the texts that are chosen; `before` is the number of rows before these."""
        rows_of = np.bincount(index[index >= 0], minlength=len(texts))
        self.count += int(rows_of[chosen].sum())
        for i in np.flatnonzero(chosen & (rows_of > 0))[: 10 * EXAMPLES].tolist():
            known = self.rows.get(texts[i], [])
            if len(known) >= EXAMPLE_ROWS or (not known and len(self.rows) >= EXAMPLES):
                continue
            found = np.flatnonzero(index == i)[: EXAMPLE_ROWS - len(known)]
            self.rows[texts[i]] = [*known, *(before + 1 + found).tolist()]

    @property
    def first(self) -> str:
        """The first text, as a reader sees it."""
        return repr(next(iter(self.rows), ""))


class ColumnSurvey:
    """What the texts of a column look like.

    Attributes
    ----------
    rows, present : int
        All rows, and those that have a value.
    by_class : dict
        Examples of the texts that are numbers, dates, times of day, and other ones.
    decimal, group_marks : Examples
        Numbers that have one of the two decimal signs for certain, and those that may have either.
    order, unordered : Examples
        Dates that have one of the two orders for certain, and those that may have either.
    """

    def __init__(self) -> None:
        self.rows = self.present = 0
        self.by_class: dict[TextClass, Examples] = {
            name: Examples() for name in ("number", "date", "time", "text")
        }
        self.decimal = {sign: Examples() for sign in DECIMALS}
        self.group_marks = {sign: Examples() for sign in DECIMALS}
        self.order = {order: Examples() for order in ORDERS}
        self.unordered = Examples()
        self.percent, self.no_percent = Examples(), Examples()
        self.currencies: Counter[str] = Counter()
        self.different: set[str] = set()
        self.first_day = dict.fromkeys(ORDERS, np.inf)
        self.parts: dict[str, dict[str, set[object]]] = {
            order: {part: set() for part in PARTS} for order in ORDERS
        }
        self.uniqueness = Uniqueness()
        self.has_plus = False

    def add(self, column: pa.Array, marks: MissingMarks) -> None:
        """Add the texts of the next rows."""
        values = Values.of(column, marks, keeps_minus=self.has_plus)
        if not self.has_plus and PLUS in values.texts.to_pylist():
            self.has_plus = True
            values = Values.of(column, marks, keeps_minus=True)
        index, before, texts = values.index, self.rows, values.texts.to_pylist()
        self.rows, self.present = before + len(index), self.present + int(np.sum(index >= 0))
        if self.uniqueness.is_unique:
            self.uniqueness.add([texts[i] if i >= 0 else None for i in index.tolist()])
        numbers, dates = NumberTexts(values.texts), DateTexts(values.texts)

        def add(examples: Examples, chosen: np.ndarray) -> np.ndarray:
            examples.add(texts, chosen, index, before)
            return chosen

        point, comma = numbers.matches["."], numbers.matches[","]
        is_number = add(self.by_class["number"], point | comma)
        for sign, chosen in ((".", point & ~comma), (",", comma & ~point)):
            add(self.decimal[sign], chosen)
            add(self.group_marks[sign], numbers.has_group_mark & numbers.has_sign(sign))
        is_zero = (numbers.values(".") == 0) | (numbers.values(",") == 0)
        add(self.percent, is_number & numbers.percent)
        add(self.no_percent, is_number & ~numbers.percent & ~is_zero)
        self.currencies.update(
            text for text, chosen in zip(numbers.currency, is_number, strict=True) if chosen
        )
        by_order = {order: dates.matches(order) for order in ORDERS}
        is_a_date = add(self.by_class["date"], ~is_number & (by_order["dmy"] | by_order["mdy"]))
        for order, other in (ORDERS, ORDERS[::-1]):
            add(self.order[order], is_a_date & by_order[order] & ~by_order[other])
            self._add_days(order, dates.days(order))
        add(self.unordered, is_a_date & dates.ambiguous)
        is_time = ~is_number & ~is_a_date & ~np.isnan(hours_of_day(values.texts))
        add(self.by_class["time"], is_time)
        used = np.bincount(index[index >= 0], minlength=len(texts)) > 0
        is_other = add(self.by_class["text"], ~is_number & ~is_a_date & ~is_time)
        others = [texts[i] for i in np.flatnonzero(is_other & used).tolist()]
        if len(self.different) <= MANY_TEXTS:
            self.different.update(others)

    def add_dates(self, column: pa.Array) -> None:
        """Add the next rows of a column of dates of an Arrow type."""
        days = days_of(column)
        self.rows, self.present = self.rows + len(days), self.present + int(np.sum(~np.isnan(days)))
        self.by_class["date"].count = self.present
        for order in ORDERS:
            self._add_days(order, days)

    def _add_days(self, order: str, days: np.ndarray) -> None:
        days = days[~np.isnan(days)]
        self.first_day[order] = min(self.first_day[order], days.min(initial=np.inf))
        for part, seen in self.parts[order].items():
            if len(days) and len(seen) < 2:
                seen.update(part_of(days, part).unique().to_pylist())

    @property
    def boolean_words(self) -> tuple[str, str] | None:
        """The two words for yes and no that all texts of the column are, or None."""
        words = {word.lower() for word in self.different}
        if len(words) != 2 or self.by_class["text"].count < self.present:
            return None
        by_number = dict(zip(boolean_numbers(pa.array(sorted(words))), sorted(words), strict=True))
        return (by_number[1.0], by_number[0.0]) if set(by_number) == {0.0, 1.0} else None


class NumberSurvey:
    """What a column of numbers looks like: how many values, and whether they are an id."""

    def __init__(self, compares: bool) -> None:
        self.rows = self.present = 0
        self.has_decimals = False
        self.uniqueness = Uniqueness() if compares else None

    def add(self, column: pa.Array, marks: MissingMarks) -> None:
        """Add the numbers of the next rows."""
        values = marks.in_numbers(to_float64(column))
        present = ~np.isnan(values)
        self.rows, self.present = self.rows + len(values), self.present + int(present.sum())
        finite = values[np.isfinite(values)]
        self.has_decimals |= bool(np.any(finite != np.round(finite)))
        if self.uniqueness is not None and self.uniqueness.is_unique:
            rows = zip(values.tolist(), present.tolist(), strict=True)
            self.uniqueness.add([value if here else None for value, here in rows])


Surveys = dict[str, ColumnSurvey | NumberSurvey]


def survey(
    table: Table,
    names: Sequence[str],
    compared: Callable[[str], bool],
    marks: MissingMarks,
    rows: int,
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
    """
    while True:
        found: Surveys = {}
        for name in names:
            is_number = is_numeric(value_type(table.types[name]))
            found[name] = NumberSurvey(compared(name)) if is_number else ColumnSurvey()
        try:
            for batch in table.blocks(list(names), rows) if names else ():
                _add(found, batch, marks)
            return found
        except TypesChanged:  # read the file again with the types that it has
            continue


def _add(found: Surveys, batch: pa.RecordBatch, marks: MissingMarks) -> None:
    for name, known in found.items():
        column = batch.column(name)
        if isinstance(known, ColumnSurvey) and is_date(column.type):
            known.add_dates(column)
        else:
            known.add(column, marks)


def is_surveyed(table: Table, name: str) -> bool:
    """Return whether there is something to find out about a column: it has texts or dates."""
    column_type = value_type(table.types[name])
    return is_text(column_type) or is_date(column_type)
