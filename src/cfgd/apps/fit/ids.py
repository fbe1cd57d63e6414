"""Recognise columns that name rows and do not describe them: ids, indices, row numbers.

A column is an id if --id names it, or, unless --keep names it,

- if it has no name and its values are different texts or different integers,
- if it is called "id",
- if its name ends in a word such as id, index, key or nr, and its values are different texts or
  different integers,
- if its values are texts, all of them different, or
- if it is the first column of the file, has at least `MIN_ROWS` rows, its values are
  consecutive integers, each once, and its name is not that of a time such as week or year.
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
UNNAMED = re.compile(r"^$|^Unnamed: \d+$")
TIME_NAME = re.compile(
    r"(?:^|[_ .\-])(?:.|time|step|second|minute|hour|day|date|week|month|quarter|year|age|period|"
    r"iteration|epoch|generation|dose|level|order|position|distance|depth)s?$",
)


def is_id_name(name: str) -> bool:
    """Return whether the name of a column says that it is an id."""
    return bool(UNNAMED.match(name) or ID_NAME.search(name) or ID_NAME.search(name.lower()))


class Uniqueness:
    """Whether the values of a column differ, in its first rows, and whether they are consecutive.

    Missing values do not count as values; a column that has some is not unique.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.is_unique = self.is_ascending = True
        self._seen: set[object] = set()
        self._last: float | None = None

    def add(self, values: list[object]) -> None:
        """Add the values of the next rows; None is a missing value."""
        if self.is_ascending:
            self._add_to_run(values)
        room = COMPARED_ROWS - self.rows
        self.rows += len(values)
        if not self.is_unique or room <= 0:
            return
        before = len(self._seen)
        self._seen.update(values[:room])
        if len(self._seen) < before + min(room, len(values)) or None in self._seen:
            self.is_unique, self._seen = False, set()

    def _add_to_run(self, values: list[object]) -> None:
        """Check that every value is the integer after the one before it."""
        numbers = [value for value in values if isinstance(value, float) and value % 1 == 0]
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
        if not self.is_unique or self.rows > COMPARED_ROWS or not self.is_integer:
            return False
        return max(self._seen) - min(self._seen) + 1 == self.rows  # type: ignore[type-var, operator]

    @property
    def is_integer(self) -> bool:
        """Whether the compared values are integers."""
        return all(isinstance(value, float) and value % 1 == 0 for value in self._seen)

    @property
    def is_text(self) -> bool:
        """Whether the compared values are texts."""
        return all(isinstance(value, str) for value in self._seen)


def reason_for_id(name: str, is_first: bool, values: Uniqueness) -> str | None:
    """Return why a column is an id, to follow its name, or None if it is none."""
    if name.strip().lower() == "id":
        return "is called so"
    if values.rows < MIN_TEXTS or not values.is_unique:
        return None
    if values.is_text:
        return "has a different text in every row"
    if not values.is_integer:
        return None
    if is_id_name(name):
        return "has a different number in every row"
    time = TIME_NAME.search(name.lower())
    if is_first and not time and values.rows >= MIN_ROWS and values.is_consecutive:
        return "numbers the rows"
    return None
