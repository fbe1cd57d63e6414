"""How the values of a column are written, and their conversion to numbers and texts.

`survey` finds the formats of a table, model.json holds them, and predictions read by them.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cfgd.apps.fit.date_patterns import DAY_FIRST
from cfgd.apps.fit.dates import (
    DateTexts,
    days_of,
    days_of_numbers,
    hours_of,
    hours_of_day,
    is_date,
    is_time,
    part_of,
)
from cfgd.apps.fit.missing_marks import MINUS, MissingMarks
from cfgd.apps.fit.number_text import POINT, NumberTexts, without_unit
from cfgd.apps.fit.table import is_numeric, of_float64, to_float64, value_type

# "category" is a column of numbers or texts that --category names, "parts" are those of a date
FormatKind: TypeAlias = Literal[
    "number", "boolean", "date", "parts", "time", "text", "category", "id"
]
KINDS: tuple[str, ...] = (
    "number", "boolean", "date", "parts", "time", "text", "category", "id",
)  # fmt: skip
# The words of spreadsheets and surveys for true and yes, and for false and no, in the languages of
# Europe, Turkish, Chinese and Japanese.
# fmt: off
YES = (
    "true", "t", "yes", "y", "on", "wahr", "ja", "j", "vrai", "oui", "verdadero", "sí", "si", "sì",
    "vero", "verdadeiro", "sim", "waar", "prawda", "tak", "ano", "pravda", "igen", "igaz", "sant",
    "sand", "kyllä", "tosi", "da", "evet", "doğru", "да", "истина", "так", "是", "はい", "✓", "✔",
)
NO = (
    "false", "f", "no", "n", "off", "falsch", "nein", "faux", "non", "falso", "não", "nao", "nee",
    "onwaar", "fałsz", "nie", "ne", "nepravda", "nem", "hamis", "nej", "nei", "falskt", "falsk",
    "usann", "ei", "epätosi", "nu", "hayır", "yanlış", "нет", "ложь", "ні", "否", "いいえ", "✗",
    "✘",
)
# fmt: on
ANY_ORDER = ""  # that of a file whose dates are all written in another way
# spaces of no width, marks of the direction of writing, and byte order marks within a file
INVISIBLE = r"[\x{200b}\x{200e}\x{200f}\x{2060}\x{feff}]"
TEXT_KINDS = ("text", "category")
REFUSE_BAD, BAD_AS_MISSING = "refuse", "missing"
BAD_VALUES = (REFUSE_BAD, BAD_AS_MISSING)


@dataclasses.dataclass(frozen=True)
class ColumnFormat:
    """The format of one column of a file.

    Attributes
    ----------
    name, kind : str
        Of the column.
    order : "dmy", "mdy" or ""
        Of the days and months of dates such as 3/4/2024; "" where the training data have none such.
    since : float
        The days from 1970-01-01 to the date that is day 0.
    parts : tuple of "year", "month", "weekday"
        The columns that a date becomes, if its kind is "parts".
    keeps_minus : bool
        Whether "-" is a text of the column and no mark of a missing value.
    unit : str
        What stands behind all numbers of the column, such as kg.
    """

    name: str
    kind: FormatKind
    order: str = DAY_FIRST
    since: float = 0.0
    parts: tuple[str, ...] = ()
    keeps_minus: bool = False
    unit: str = ""

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The names and types of the columns that this column becomes."""
        if self.kind == "parts":
            return {
                f"{self.name} {part}": pa.float64() if part == "year" else pa.string()
                for part in self.parts
            }
        return {self.name: pa.string() if self.kind in TEXT_KINDS else pa.float64()}


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a file was read: what predictions from other files need.

    `decimal` is the sign before decimals, `na` the marks of missing values besides the usual ones,
    and `bad_values` what texts among numbers are: errors, or missing values.
    """

    decimal: str = POINT
    na: tuple[str, ...] = ()
    bad_values: str = REFUSE_BAD
    columns: tuple[ColumnFormat, ...] = ()

    @property
    def marks(self) -> MissingMarks:
        return MissingMarks(self.na)

    @property
    def ids(self) -> list[str]:
        """The names of the columns that are written through to the predictions."""
        return [column.name for column in self.columns if column.kind == "id"]


@dataclasses.dataclass(frozen=True)
class Values:
    """The different texts of a column, trimmed, and for each row the index of its text, or -1."""

    texts: pa.Array
    index: np.ndarray

    @classmethod
    def of(cls, column: pa.Array, marks: MissingMarks, keeps_minus: bool = False) -> Values:
        """Return the texts of a column; missing values have the index -1."""
        if not pa.types.is_dictionary(column.type):
            column = _as_texts(column).dictionary_encode()
        texts = _as_texts(column.dictionary)
        index = np.array(pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False), int)
        filled = pc.utf8_trim_whitespace(_without_guards(pc.fill_null(texts, "")))
        is_mark = marks.in_texts(filled, (MINUS,) if keeps_minus else ())
        return cls(filled, np.where(np.append(is_mark, True)[index], -1, index))

    def without_unit(self, unit: str) -> Values:
        """Return the same values without a unit at their end."""
        return Values(without_unit(self.texts, unit), self.index) if unit else self

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return, for each row, the value of its text; NaN for missing values."""
        return np.append(values, np.nan)[self.index]


