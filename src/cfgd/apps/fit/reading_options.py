"""The options of `cfgd fit` that say how to read a file."""

from __future__ import annotations

import dataclasses

from cfgd.apps.fit.column_format import (
    BAD_VALUES,
    REFUSE_BAD,
)
from cfgd.apps.fit.dates import ORDERS
from cfgd.apps.fit.number_text import DECIMALS

DAYS, DATE_PARTS = "days", "parts"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """The options of `cfgd fit` that say how to read a file.

    Attributes
    ----------
    na : tuple of str
        Marks of missing values besides the usual ones.
    decimal : str or None
        The decimal sign; None to detect it.
    bad_values : "refuse" or "missing"
        What texts among numbers are.
    dates : "days" or "parts"
        What dates become.
    date_order : str or None
        "dmy" or "mdy"; None to detect it.
    id, keep, category, number : tuple of str
        Columns that are ids, that are not, that are categories, and that are numbers although they
        look like codes or dates.
    sheet : str or None
        The sheet of an Excel file; None for the first.
    reference : tuple of str
        Reference levels of columns of texts, as COLUMN=LEVEL.
    rare : int or None
        Texts of fewer training rows are pooled; None for the rule of `categories`.
    """

    na: tuple[str, ...] = ()
    decimal: str | None = None
    bad_values: str = REFUSE_BAD
    dates: str = DAYS
    date_order: str | None = None
    id: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    sheet: str | None = None
    reference: tuple[str, ...] = ()
    rare: int | None = None

    def check_reading(self) -> None:
        """Raise a `ValueError` for a value that an option does not take."""
        for option, value, known in (
            ("--decimal", self.decimal, (None, *DECIMALS)),
            ("--bad-values", self.bad_values, BAD_VALUES),
            ("--dates", self.dates, (DAYS, DATE_PARTS)),
            ("--date-order", self.date_order, (None, *ORDERS)),
        ):
            if value not in known:
                names = " or ".join(filter(None, known))
                raise ValueError(f"{option} must be {names}, got {value!r}.")
