"""Recognise columns that name rows and do not describe them: ids, indices, row numbers.

A column is an id if --id names it, or, unless --keep names it,

- if it has no name and its values are different texts or different integers,
- if it is called "id",
- if its name ends in a word such as id, index, key or nr, and its values are different texts or
  different integers,
- if its values are texts, all of them different,
- if its values are different integers of more than 15 digits, or
- if it is the first column of the file, has at least `MIN_ROWS` rows, its values are
  consecutive integers, each once, not all of them years, and its name is not that of a time or of
  another quantity that goes up by steps.

Up to half of the values may be missing, but for the last rule.
"""

from __future__ import annotations

import re

import numpy as np

# rows whose values are compared with each other, so that memory is bounded
COMPARED_ROWS = 100_000
MIN_ROWS = 20  # fewer consecutive integers may be the doses or the weeks of a small experiment
MIN_TEXTS = 3  # two rows differ by chance
ID_NAME = re.compile(
    r"(?:^|[_ .\-#])(?:id|ids|uid|uuid|guid|idx|index|key|nr|no|row|rownum|row_?number)\.?$"
    r"|[a-z](?:Id|ID|UUID|Nr|No|Key|Index)$",
)
UNNAMED = re.compile(r"^$|^Unnamed: \d+(?:[._]\d+)*$|^__index_level_\d+__$")  # pandas' index
TIME_NAME = re.compile(
    r"(?:^|[_ .\-])(?:.|time|step|second|minute|hour|day|date|week|month|quarter|year|age|period|"
    r"iteration|epoch|generation|dose|level|order|position|distance|depth|temp|temperature|voltage|"
    r"current|frequency|pressure|speed|angle|wavelength|length|height|width|size|mass|weight|"
    r"zeit|sekunde|minute|stunde|tag|datum|woche|monat|quartal|jahr|alter|temperatur|spannung|strom|"
    r"frequenz|druck|winkel|jour|mois|an|année|annee|temps|día|dia|mes|año|ano|fecha)(?:e?n?s?)$",
)
TIMESTAMP = re.compile(r"time|date|zeit|datum|stamp|epoch|ns$|ts$")  # nanoseconds have 19 digits
FIRST_YEAR, LAST_YEAR = 1500, 2199  # integers within are years rather than numbers of rows
LONG_DIGITS = 16  # an integer of so many digits is no measurement


def is_id_name(name: str) -> bool:
    """Return whether the name of a column says that it is an id."""
    return bool(is_unnamed(name) or ID_NAME.search(name) or ID_NAME.search(name.lower()))


def is_unnamed(name: str) -> bool:
    """Return whether a column has no name."""
    return bool(UNNAMED.match(name))


class Uniqueness:
    """Whether the values of a column differ, in its first rows, and whether they are consecutive.

    Missing values do not count as values.
    """

    def __init__(self) -> None:
        self.rows = self.missing = 0
        self.is_unique = self.is_ascending = True
        self._seen: set[object] = set()
        # the compared values, None for missing ones, up to the first one that is repeated
        self._compared: list[object] = []
        self._first: float | None = None
        self._last: float | None = None

    def add(self, values: list[object]) -> None:
        """Add the values of the next rows; None is a missing value."""
        if self.is_ascending:
            self._add_to_run(values)
        room = COMPARED_ROWS - self.rows
        self.rows += len(values)
        if not self.is_unique or room <= 0:
            return
        self._compare(values[:room])

    def merge(self, other: Uniqueness) -> None:
        """Add the values of the rows after these, which another one has seen."""
        if self._last is not None and other._first is not None:
            self.is_ascending &= other._first == self._last + 1
        self.is_ascending &= other.is_ascending
        self._first = self._first if self._first is not None else other._first
        self._last = other._last if other._last is not None else self._last
        room = COMPARED_ROWS - self.rows
        self.rows += other.rows
        if not self.is_unique or room <= 0:
            return
        self._compare(other._compared[:room])
        if not other.is_unique and len(other._compared) < room:
            self.is_unique, self._seen = False, set()

    def _compare(self, values: list[object]) -> None:
        present = [value for value in values if value is not None]
        self.missing += len(values) - len(present)
        if len(set(present)) == len(present) and self._seen.isdisjoint(present):
            self._seen.update(present)
            self._compared += values
            return
        for value in values:
            if value is not None and value in self._seen:
                break
            self._seen.add(value)
            self._compared.append(value)
        self.is_unique, self._seen = False, set()

    def _add_to_run(self, values: list[object]) -> None:
        """Check that every value is the integer after the one before it."""
        numbers = [float(value) for value in values if _is_integer(value)]  # type: ignore[arg-type]
        if self._first is None and numbers:
            self._first = numbers[0]
        if self._last is not None:
            numbers.insert(0, self._last)
        steps = np.diff(np.array(numbers, float))
        expected = len(values) - (self._last is None)
        self.is_ascending = len(steps) == max(expected, 0) and bool(np.all(steps == 1))
        self._last = numbers[-1] if numbers else None

    @property
    def is_consecutive(self) -> bool:
        """Whether the values are consecutive integers, in this order or, in few rows, in any."""
        if self.is_ascending:
            return True
        if not self.is_unique or self.rows > COMPARED_ROWS or not self.is_integer or self.missing:
            return False
        return max(self._seen) - min(self._seen) + 1 == self.rows  # type: ignore[type-var, operator]

    @property
    def is_integer(self) -> bool:
        """Whether the compared values are integers."""
        return all(map(_is_integer, self._seen))

    @property
    def are_years(self) -> bool:
        """Whether the compared values are integers that may be years."""
        return self.is_integer and all(FIRST_YEAR <= value <= LAST_YEAR for value in self._seen)  # type: ignore[operator]

    @property
    def is_text(self) -> bool:
        """Whether the compared values are texts."""
        return all(isinstance(value, str) for value in self._seen)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value % 1 == 0)


def reason_for_id(name: str, is_first: bool, values: Uniqueness, digits: int = 0) -> str | None:
    """Return why a column is an id, to follow its name, or None if it is none.

    `digits` is the number of digits of texts that are integers, 0 for other columns.
    """
    if name.strip().lower() == "id":
        return f"is named {name!r}"
    rows, time = min(values.rows, COMPARED_ROWS), TIME_NAME.search(name.lower())
    if rows - values.missing < max(MIN_TEXTS, rows / 2) or not values.is_unique:
        return None
    every = "every row that has one" if values.missing else "every row"
    if digits and is_id_name(name):
        return f"has a different number in {every}"
    if digits:  # texts that are integers
        is_long = digits >= LONG_DIGITS and not TIMESTAMP.search(name.lower())
        return f"has a different number of {digits} digits in {every}" if is_long else None
    if values.is_text:
        return f"has a different text in {every}"
    if not values.is_integer:
        return None
    if is_id_name(name):
        return f"has a different number in {every}"
    is_quantity = time or values.are_years
    if is_first and not is_quantity and values.rows >= MIN_ROWS and values.is_consecutive:
        return "numbers the rows"
    return None