def _without_guards(texts: pa.Array) -> pa.Array:
    """Return texts without invisible characters, and 0012 for Excel's ="0012".

    A letter with an accent is one character: macOS writes two, which look the same.
    """
    texts = pc.replace_substring_regex(texts, INVISIBLE, "")
    texts = pc.replace_substring_regex(texts, '^="([^"]*)"$', r"\1")
    return pc.utf8_normalize(texts, form="NFC")


def _as_texts(column: pa.Array) -> pa.Array:
    """Return texts; numbers that are integers have no decimals."""
    if is_numeric(column.type) and not pa.types.is_integer(column.type):
        values = to_float64(column)
        texts = [None if np.isnan(v) else f"{v:.17g}" for v in values.tolist()]
        return pa.array(texts, pa.string())
    return column.cast(pa.string())


def boolean_numbers(texts: pa.Array) -> np.ndarray:
    """Return 1 for yes and true, 0 for no and false, and NaN for other texts.

    >>> print(boolean_numbers(pa.array(["Yes", "FALSE", "perhaps"])))
    [ 1.  0. nan]
    """
    numbers = dict.fromkeys(YES, 1.0) | dict.fromkeys(NO, 0.0)
    return np.array([numbers.get(text.lower(), np.nan) for text in texts.to_pylist()])


@dataclasses.dataclass(frozen=True)
class Converted:
    """A converted column: one or more columns, and the mask of values that are not of its kind."""

    columns: dict[str, pa.Array]
    bad: np.ndarray


def convert(column: pa.Array, format: ColumnFormat, reading: Reading) -> Converted:
    """Convert a column of a file by its format; values that are not of its kind become missing."""
    good = np.zeros(len(column), bool)
    if format.kind in TEXT_KINDS:
        values = Values.of(column, reading.marks, format.keeps_minus)
        index = pa.array(values.index, mask=values.index < 0)
        return Converted({format.name: values.texts.take(index)}, good)
    if format.kind in ("date", "parts"):
        days, bad = _days(column, format, reading)
        if format.kind == "date":
            return Converted({format.name: of_float64(days - format.since)}, bad)
        columns = {f"{format.name} {part}": part_of(days, part) for part in format.parts}
        return Converted(columns, bad)
    if is_numeric(value_type(column.type)):
        if column.type != pa.float64() or reading.marks.numbers:
            column = of_float64(reading.marks.in_numbers(to_float64(column)))
        return Converted({format.name: column}, good)
    numbers, bad = _numbers(column, format, reading)
    return Converted({format.name: of_float64(reading.marks.in_numbers(numbers))}, bad)


def _numbers(
    column: pa.Array, format: ColumnFormat, reading: Reading
) -> tuple[np.ndarray, np.ndarray]:
    if is_time(column.type):
        return hours_of(column), np.zeros(len(column), bool)
    values = Values.of(column, reading.marks).without_unit(format.unit)
    if format.kind == "boolean":
        numbers = boolean_numbers(values.texts)
    elif format.kind == "time":
        numbers = hours_of_day(values.texts)
    else:
        numbers = NumberTexts(values.texts).values(reading.decimal)
    found = values.spread(numbers)
    return found, np.isnan(found) & (values.index >= 0)


def _days(
    column: pa.Array, format: ColumnFormat, reading: Reading
) -> tuple[np.ndarray, np.ndarray]:
    column_type = value_type(column.type)
    if is_date(column_type):
        days = days_of(column.cast(column_type))
        return days, np.zeros(len(days), bool)
    if is_numeric(column_type):  # such as 20240131
        numbers = reading.marks.in_numbers(to_float64(column))
        days = days_of_numbers(numbers)
        return days, np.isnan(days) & ~np.isnan(numbers)
    values = Values.of(column, reading.marks)
    days = values.spread(DateTexts(values.texts).days(format.order or DAY_FIRST))
    return days, np.isnan(days) & (values.index >= 0)
