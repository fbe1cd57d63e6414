"""Dates and times as texts and as Arrow types, and the numbers that they become.

A date becomes the number of days since the first date of the file, with hours as a fraction, or
its year, month and weekday. A time of day becomes hours.
"""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DAY_FIRST, MONTH_FIRST = "dmy", "mdy"
ORDERS = (DAY_FIRST, MONTH_FIRST)
ORDER_NAMES = {DAY_FIRST: "day before month", MONTH_FIRST: "month before day"}
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
PARTS = ("year", "month", "weekday")
EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday
# Two digits up to 68 are years of this century, as in POSIX.
PIVOT = 69
CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?"
NOON = r"\s*(?P<noon>(?:[AaPp][Mm])?)"
TIME = rf"(?:[T ,]+{CLOCK}{NOON}\s*(?P<zone>(?:Z|UTC|[+\-]\d{{2}}:?\d{{2}})?))?$"
PATTERNS = {
    "ymd": r"^(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})" + TIME,
    "dotted": r"^(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4}|\d{2})" + TIME,
    "named": r"^(?:[A-Za-z]{3,9}, )?(?P<day>\d{1,2})[ .\-]+(?P<month>[A-Za-z]{3,9})[ .,\-]+"
    r"(?P<year>\d{4})" + TIME,
    "named first": r"^(?P<month>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})" + TIME,
}
# the order of day and month is not in the text
EITHER = r"^(?P<{0}>\d{{1,2}})[/\-](?P<{1}>\d{{1,2}})[/\-](?P<year>\d{{4}}|\d{{2}})"
ORDERED = {
    DAY_FIRST: EITHER.format("day", "month") + TIME,
    MONTH_FIRST: EITHER.format("month", "day") + TIME,
}
TIME_OF_DAY = f"^{CLOCK}{NOON}$"


class DateTexts:
    """An array of texts, none of them null, read as dates.

    >>> texts = DateTexts(pa.array(["1970-01-02", "2.1.1970 12:00", "3/1/1970", "31/1/70", "x"]))
    >>> print(texts.days("dmy"), texts.days("mdy"))
    [ 1.   1.5  2.  30.   nan] [ 1.   1.5 59.   nan  nan]
    """

    def __init__(self, texts: pa.Array) -> None:
        trimmed = pc.utf8_trim_whitespace(texts)
        days = np.full(len(texts), np.nan)
        for pattern in PATTERNS.values():
            days = np.where(np.isnan(days), _days(trimmed, pattern), days)
        self._days = {
            order: np.where(np.isnan(days), _days(trimmed, pattern), days)
            for order, pattern in ORDERED.items()
        }

    def days(self, order: str) -> np.ndarray:
        """Return the days since 1970-01-01, with NaN for texts that are no dates."""
        return self._days[order]

    def matches(self, order: str) -> np.ndarray:
        """Return which texts are dates if days and months come in this order."""
        return ~np.isnan(self._days[order])

    @property
    def ambiguous(self) -> np.ndarray:
        """Which texts are two dates, one for each order."""
        both = self.matches(DAY_FIRST) & self.matches(MONTH_FIRST)
        return both & (self._days[DAY_FIRST] != self._days[MONTH_FIRST])


def _days(texts: pa.Array, pattern: str) -> np.ndarray:
    found = pc.extract_regex(texts, pattern)
    matched = np.asarray(found.is_valid().to_numpy(zero_copy_only=False), bool)
    result = np.full(len(texts), np.nan)
    if not matched.any():
        return result
    part = {field.name: pc.struct_field(found.drop_null(), field.name) for field in found.type}
    year, day = _integers(part["year"]), _integers(part["day"])
    short = np.array([len(text) == 2 for text in part["year"].to_pylist()])
    year = np.where(short, year + np.where(year < PIVOT, 2000, 1900), year)
    month = _months(part["month"])
    start = (12 * (year - 1970) + np.clip(month, 1, 12) - 1).astype("M8[M]")
    lengths = ((start + 1).astype("M8[D]") - start.astype("M8[D]")).astype(int)
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (day <= lengths)
    hours, valid_time = _hours(part)
    days = start.astype("M8[D]").astype(np.int64) + day - 1 + hours / 24 - _zones(part["zone"])
    result[matched] = np.where(valid & valid_time, days, np.nan)
    return result


