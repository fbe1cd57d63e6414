"""What the texts and dates of a column look like, from its rows block by block."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cfgd.apps.fit.column_format import Values, boolean_numbers
from cfgd.apps.fit.date_patterns import DAY_FIRST
from cfgd.apps.fit.dates import (
    ORDERS,
    PARTS,
    DateTexts,
    days_of,
    days_of_numbers,
    hours_of_day,
    is_date,
    is_time,
    part_of,
)
from cfgd.apps.fit.ids import Uniqueness
from cfgd.apps.fit.missing_marks import PLUS, MissingMarks
from cfgd.apps.fit.number_text import (
    DECIMALS,
    MULTIPLES,
    SIGN_LETTERS,
    NumberTexts,
    units_of,
)
from cfgd.apps.fit.table import to_float64

EXAMPLES = 20  # different texts of a class that are remembered
EXAMPLE_ROWS = 4  # rows that are remembered of each
FEW_BESIDE = 2  # texts beside yes and no: with more the column is one of categories
MANY_TEXTS = 10_000  # different texts that are counted
# What names a last row that is the sum or the mean of the others, in several languages.
TOTAL = re.compile(
    r"^(?:(?:grand |sub)?total(?:s|e|en|i|es)?|sums?|summe|gesamt(?:summe)?|insgesamt|somme|"
    r"sum[am]|somma|totaal|soma|mean|average|mittelwert|durchschnitt)\b\W*$",
    re.IGNORECASE,
)
# Dates that mark missing ones: the first and the last of databases, Excel and Unix, and round
# ones; in days since 1970-01-01.
SENTINEL_DAYS = [
    float((datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days)
    for text in (
        "0001-01-01", "1601-01-01", "1753-01-01", "1800-01-01", "1899-12-30", "1899-12-31",
        "1900-01-01", "1901-01-01", "1970-01-01", "2099-12-31", "2999-12-31", "9999-01-01",
        "9999-12-31",
    )
]  # fmt: skip
SHORT_DATE = r"^(?P<first>\d{2})[-/]\d{2}[-/](?P<last>\d{2})$"
UNITS_OF_TIME = r"(?i)\d ?[dhms]|^-?P"  # of durations: 1h 30m and PT1H30M
MIN_DAYS = 3  # different dates such as 20240131: two such numbers may be an accident

TextClass = str  # "number", "date", "time" or "text"


class Examples:
    """The first different texts of a class, with their numbers of rows and their first rows.

    `labels` are the names of these rows in messages.
    """

    def __init__(self) -> None:
        self.count = 0
        self.rows: dict[str, list[int]] = {}
        self.labels: dict[str, list[str]] = {}

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

    def merge(self, other: Examples, before: int) -> None:
        """Add the texts of the rows after these, of which there are `before`."""
        self.count += other.count
        for text, rows in other.rows.items():
            known = self.rows.get(text, [])
            if len(known) >= EXAMPLE_ROWS or (not known and len(self.rows) >= EXAMPLES):
                continue
            shifted = [before + row for row in rows]
            self.rows[text] = [*known, *shifted[: EXAMPLE_ROWS - len(known)]]

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
    digits, longest, compact : int
        How many values are digits alone, the most digits of one, and how many are dates such as
        20240131.
    leading_zeros, minus_behind : Examples
        Digits such as 01234, and numbers such as 12-.
    units : Counter
        How many values are a number with a unit, by the unit.
    """

    def __init__(self, unit: str = "") -> None:
        self.unit = unit  # stands behind all numbers, and is left away
        self.rows = self.present = 0
        self.by_class: dict[TextClass, Examples] = {
            name: Examples() for name in ("number", "date", "time", "text")
        }
        self.decimal = {sign: Examples() for sign in DECIMALS}
        self.group_marks = {sign: Examples() for sign in DECIMALS}
        self.order = {order: Examples() for order in ORDERS}
        self.unordered = Examples()
        # the different first and last fields of dates such as 24-01-31
        self.short_dates, self.first_fields, self.last_fields = 0, set[str](), set[str]()
        self.percent, self.no_percent = Examples(), Examples()
        self.currencies: Counter[str] = Counter()
        self.different: set[str] = set()
        self.days: set[float] = set()  # the first different ones
        self.first_day = dict.fromkeys(ORDERS, np.inf)
        # the first and the last day in either order, and texts that may mark missing dates
        self.low_day, self.high_day = np.inf, -np.inf
        self._sentinels: dict[str, float] = {}
        self.parts: dict[str, dict[str, set[object]]] = {
            order: {part: set() for part in PARTS} for order in ORDERS
        }
        self.uniqueness = Uniqueness()
        self.has_plus = self.has_durations = False
        self.totals, self.last = 0, ""  # texts such as "Total", and the text of the last row
        self.digits = self.longest = self.compact = 0
        self.leading_zeros, self.minus_behind = Examples(), Examples()
        self.units: Counter[str] = Counter()

    def add(self, column: pa.Array, marks: MissingMarks) -> None:
        """Add the texts of the next rows."""
        values = Values.of(column, marks, keeps_minus=self.has_plus)
        if not self.has_plus and PLUS in values.texts.to_pylist():
            self.has_plus = True
            values = Values.of(column, marks, keeps_minus=True)
        values = values.without_unit(self.unit)
        index, before, texts = values.index, self.rows, values.texts.to_pylist()
        self.rows, self.present = before + len(index), self.present + int(np.sum(index >= 0))
        if self.uniqueness.is_unique:
            self.uniqueness.add([texts[i] if i >= 0 else None for i in index.tolist()])
        numbers, dates = NumberTexts(values.texts), DateTexts(values.texts)
        used = np.bincount(index[index >= 0], minlength=len(texts))

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
        self._add_short_dates(values.texts, used)
        both = np.concatenate([dates.days(order)[is_a_date & (used > 0)] for order in ORDERS])
        is_sentinel = np.isin(np.floor(dates.days(DAY_FIRST)), SENTINEL_DAYS) & is_a_date
        for i in np.flatnonzero(is_sentinel & (used > 0)):
            self._sentinels[texts[i]] = float(dates.days(DAY_FIRST)[i])
        both = both[~np.isnan(both) & ~np.isin(np.floor(both), SENTINEL_DAYS)]
        self.low_day = min(self.low_day, both.min(initial=np.inf))
        self.high_day = max(self.high_day, both.max(initial=-np.inf))
        hours = hours_of_day(values.texts)
        is_time = ~is_number & ~is_a_date & ~np.isnan(hours)
        add(self.by_class["time"], is_time)
        in_words = np.asarray(pc.match_substring_regex(values.texts, UNITS_OF_TIME), bool)
        self.has_durations |= bool(np.any(is_time & (in_words | (hours >= 24) | (hours < 0))))
        is_other = add(self.by_class["text"], ~is_number & ~is_a_date & ~is_time)
        others = np.flatnonzero(is_other & (used > 0))
        if len(self.different) <= MANY_TEXTS:
            self.different.update(texts[i] for i in others.tolist())
        if len(self.units) <= EXAMPLES:
            for i, unit in zip(others, units_of(values.texts.take(pa.array(others))), strict=True):
                self.units[unit] += int(used[i])
        self.totals += sum(int(used[i]) for i in others.tolist() if TOTAL.match(texts[i]))
        self.last = texts[index[-1]] if len(index) and index[-1] >= 0 else ""
        is_digits = np.array([text.isascii() and text.isdigit() for text in texts], bool)
        self.digits += int(used[is_digits].sum())
        self.longest = max([self.longest, *(len(texts[i]) for i in np.flatnonzero(is_digits))])
        self.compact += int(used[is_digits & dates.matches(DAY_FIRST)].sum())
        starts = np.array([text[:1] == "0" and len(text) > 1 for text in texts], bool)
        add(self.leading_zeros, is_digits & starts)
        add(self.minus_behind, is_number & numbers.minus_behind)

    def _add_short_dates(self, texts: pa.Array, used: np.ndarray) -> None:
        found = pc.extract_regex(texts, SHORT_DATE)
        for part, count in zip(found.to_pylist(), used.tolist(), strict=True):
            if part is not None and count:
                self.short_dates += int(count)
                self.first_fields.add(part["first"])
                self.last_fields.add(part["last"])

    @property
    def begins_with_years(self) -> bool:
        """Whether dates such as 24-01-31 seem to begin with the year: it varies less than a day."""
        return (
            self.short_dates == self.by_class["date"].count > 0
            and len(self.first_fields) < len(self.last_fields)
            and max(map(int, self.last_fields)) <= 31
        )

    def add_dates(self, column: pa.Array, marks: MissingMarks) -> None:
        """Add the next rows of a column of dates or times of an Arrow type, or such as 20240131."""
        if is_time(column.type):
            self.rows, self.present = (
                self.rows + len(column),
                self.present + len(column) - column.null_count,
            )
            self.by_class["time"].count = self.present
            self.has_durations |= pa.types.is_duration(column.type)
            return
        if is_date(column.type):
            days = days_of(column)
        else:
            days = days_of_numbers(marks.in_numbers(to_float64(column)))
        self.rows, self.present = self.rows + len(days), self.present + int(np.sum(~np.isnan(days)))
        self.by_class["date"].count = self.present
        for order in ORDERS:
            self._add_days(order, days)

    def _add_days(self, order: str, days: np.ndarray) -> None:
        days = days[~np.isnan(days)]
        if len(self.days) < MIN_DAYS:
            self.days.update(days[: 10 * MIN_DAYS].tolist())
        self.first_day[order] = min(self.first_day[order], days.min(initial=np.inf))
        for part, seen in self.parts[order].items():
            if len(days) and len(seen) < 2:
                seen.update(part_of(days, part).unique().to_pylist())

    def merge(self, other: ColumnSurvey) -> None:
        """Add the texts of the rows after these."""
        before = self.rows
        self.rows, self.present = before + other.rows, self.present + other.present
        for mine, theirs in zip(self._examples(), other._examples(), strict=True):
            mine.merge(theirs, before)
        self.currencies.update(other.currencies)
        if len(self.different) <= MANY_TEXTS:
            self.different |= other.different
        self.short_dates += other.short_dates
        self.first_fields |= other.first_fields
        self.last_fields |= other.last_fields
        self.days |= other.days
        self.low_day = min(self.low_day, other.low_day)
        self.high_day = max(self.high_day, other.high_day)
        self._sentinels |= other._sentinels
        for order, parts in self.parts.items():
            self.first_day[order] = min(self.first_day[order], other.first_day[order])
            for part, seen in parts.items():
                seen |= other.parts[order][part]
        self.uniqueness.merge(other.uniqueness)
        self.has_plus |= other.has_plus
        self.has_durations |= other.has_durations
        self.totals += other.totals
        self.last = other.last if other.rows else self.last
        self.digits, self.compact = self.digits + other.digits, self.compact + other.compact
        self.longest = max(self.longest, other.longest)
        self.units.update(other.units)

    def label_rows(self, label: Callable[[int], str]) -> None:
        """Name the rows of examples as messages do."""
        for examples in self._examples():
            examples.labels = {text: list(map(label, rows)) for text, rows in examples.rows.items()}

    def _examples(self) -> list[Examples]:
        by_name = (self.by_class, self.decimal, self.group_marks, self.order)
        others = self.unordered, self.percent, self.no_percent, self.leading_zeros
        return [*(one for found in by_name for one in found.values()), *others, self.minus_behind]

    @property
    def total(self) -> str:
        """The text by which the last row is the total of the others, "" for none."""
        return self.last if self.totals == 1 and TOTAL.match(self.last) else ""

    @property
    def sentinels(self) -> list[str]:
        """Dates that may mark missing ones, farther from all others than these from each other."""
        span = self.high_day - self.low_day
        return [
            text
            for text, day in self._sentinels.items()
            if span > 0 and not self.low_day - span <= day <= self.high_day + span
        ]

    @property
    def is_compact_date(self) -> bool:
        """Whether the values are different dates such as 20240131."""
        return self.compact == self.present and len(self.days) >= MIN_DAYS

    @property
    def codes(self) -> int:
        """How many values are digits, if one of them has a leading zero and all are digits."""
        return self.digits if self.leading_zeros.count and self.digits == self.present else 0

    @property
    def several_units(self) -> dict[str, int]:
        """How many values have which unit, "" for none, if all are numbers in several units."""
        units = {unit: count for unit, count in self.units.items() if unit}
        bare = self.by_class["number"].count
        if len(units) + bool(bare) < 2 or bare + sum(units.values()) < self.present:
            return {}
        is_known = MULTIPLES.issuperset(units) or SIGN_LETTERS.issuperset(units)
        if (
            len(units) > 1 and not is_known and not _is_one_noun(units)
        ):  # as 1st and 2nd, or 12a and 12b
            return {}
        return units | ({"": bare} if bare else {})

    @property
    def same_but_for_case(self) -> list[str]:
        """The first texts that differ only in upper and lower case; none for yes and Yes."""
        if self.boolean_words is not None:
            return []
        found: dict[str, list[str]] = {}
        for text in sorted(self.different):
            found.setdefault(text.casefold(), []).append(text)
        return next((texts for texts in found.values() if len(texts) > 1), [])

    @property
    def boolean_words(self) -> tuple[str, str] | None:
        """The two words for yes and no that all texts of the column are, or None."""
        words = {word.lower() for word in self.different}
        if len(words) != 2 or self.by_class["text"].count < self.present:
            return None
        return _yes_and_no(words)

    @property
    def texts_beside_booleans(self) -> list[str]:
        """The few texts beside one word for yes and one for no, which are all others."""
        if self.by_class["text"].count < self.present or len(self.different) > EXAMPLES:
            return []
        texts = sorted(self.different)
        is_other = np.isnan(boolean_numbers(pa.array(texts, pa.string())))
        others = [text for text, other in zip(texts, is_other, strict=True) if other]
        words = {text.lower() for text in self.different - set(others)}
        is_few = 0 < len(others) <= FEW_BESIDE and len(words) == 2
        return others if is_few and _yes_and_no(words) else []


def _is_one_noun(units: Collection[str]) -> bool:
    """Return whether units are one noun and its plural, as day and days, or Tag and Tage."""
    noun = min(units, key=len)
    return len(noun) > 2 and all(
        unit.startswith(noun) and len(unit) <= len(noun) + 2 for unit in units
    )


def _yes_and_no(words: set[str]) -> tuple[str, str] | None:
    """Return which of two words means yes, and which no; None if they do not."""
    by_number = dict(zip(boolean_numbers(pa.array(sorted(words))), sorted(words), strict=True))
    return (by_number[1.0], by_number[0.0]) if set(by_number) == {0.0, 1.0} else None
