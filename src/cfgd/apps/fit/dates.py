"""Dates and times as texts and as Arrow types, and the numbers that they become.

A date becomes the number of days since the first date of the file, with hours as a fraction, or
its year, month and weekday. A time of day becomes hours.
"""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cfgd.apps.fit.date_patterns import (
    COMPACT,
    DAY_FIRST,
    DURATION,
    DURATION_IN_WORDS,
    ISO_DURATION,
    MONTH_FIRST,
    MONTHS,
    ORDERED,
    PATTERNS,
    TIME_OF_DAY,
    month_number,
)

ORDERS = (DAY_FIRST, MONTH_FIRST)
ORDER_NAMES = {DAY_FIRST: "day before month", MONTH_FIRST: "month before day"}
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
PARTS = ("year", "month", "weekday")
EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday
# Two digits up to 68 are years of this century, as in POSIX.
PIVOT = 69


class DateTexts:
    """An array of texts, none of them null, read as dates.

    >>> texts = DateTexts(pa.array(["1970-01-02", "2.1.1970 12:00", "3/1/1970", "31/1/70", "x"]))
    >>> print(texts.days("dmy"), texts.days("mdy"))
    [ 1.   1.5  2.  30.   nan] [ 1.   1.5 59.   nan  nan]
    """

    def __init__(self, texts: pa.Array) -> None:
        trimmed = pc.utf8_trim_whitespace(texts)
        days = np.full(len(texts), np.nan)
        self._days = {order: days for order in ORDERS}
        has_digit = np.asarray(pc.match_substring_regex(trimmed, r"\d"), bool)
        if not has_digit.any():
            return
        for pattern in PATTERNS.values():
            _read(trimmed, pattern, days, has_digit & np.isnan(days))
        for order, pattern in ORDERED.items():
            self._days[order] = days.copy()
            _read(trimmed, pattern, self._days[order], has_digit & np.isnan(days))

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


def _read(texts: pa.Array, pattern: str, days: np.ndarray, wanted: np.ndarray) -> None:
    """Write the days of those of the wanted texts that have the pattern, and are dates."""
    if wanted.any():
        days[wanted] = _days(texts.filter(pa.array(wanted)), pattern)


def _days(texts: pa.Array, pattern: str) -> np.ndarray:
    found = pc.extract_regex(texts, pattern)
    matched = np.asarray(found.is_valid().to_numpy(zero_copy_only=False), bool)
    result = np.full(len(texts), np.nan)
    if not matched.any():
        return result
    part = {field.name: pc.struct_field(found.drop_null(), field.name) for field in found.type}
    year = _integers(part["year"])
    short = np.array([len(text) == 2 for text in part["year"].to_pylist()])
    year = np.where(short, year + np.where(year < PIVOT, 2000, 1900), year)
    if "week" in part:
        result[matched] = _days_of_week(year, part)
        return result
    month = 3 * _integers(part["quarter"]) - 2 if "quarter" in part else _months(part["month"])
    day = _integers(part["day"]) if "day" in part else np.ones_like(year)
    start = (12 * (year - 1970) + np.clip(month, 1, 12) - 1).astype("M8[M]")
    lengths = ((start + np.timedelta64(1, "M")).astype("M8[D]") - start.astype("M8[D]")).astype(int)
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (day <= lengths)
    days = start.astype("M8[D]").astype(np.int64) + day - 1.0
    if "hour" in part:
        hours, valid_time = _hours(part)
        days, valid = days + hours / 24 - _zones(part["zone"]), valid & valid_time
    result[matched] = np.where(valid, days, np.nan)
    return result


def _days_of_week(year: np.ndarray, part: dict[str, pa.Array]) -> np.ndarray:
    """Return the days of weeks of ISO 8601: the first one of a year has the 4th of January."""
    week, weekday = _integers(part["week"]), np.maximum(_integers(part["weekday"]), 1)
    fourth = (year - 1970).astype("M8[Y]").astype("M8[D]").astype(np.int64) + 3
    monday = fourth - (fourth + EPOCH_WEEKDAY) % 7
    return np.where((week >= 1) & (week <= 53), monday + 7.0 * (week - 1) + weekday - 1, np.nan)


def compact_days(texts: pa.Array) -> np.ndarray:
    """Return the days since 1970-01-01 of texts such as 20240131, with NaN for other texts.

    >>> print(compact_days(pa.array(["19700102", "20240230", "1970"])))
    [ 1. nan nan]
    """
    return _days(texts, COMPACT)