def hours_of_day(texts: pa.Array) -> np.ndarray:
    """Return the hours since midnight of texts such as 14:30, with NaN for other texts.

    >>> print(hours_of_day(pa.array(["14:30", "2:15:36 pm", "25:00", "x"])))
    [14.5  14.26   nan   nan]
    """
    found = pc.extract_regex(pc.utf8_trim_whitespace(texts), TIME_OF_DAY)
    matched = np.asarray(found.is_valid().to_numpy(zero_copy_only=False), bool)
    result = np.full(len(texts), np.nan)
    if matched.any():
        part = {field.name: pc.struct_field(found.drop_null(), field.name) for field in found.type}
        hours, valid = _hours(part)
        result[matched] = np.where(valid, hours, np.nan)
    return result


def _hours(part: dict[str, pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    hour, minute = _integers(part["hour"]), _integers(part["minute"])
    texts = [text.replace(",", ".") or "0" for text in part["second"].to_pylist()]
    second = np.array(texts, float)
    noon = np.array([(text or "").lower() for text in part["noon"].to_pylist()])
    valid = (hour < 24) & (minute < 60) & (second < 61)
    valid &= (noon == "") | ((hour >= 1) & (hour <= 12))
    hour = np.where(noon == "am", hour % 12, np.where(noon == "pm", hour % 12 + 12, hour))
    return hour + minute / 60 + second / 3600, valid


def _zones(texts: pa.Array) -> np.ndarray:
    """Return the offsets from UTC in days."""

    def offset(text: str) -> float:
        if text in ("", "Z", "UTC"):
            return 0.0
        hours, minutes = int(text[1:3]), int(text[-2:])
        return (-1 if text[0] == "-" else 1) * (hours / 24 + minutes / 1440)

    offsets = {text: offset(text) for text in texts.unique().to_pylist()}
    return np.array([offsets[text] for text in texts.to_pylist()])


def _integers(texts: pa.Array) -> np.ndarray:
    filled = pc.if_else(pc.equal(texts, ""), pa.scalar("0"), texts)
    return np.asarray(filled.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _months(texts: pa.Array) -> np.ndarray:
    """Return the months of digits or of English names; 0 for other words."""
    numbers = {name.lower(): i + 1 for i, name in enumerate(MONTHS)}

    def month(text: str) -> int:
        return int(text) if text.isdigit() else numbers.get(text[:3].lower(), 0)

    found = {text: month(text) for text in texts.unique().to_pylist()}
    return np.array([found[text] for text in texts.to_pylist()])


def is_date(column_type: pa.DataType) -> bool:
    """Return whether Arrow has dates, with or without times, for this type."""
    return bool(pa.types.is_date(column_type) or pa.types.is_timestamp(column_type))


def days_of(column: pa.Array) -> np.ndarray:
    """Return the days since 1970-01-01 of a column of an Arrow type, with NaN for null."""
    microseconds = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    if getattr(column.type, "tz", None) is not None:
        microseconds = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    values = microseconds.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, float) / 86_400e6


def date_of(days: float) -> datetime.date:
    """Return the date of so many days since 1970-01-01.

    >>> print(date_of(365.5))
    1971-01-01
    """
    return datetime.date(1970, 1, 1) + datetime.timedelta(days=int(np.floor(days)))


def days_of_date(text: str) -> float | None:
    """Return the days from 1970-01-01 to a date such as 2024-01-31; None for other texts.

    >>> days_of_date("1971-01-01")
    365.0
    """
    try:
        return float((datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days)
    except ValueError:
        return None


def part_of(days: np.ndarray, part: str) -> pa.Array:
    """Return the year as numbers, or the month or the weekday as texts; null where days are NaN.

    >>> print(*(part_of(np.array([365.5]), part)[0].as_py() for part in PARTS))
    1971.0 Jan Fri
    """
    missing = np.isnan(days)
    whole = np.floor(np.where(missing, 0, days)).astype(np.int64)
    dates = whole.astype("M8[D]")
    if part == "year":
        years = dates.astype("M8[Y]").astype(np.int64) + 1970
        return pa.array(years.astype(float), mask=missing)
    if part == "month":
        index = dates.astype("M8[M]").astype(np.int64) % 12
        return pa.array(MONTHS).take(pa.array(index, mask=missing))
    index = (whole + EPOCH_WEEKDAY) % 7
    return pa.array(WEEKDAYS).take(pa.array(index, mask=missing))
