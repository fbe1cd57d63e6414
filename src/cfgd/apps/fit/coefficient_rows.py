"""The coefficients as rows of a table: for the terminal, the report, and a CSV file.

Where the loss has a logarithmic or logit link, each row also has the ratio exp(coefficient) with
its interval: see `effects`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cfgd.apps.fit.effects import RATIO_NAMES, as_ratio
from cfgd.apps.fit.formats import format_label, format_number
from cfgd.apps.fit.result import FitResult
from cfgd.apps.fit.summary_table import coefficient_table

INTERVAL = "95 % interval"


class CoefficientRow(NamedTuple):
    """A coefficient with its statistics; NaN where a number does not exist."""

    class_label: str
    term: str
    estimate: float
    error: float
    statistic: float
    p_value: float
    low: float
    high: float


def coefficient_rows(result: FitResult) -> Iterator[CoefficientRow]:
    """Yield the rows, of several classes one class after the other."""
    table = coefficient_table(result)
    arrays = (table.estimates, table.errors, table.statistics, table.p_values)
    columns = [array.reshape(len(table.names), -1) for array in arrays]
    intervals = table.intervals().reshape(len(table.names), -1, 2)
    several = result.target.classes > 1
    for k, label in enumerate(result.target.labels if several else ("",)):
        for i, term in enumerate(table.names):
            numbers = [float(column[i, k]) for column in columns]
            heading = format_label(label) if several else ""
            yield CoefficientRow(heading, term, *numbers, *map(float, intervals[i, k]))


def headings(result: FitResult, is_short: bool = False) -> list[str]:
    """Return the names of the columns that `cells` fills; the short ones fit into a terminal."""
    ratio, with_intervals = RATIO_NAMES.get(result.target.loss), not result.l2
    return [
        "coefficient",
        "standard error",
        *(["p-value"] if with_intervals and not is_short else []),
        *([INTERVAL] if with_intervals else []),
        *([ratio] if ratio is not None else []),
        *([f"{INTERVAL} of the ratio"] if ratio and with_intervals and not is_short else []),
    ]


def cells(result: FitResult, row: CoefficientRow, is_short: bool = False) -> list[str]:
    """Return the numbers of a row as texts; what does not exist is empty."""
    # the intercept is no effect of a column: its exponential is a value and not a ratio
    is_intercept = row.term == result.model.terms[-1]
    ratio, of_ratio = "", ""
    if not is_intercept:
        ratio = format_number(as_ratio(row.estimate))
        of_ratio = _interval(as_ratio(row.low), as_ratio(row.high))
    known = {
        "coefficient": format_number(row.estimate),
        "standard error": _or_empty(row.error),
        "p-value": format_p_value(row.p_value),
        INTERVAL: _interval(row.low, row.high),
        RATIO_NAMES.get(result.target.loss, ""): ratio,
        f"{INTERVAL} of the ratio": of_ratio,
    }
    return [known[name] for name in headings(result, is_short)]


def format_p_value(p: float) -> str:
    """Return three decimals, as statistical tables have them; empty where there is none."""
    if np.isnan(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _or_empty(value: float) -> str:
    return "" if np.isnan(value) else format_number(value)


def _interval(low: float, high: float) -> str:
    return "" if np.isnan(low) else f"{format_number(low)} to {format_number(high)}"


def coefficients_csv(result: FitResult) -> str:
    """Return all coefficients as CSV with all digits."""
    statistic = coefficient_table(result).distribution
    names = ["term", "coefficient", "standard error", statistic, "p-value", "low 95 %", "high 95 %"]
    ratio = RATIO_NAMES.get(result.target.loss)
    several = result.target.classes > 1
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*(["class"] if several else []), *names, *([ratio] if ratio else [])])
    for row in coefficient_rows(result):
        numbers = ["" if np.isnan(number) else repr(number) for number in row[2:]]
        ratios = [repr(as_ratio(row.estimate))] if ratio else []
        writer.writerow([*([row.class_label] if several else []), row.term, *numbers, *ratios])
    return buffer.getvalue()