def days_of_numbers(numbers: np.ndarray) -> np.ndarray:
    """Return the days since 1970-01-01 of numbers such as 20240131, with NaN for other ones."""
    inside = (numbers >= 1e7) & (numbers < 1e8) & (numbers % 1 == 0)
    texts = [str(int(number)) for number in numbers[inside].tolist()]
    result = np.full(len(numbers), np.nan)
    if inside.any():
        result[inside] = compact_days(pa.array(texts, pa.string()))
    return result


def hours_of_day(texts: pa.Array) -> np.ndarray:
    """Return the hours of times of day and of durations, with NaN for other texts.

    >>> print(hours_of_day(pa.array(["14:30", "2:15:36 pm", "26:30", "1 day, 2:00:00", "x"])))
    [14.5  14.26 26.5  26.     nan]
    >>> print(hours_of_day(pa.array(["1h 30m", "PT45M", "5 m"])))
    [1.5  0.75  nan]
    """
    trimmed = pc.utf8_trim_whitespace(texts)
    found = pc.extract_regex(trimmed, TIME_OF_DAY)
    matched = np.asarray(found.is_valid().to_numpy(zero_copy_only=False), bool)
    result = np.full(len(texts), np.nan)
    if matched.any():
        part = {field.name: pc.struct_field(found.drop_null(), field.name) for field in found.type}
        hours, valid = _hours(part)
        result[matched] = np.where(valid, hours, np.nan)
    return np.where(np.isnan(result), _durations(trimmed), result)


def _durations(texts: pa.Array) -> np.ndarray:
    result = np.full(len(texts), np.nan)
    for pattern, least in ((DURATION, 2), (ISO_DURATION, 1), (DURATION_IN_WORDS, 2)):
        found = pc.extract_regex(texts, pattern)
        matched = np.asarray(found.is_valid().to_numpy(zero_copy_only=False), bool)
        if not matched.any():
            continue
        part = {field.name: pc.struct_field(found.drop_null(), field.name) for field in found.type}
        given = sum(
            np.asarray(pc.not_equal(part[name], ""), bool).astype(int)
            for name in ("days", "hour", "minute", "second")
        )
        hours = 24 * _integers(part["days"]) + _integers(part["hour"])
        minutes = _integers(part["minute"])
        sign = np.where(np.asarray(pc.equal(part["sign"], "-"), bool), -1, 1)
        value = sign * (hours + minutes / 60 + _seconds(part["second"]) / 3600)
        is_clock = (minutes < 60) | (given == 1)
        result[matched] = np.where(is_clock & (given >= least), value, np.nan)
    return result


def _hours(part: dict[str, pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    hour, minute = _integers(part["hour"]), _integers(part["minute"])
    second = _seconds(part["second"])
    noon = np.array([text.lower().replace(".", "") for text in part["noon"].to_pylist()])
    valid = (hour < 24) & (minute < 60) & (second < 61)
    valid &= (noon == "") | ((hour >= 1) & (hour <= 12))
    hour = np.where(noon == "am", hour % 12, np.where(noon == "pm", hour % 12 + 12, hour))
    return hour + minute / 60 + second / 3600, valid


def _seconds(texts: pa.Array) -> np.ndarray:
    return np.array([text.replace(",", ".") or "0" for text in texts.to_pylist()], float)


def _zones(texts: pa.Array) -> np.ndarray:
    """Return the offsets from UTC in days."""

    def offset(text: str) -> float:
        if not text.startswith(("+", "-")):
            return 0.0
        hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or 0)
        return (-1 if text[0] == "-" else 1) * (hours / 24 + minutes / 1440)

    offsets = {text: offset(text) for text in texts.unique().to_pylist()}
    return np.array([offsets[text] for text in texts.to_pylist()])


def _integers(texts: pa.Array) -> np.ndarray:
    filled = pc.if_else(pc.equal(texts, ""), pa.scalar("0"), texts)
    return np.asarray(filled.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _months(texts: pa.Array) -> np.ndarray:
    found = {text: month_number(text) for text in texts.unique().to_pylist()}
    return np.array([found[text] for text in texts.to_pylist()])


def is_date(column_type: pa.DataType) -> bool:
    """Return whether Arrow has dates, with or without times, for this type."""
    return bool(pa.types.is_date(column_type) or pa.types.is_timestamp(column_type))


def is_time(column_type: pa.DataType) -> bool:
    """Return whether Arrow has times of day or durations for this type."""
    return bool(pa.types.is_time(column_type) or pa.types.is_duration(column_type))


def hours_of(column: pa.Array) -> np.ndarray:
    """Return the hours of times of day and of durations of an Arrow type, with NaN for null.

    >>> print(hours_of(pa.array([datetime.timedelta(minutes=90), None])))
    [1.5 nan]
    """
    unit = column.type.unit
    counts = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    per_hour = 3600 * {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    values = counts.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, float) / per_hour


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
