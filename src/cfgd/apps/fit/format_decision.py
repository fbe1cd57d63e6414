"""Decide what each column of a table is, from what its values look like."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from cfgd.apps.fit.column_format import (
    ANY_ORDER,
    BAD_AS_MISSING,
    ColumnFormat,
)
from cfgd.apps.fit.column_survey import EXAMPLE_ROWS, ColumnSurvey, Examples
from cfgd.apps.fit.date_patterns import DAY_FIRST, MONTH_FIRST
from cfgd.apps.fit.dates import ORDER_NAMES, ORDERS, PARTS, date_of
from cfgd.apps.fit.formats import typed
from cfgd.apps.fit.number_text import COMMA, DECIMALS, NAMES, POINT
from cfgd.apps.fit.reading_options import DAYS, ReadingOptions
from cfgd.apps.fit.survey import NumberSurvey, Surveys

# A column of which at least this share is numbers is a column of numbers with bad values ...
NUMBERS_SHARE = 0.5
# ... unless more different texts than this are in more rows than this share of it.
FEW_TEXTS, FEW_ROWS_SHARE = 20, 0.05
MOST_HEADER_ROWS = 3  # below the names: survey tools write questions and ids, instruments units
SHOWN_TEXTS = 5  # bad values that a message names
EXACT_DIGITS = 15  # of an integer that float64 has for certain


def texts_and_rows(examples: Examples, most: int = SHOWN_TEXTS) -> str:
    """Return the first texts with their rows, for a message."""
    shown = [
        f"{text!r} (row{'s' * (len(rows) > 1)} {_rows(rows)})"
        for text, rows in list(examples.labels.items())[:most]
    ]
    more = ", ..." if len(examples.labels) > most > 1 else ""
    return ", ".join(shown) + more


def _rows(rows: list[str]) -> str:
    more = ", ..." if len(rows) == EXAMPLE_ROWS else ""
    return ", ".join(rows[: EXAMPLE_ROWS - 1]) + more


def decide_decimal(
    path: Path, surveys: Surveys, of_numbers: dict[str, str], fallback: str | None
) -> tuple[str, list[str]]:
    """Return the decimal sign of a file, and the columns for which other columns decide it.

    Parameters
    ----------
    surveys
        Of the columns of texts, some of which are numbers.
    of_numbers
        The sign with which columns were read as numbers already, and where; empty if none of
        them has decimals.
    fallback
        The sign where no value tells it; None for an error then, if there are doubtful numbers.

    Raises
    ------
    ValueError
        If the values of the file do not decide it, or contradict each other.
    """
    found = dict(of_numbers)  # for each sign where it is
    doubtful: dict[str, str] = {}
    for name, known in surveys.items():
        if not isinstance(known, ColumnSurvey) or not _is_mostly_numbers(known):
            continue
        for sign in DECIMALS:
            if known.decimal[sign].count and sign not in found:
                found[sign] = f"{known.decimal[sign].first} in the column {name!r}"
        marks = [one for one in known.group_marks.values() if one.count]
        if marks and not any(known.decimal[sign].count for sign in DECIMALS):
            doubtful[name] = marks[0].first
    if len(found) > 1:
        raise ValueError(
            f"{path} has {NAMES[POINT]} ({found[POINT]}) and {NAMES[COMMA]} ({found[COMMA]}): "
            "--decimal . or --decimal , says which it is, --drop leaves a column out."
        )
    if found:
        return next(iter(found)), list(doubtful)
    if doubtful and fallback is None:
        name, text = next(iter(doubtful.items()))
        raise ValueError(
            f"{path}: the column {name!r} is ambiguous, since no other number of the file tells "
            f"whether {text} is in thousands: use --decimal . or --decimal , to say it."
        )
    return fallback or POINT, list(doubtful)


def _is_mostly_numbers(known: ColumnSurvey) -> bool:
    return known.by_class["number"].count >= max(1, NUMBERS_SHARE * known.present)


def decide_order(
    path: Path,
    surveys: Surveys,
    given: str | None,
    names: list[str],
    remedy: str = "use --date-order mdy or --date-order dmy to say it",
) -> dict[str, str]:
    """Return for each column of dates whether days or months come first.

    Columns whose dates are ambiguous take the order of the others; raise a `ValueError` if no
    column shows an order.
    """
    certain: dict[str, str] = {}
    doubtful: dict[str, str] = {}
    for name in names:
        known = surveys[name]
        assert isinstance(known, ColumnSurvey)
        days, months = known.order[DAY_FIRST], known.order[MONTH_FIRST]
        if given is None and known.begins_with_years:
            text = next(iter(known.by_class["date"].rows))
            raise ValueError(
                f"{path}: the column {name!r} has dates such as {text!r}, which seem to begin with "
                f"a year of two digits: write it with four; if they do not, {remedy}."
            )
        if days.count and months.count:
            raise ValueError(
                f"{path}: the column {name!r} has dates with the day before the month, "
                f"{texts_and_rows(days, 1)}, and with the month before the day, "
                f"{texts_and_rows(months, 1)}: change the file, or {typed('--drop', name)}."
            )
        if given is not None:
            certain[name] = given
        elif known.order[DAY_FIRST].count or known.order[MONTH_FIRST].count:
            certain[name] = max(ORDERS, key=lambda order: known.order[order].count)
        elif known.unordered.count:
            doubtful[name] = known.unordered.first
    orders = set(certain.values())
    if doubtful and len(orders) != 1:
        name, text = next(iter(doubtful.items()))
        raise ValueError(
            f"{path}: the column {name!r} is ambiguous: nothing tells whether {text} has the "
            f"month or the day first: {remedy}."
        )
    default = next(iter(orders), DAY_FIRST)
    return {name: certain.get(name, default) for name in names}


class FormatDecision:
    """The formats of the columns of a file, with sentences about what is not obvious."""

    def __init__(
        self, path: Path, surveys: Surveys, options: ReadingOptions, decimal: str, target: str
    ) -> None:
        self.path, self.surveys, self.options = path, surveys, options
        self.decimal, self.target = decimal, target
        self.said: dict[str, list[str]] = {}  # columns by sentence
        self.sentences: list[str] = []

    def formats(self, names: list[str]) -> list[ColumnFormat]:
        """Return the formats of the columns of texts and dates of these names."""
        kinds = {name: self._kind(name) for name in names}
        dates = [name for name, kind in kinds.items() if kind == "date"]
        orders = decide_order(self.path, self.surveys, self.options.date_order, dates)
        return [
            self._date(name, orders[name]) if name in orders else self._format(name, kind)
            for name, kind in kinds.items()
        ]

    def _format(self, name: str, kind: str) -> ColumnFormat:
        known = self.surveys[name]
        assert isinstance(known, ColumnSurvey)
        unit = known.unit if kind == "number" else ""
        return ColumnFormat(name, kind, keeps_minus=known.has_plus, unit=unit)  # type: ignore[arg-type]

    def _kind(self, name: str) -> str:
        known = self.surveys[name]
        assert isinstance(known, ColumnSurvey)
        if name in self.options.category:
            return "category"
        present = known.present
        for kind in ("number", "date", "time"):
            if known.by_class[kind].count < max(1, present):
                continue
            if kind == "number" and name not in self.options.number:
                if known.is_compact_date:
                    return "date"
                if known.codes:
                    self._describe_code(name, known)
                    return "text"
            if kind == "number":
                self._describe_numbers(name, known)
            elif kind == "time" and known.has_durations:
                self._say("{} a duration, read as hours", name)
            elif kind == "time":
                self._say("{} a time of day, read as hours since midnight", name)
            return kind
        words = known.boolean_words
        if words is not None and name != self.target:
            self._say(f"{{}} read as 1 for {words[0]!r} and 0 for {words[1]!r}", name)
            return "boolean"
        for kind in ("number", "date", "time"):
            if self._is_nearly(kind, known):
                self._check_bad_values(name, kind, known)
                if kind == "number":
                    self._describe_numbers(name, known)
                return kind
        self._check_units(name, known)
        self._describe_case(name, known)
        beside = known.texts_beside_booleans
        if beside and name != self.target:
            shown = " and ".join(map(repr, beside))
            self._say(f"{{}} taken as text, since it has {shown} beside words for yes and no", name)
        numbers = known.by_class["number"].count
        if numbers:
            self._say(
                f"{{}} taken as text, though {numbers:,} of {present:,} values are numbers", name
            )
        return "text"

    def _describe_code(self, name: str, known: ColumnSurvey) -> None:
        """Say that digits are a code, such as a postcode."""
        first = known.leading_zeros.first
        self.sentences.append(
            f"The column {name!r} is taken as text, since {first} has a leading zero "
            f"({typed('--number', name)} takes it as numbers)."
        )

    def _describe_case(self, name: str, known: ColumnSurvey) -> None:
        """Warn of texts that differ only in upper and lower case; refuse a target of them.

        Of a target only words for yes and no are refused: other such texts may be different, as
        the genotypes Aa and aa.
        """
        same = known.same_but_for_case
        if name == self.target and known.boolean_words and len(known.different) > 2:
            raise ValueError(
                f"{self.path}: the target {name!r} writes its two values in "
                f"{len(known.different)} ways ({', '.join(map(repr, sorted(known.different)))}): "
                "write each in one way."
            )
        if same:
            self.sentences.append(
                f"Warning: the column {name!r} has {' and '.join(map(repr, same[:2]))}, which "
                "differ only in upper and lower case and are two levels."
            )

    def _check_units(self, name: str, known: ColumnSurvey) -> None:
        """Raise a `ValueError` for numbers of which only some have a unit, or in several units."""
        units = known.several_units
        if not units:
            return
        bare = units.pop("", 0)
        shown = [f"{unit!r} in {count:,} rows" for unit, count in units.items()]
        without = f", without in {bare:,}" if bare else ""
        unit = "unit" if len(units) == 1 else "units"
        self._refuse(name, f"has numbers with the {unit} {', '.join(shown)}{without}")

    def _is_nearly(self, kind: str, known: ColumnSurvey) -> bool:
        good = known.by_class[kind].count
        bad = known.present - good
        if not good or good < NUMBERS_SHARE * known.present:
            return False
        return len(known.different) <= FEW_TEXTS or bad <= FEW_ROWS_SHARE * known.present

    def _check_bad_values(self, name: str, kind: str, known: ColumnSurvey) -> None:
        """Raise a `ValueError` for bad values, or say that they are missing."""
        good = known.by_class[kind].count
        bad = known.present - good
        others = (found for other, found in known.by_class.items() if other != kind)
        examples = next(found for found in others if found.count)
        values = f"{bad:,} value{'s are' if bad > 1 else ' is'} not: {texts_and_rows(examples)}"
        if name in examples.rows and self.options.bad_values != BAD_AS_MISSING:
            raise ValueError(
                f"{self.path}: the header is repeated in row {_rows(examples.labels[name])}, as in "
                "files that were put together: delete it there."
            )
        noun = "date" if kind == "date" else "number" if kind == "number" else "time of day"
        if self.options.bad_values != BAD_AS_MISSING and self._is_second_header(examples, bad):
            seem = "are not, and these rows seem" if bad > 1 else "is not, and this row seems"
            raise ValueError(
                f"{self.path}: the column {name!r} is a {noun} in {good:,} rows, but "
                f"{texts_and_rows(examples)} {seem} to belong to the header, with units or a "
                f"second line of names: delete {'them' if bad > 1 else 'it'}."
            )
        if self.options.bad_values == BAD_AS_MISSING:
            self.sentences.append(
                f"The column {name!r} is a {noun} in {good:,} rows; {values}, taken as missing."
            )
            return
        raise ValueError(
            f"{self.path}: the column {name!r} is a {noun} in {good:,} rows, but {values}: "
            f"--bad-values missing takes them as missing values, --na TEXT one of them, and "
            f"{typed('--category', name)} takes the column as categories."
        )

    def _is_second_header(self, examples: Examples, bad: int) -> bool:
        """Return whether the bad values of a column are the first rows of a table.

        No other column has only numbers, then.
        """
        rows = sorted(row for found in examples.rows.values() for row in found)
        if bad > MOST_HEADER_ROWS or rows != list(range(1, bad + 1)):
            return False
        return not any(
            isinstance(known, NumberSurvey) and known.present == known.rows
            for known in self.surveys.values()
        )

    def _describe_numbers(self, name: str, known: ColumnSurvey) -> None:
        currencies = sorted(filter(None, known.currencies))
        if len(currencies) > 1:
            self._refuse(name, f"has more than one currency: {', '.join(currencies)}")
        if known.unit:
            self._say(f"{{}} a number, without the unit {known.unit!r}", name)
        if known.minus_behind.count:
            self._say(
                f"{{}} a number; a minus sign may follow it, as in {known.minus_behind.first}", name
            )
        if known.longest > EXACT_DIGITS:
            self._say(f"{{}} rounded to {EXACT_DIGITS} digits, the precision of float64", name)
        if currencies:
            self._say(f"{{}} a number, without the sign {currencies[0]}", name)
        if known.percent.count:
            if known.no_percent.count:
                self._refuse(
                    name,
                    f"has percent signs, but not in all rows: {texts_and_rows(known.no_percent)}",
                )
            self._say("{} divided by 100: 12 % is read as 0.12", name)

    def _refuse(self, name: str, cause: str) -> NoReturn:
        raise ValueError(
            f"{self.path}: the column {name!r} {cause}: change the file, or leave the column out "
            f"with {typed('--drop', name)}."
        )

    def _date(self, name: str, order: str) -> ColumnFormat:
        known = self.surveys[name]
        assert isinstance(known, ColumnSurvey)
        since = date_of(known.first_day[order])
        is_ordered = known.order[order].count + known.unordered.count > 0
        shown = f" ({ORDER_NAMES[order]})" if is_ordered else ""
        kept = order if is_ordered else ANY_ORDER
        if self.options.dates == DAYS or name == self.target:
            self._say(f"{{}} a date{shown}, read as days since {since}", name)
            first = float(known.first_day[order] // 1)
            return ColumnFormat(name, "date", kept, first)
        parts = tuple(part for part in PARTS if len(known.parts[order][part]) > 1)
        constant = [part for part in PARTS if part not in parts]
        left_out = (
            f"; the {' and the '.join(constant)} is constant and left out" if constant else ""
        )
        self._say(f"{{}} a date{shown}, read as {', '.join(parts)}{left_out}", name)
        return ColumnFormat(name, "parts", kept, parts=parts)

    def _say(self, sentence: str, name: str) -> None:
        self.said.setdefault(sentence, []).append(name)

    def all_sentences(self) -> list[str]:
        """Return the sentences, one for all columns of which the same is to be said."""
        return [
            *(f"{sentence.format(subject(names))}." for sentence, names in self.said.items()),
            *self.sentences,
        ]


def subject(names: list[str], most: int = 10) -> str:
    """Return columns as the beginning of a sentence, with its verb.

    >>> subject(["a"]), subject(["a", "b"])
    ("The column 'a' is", "The columns 'a', 'b' are each")
    """
    if len(names) == 1:
        return f"The column {names[0]!r} is"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"The columns {', '.join(map(repr, names[:most]))}{more} are each"
