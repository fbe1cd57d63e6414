"""Open the table of a prediction by the formats of the columns of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from cfgd.apps.fit.column_format import ANY_ORDER, ColumnFormat, Reading
from cfgd.apps.fit.column_survey import ColumnSurvey
from cfgd.apps.fit.date_patterns import DAY_FIRST
from cfgd.apps.fit.dates import is_date
from cfgd.apps.fit.format_decision import decide_decimal, decide_order
from cfgd.apps.fit.reading import (
    SURVEY_ROWS,
    ReadTable,
    check_name,
    decimal_of_numbers,
    describe_doubtful,
)
from cfgd.apps.fit.survey import Surveys, is_surveyed, survey
from cfgd.apps.fit.table import Table, is_numeric, value_type
from cfgd.apps.fit.table_formats import open_tables
from cfgd.apps.fit.workers import THIS_PROCESS, Workers


def read_for_prediction(
    data: Path | Sequence[Path],
    memory: float,
    reading: Reading,
    names: Sequence[str],
    ids: Sequence[str],
    workers: Workers = THIS_PROCESS,
) -> ReadTable:
    """Open a table with the formats of a model; its separator and its decimals are its own.

    Parameters
    ----------
    names
        The columns that the model needs.
    ids
        Columns that are written through.
    """
    raw = open_tables(data, memory, reading.decimal, workers=workers)
    path = raw.path
    formats = [one for one in reading.columns if one.kind == "id" or set(one.types) & set(names)]
    needed = [one.name for one in formats if one.kind != "id"]
    for name in needed:
        if name not in raw.types:
            known = ", ".join(map(repr, list(raw.types)[:20]))
            raise ValueError(f"{path} has no column {name!r}, which the model needs, only {known}.")
    for name in ids:
        check_name(raw, "--id", name)
    texts = [one.name for one in formats if one.kind in ("text", "category", "id")] + list(ids)
    doubtful_kinds = [one.name for one in formats if one.kind in ("number", "date", "parts")]
    decimal = reading.decimal
    doubtful: list[str] = []
    for _ in range(2):  # once more if the decimal sign is another one
        if raw.infers_types:
            raw.read_as_text(texts)
        surveyed = needed if raw.infers_types else doubtful_kinds
        surveyed = [name for name in surveyed if raw.infers_types or is_surveyed(raw, name)]
        units = {one.name: one.unit for one in formats if one.unit}
        surveys = survey(raw, surveyed, lambda name: False, reading.marks, SURVEY_ROWS, units)
        certain = decimal_of_numbers(raw, surveys)
        decimal, doubtful = decide_decimal(path, surveys, certain, reading.decimal)
        if not raw.infers_types or decimal == raw.decimal:
            break
        raw.set_decimal(decimal)
    for one in formats:
        if one.kind in ("number", "text") and one.name in raw.types:
            _check_kind(raw, one)
    formats = [_with_order(path, one, surveys) for one in formats]
    reading = dataclasses.replace(reading, decimal=decimal, columns=tuple(formats))
    sentences = [*raw.describe(), *describe_doubtful(surveys, doubtful, decimal)]
    return ReadTable(raw, reading, (), sentences, " as in the training data")


def _with_order(path: Path, known: ColumnFormat, surveys: Surveys) -> ColumnFormat:
    """Return the format of dates with an order of days and months, where the model has none."""
    if known.order != ANY_ORDER:
        return known
    found = surveys.get(known.name)
    is_text = isinstance(found, ColumnSurvey)
    hint = "write it as 2024-01-31, as in the training data"
    orders = decide_order(path, surveys, None, [known.name], hint) if is_text else {}
    return dataclasses.replace(known, order=orders.get(known.name, DAY_FIRST))


def _check_kind(raw: Table, known: ColumnFormat) -> None:
    found = value_type(raw.types[known.name])
    if (known.kind == "text" and is_numeric(found)) or is_date(found):
        got = "a date" if is_date(found) else f"a {raw.kind(known.name)}"
        raise ValueError(
            f"{raw.path}: the column {known.name!r} must be a {known.kind} as in the training "
            f"data, got {got}."
        )
