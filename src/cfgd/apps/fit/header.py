"""Find the header of a table, also below lines that are no part of it.

Exports of banks and instruments begin with a title, the time of the export, or the settings. The
header is the first row from which on the rows have as many fields as it has, and which has a name
for most columns that have values.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence

from cfgd.apps.fit.missing_marks import MARKS

LOOKED_ROWS = 500  # that are looked at
MOST = 0.9  # the share of the rows below a header that have as many fields as it has
MOST_ABOVE = 50  # rows that may be above the header: more are the table itself
NUMBERLIKE = re.compile(r"^[\W_]*\d[\W\d_]*(?:[eE][+\-]?\d+)?[\W_]*$")  # digits, and no letters
SHOWN = 40  # characters of the first line above the header
UNNAMED = "Unnamed: {}"  # the name that pandas gives to column i without one

Rows = Sequence[Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Header:
    """Which row is the header, and what follows from the rows below it.

    `agreement` is the share of the rows below that have as many fields, 0 where no row is found to
    be the header; `names` are those of the columns, with names for those that have none.
    """

    index: int
    agreement: float
    names: tuple[str, ...]


def find_header(rows: Rows) -> Header:
    """Return the header of the first rows of a table, none of which is empty.

    >>> find_header([["Report"], ["x", "y"], ["1", "2"]])
    Header(index=1, agreement=1.0, names=('x', 'y'))
    """
    rows = rows[:LOOKED_ROWS]
    is_comment = [bool(row) and row[0].lstrip().startswith("#") for row in rows]
    # a comment with the separator in it is the header only where no other row is
    for is_exact, of_comments in ((True, False), (False, False), (True, True), (False, True)):
        for index, row in enumerate(rows[: MOST_ABOVE + 1]):
            if is_comment[index] != of_comments:
                continue
            below = rows[index + 1 :]
            agreement = _agreement(row, below, is_exact)
            if (
                agreement > MOST
                and _names_most(row, below)
                and (not index or _is_names(row, below))
            ):
                return Header(index, agreement, column_names(row, below))
    first = rows[0] if rows else []
    return Header(0, 0.0, column_names(first, rows[1:]))


def describe_above(lines: Sequence[str]) -> list[str]:
    """Return a sentence about the lines above the header, if there are any.

    >>> describe_above(["Report"])
    ["The line above the header is left out: 'Report'."]
    """
    if not lines:
        return []
    first = repr(lines[0][:SHOWN])
    if len(lines) == 1:
        return [f"The line above the header is left out: {first}."]
    return [f"The {len(lines)} lines above the header are left out: {first} and so on."]


def column_names(header: Sequence[str], below: Rows) -> tuple[str, ...]:
    """Return the names of the columns, of as many as most rows below the header have.

    R leaves out the name of a first column of names of rows, all of them different. Other programs
    end each row, or the header, with a separator.
    """
    # a second byte order mark, as of files that were put together, is no letter of a name
    names = [name.strip().strip("\ufeff").strip() for name in header]
    widths = Counter(map(len, below))
    width = widths.most_common(1)[0][0] if widths else len(names)
    if len(names) > 1 and width == len(names) + 1:
        whole = [row for row in below if len(row) == width]
        if not any(row[-1].strip() for row in whole):
            names = [*names, ""]
        elif len({row[0] for row in whole}) == len(whole):
            names = ["", *names]
    elif len(names) > 2 and width == len(names) - 1 and not names[-1]:
        names.pop()
    return tuple(name or UNNAMED.format(i) for i, name in enumerate(names))


def _agreement(row: Sequence[str], below: Rows, is_exact: bool) -> float:
    """Return the share of rows with as many fields as a header; or else also with one more or less.

    `column_names` says which headers these are.
    """
    if len(row) < 2:
        return 0.0
    widths = {len(row)}
    if not is_exact:
        widths |= {len(row) + 1} if row[-1].strip() else {len(row) + 1, len(row) - 1}
    return sum(len(other) in widths for other in below) / len(below) if below else 1.0


def _names_most(row: Sequence[str], below: Rows) -> bool:
    """Return whether a row has a value in most columns that have values below it."""
    used = {j for other in below for j, field in enumerate(other) if field.strip()}
    return 2 * sum(bool(field.strip()) for field in row) > len(used)


def _is_names(row: Sequence[str], below: Rows) -> bool:
    """Return whether the values of a row may be names: different, and few of them numbers.

    One of them must be above numbers.
    """
    names = [field.strip() for field in row if field.strip()]
    numbers = sum(map(_is_number, names))
    if len(set(names)) < len(names) or _is_number(names[0]) or 2 * numbers > len(names):
        return False
    for j, name in enumerate(row):
        fields = [other[j].strip() for other in below if j < len(other) and other[j].strip()]
        is_name = name.strip() not in MARKS and not _is_number(name)
        if is_name and sum(map(_is_number, fields)) > MOST * len(fields):
            return True
    return False


def _is_number(field: str) -> bool:
    return bool(NUMBERLIKE.match(field))
