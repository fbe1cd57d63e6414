"""One pass over a table that finds out how the texts of its columns are written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa

from cfgd.apps.fit.column_survey import ColumnSurvey, NumberSurvey
from cfgd.apps.fit.csv_table import TypesChanged
from cfgd.apps.fit.dates import (
    is_date,
)
from cfgd.apps.fit.missing_marks import MissingMarks
from cfgd.apps.fit.table import Table, is_numeric, is_text, value_type

NO_UNITS: Mapping[str, str] = MappingProxyType({})
Surveys = dict[str, ColumnSurvey | NumberSurvey]


def survey(
    table: Table,
    names: Sequence[str],
    compared: Callable[[str], bool],
    marks: MissingMarks,
    rows: int,
    units: Mapping[str, str] = NO_UNITS,
    dates: Collection[str] = (),
) -> Surveys:
    """Read columns of a table once, and return what their values look like.

    Parameters
    ----------
    names
        The columns: of numbers, of texts, or of dates.
    compared
        Whether a column of numbers, of this name, may be an id.
    rows
        About how many rows are read at once.
    units
        The units that stand behind the numbers of columns of texts.
    dates
        Columns of numbers that are dates such as 20240131.
    """
    if not names:
        return {}
    is_compared = {name for name in names if compared(name)}
    while True:
        results = list(table.map(_survey_part, names, is_compared, marks, rows, units, dates))
        changed = [result for result in results if isinstance(result, Table)]
        for part in changed:  # read the file again with the types that it has
            table.learn_types(part)
        if not changed:
            break
    table.set_counts([next(iter(part.values())).rows for part in results])
    found: Surveys = results[0]
    for part in results[1:]:
        for name, known in found.items():
            known.merge(part[name])
    for known in found.values():
        if isinstance(known, ColumnSurvey):
            known.label_rows(table.row_label)
    return found


def _survey_part(
    table: Table,
    names: Sequence[str],
    compared: Collection[str],
    marks: MissingMarks,
    rows: int,
    units: Mapping[str, str],
    dates: Collection[str],
) -> Surveys | Table:
    """Survey a part of a table, or return it if it has changed the type of a column."""
    found: Surveys = {}
    for name in names:
        is_number = is_numeric(value_type(table.types[name]))
        if is_number and name not in dates:
            found[name] = NumberSurvey(name in compared)
        else:
            found[name] = ColumnSurvey(units.get(name, ""))
    try:
        for batch in table.blocks(list(names), rows):
            _add(found, batch, marks)
    except TypesChanged:
        return table
    return found


def _add(found: Surveys, batch: pa.RecordBatch, marks: MissingMarks) -> None:
    for name, known in found.items():
        column = batch.column(name)
        is_text_column = is_text(value_type(column.type))
        if isinstance(known, ColumnSurvey) and not is_text_column:
            known.add_dates(column, marks)
        else:
            known.add(column, marks)


def is_surveyed(table: Table, name: str) -> bool:
    """Return whether there is something to find out about a column: it has texts or dates."""
    column_type = value_type(table.types[name])
    return is_text(column_type) or is_date(column_type)
