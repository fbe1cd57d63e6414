"""How a file was read, as JSON: a part of model.json."""

from __future__ import annotations

from typing import Any

from cfgd.apps.fit.column_format import ANY_ORDER, BAD_VALUES, KINDS, ColumnFormat, Reading
from cfgd.apps.fit.dates import ORDERS, PARTS, date_of, days_of_date
from cfgd.apps.fit.number_text import DECIMALS
from cfgd.apps.json_schema import any_text, listing, one_of, record, truth, wrong


def reading_as_json(reading: Reading) -> dict[str, Any]:
    """Return how a file was read; fields that say nothing about a column are left away."""
    return {
        "decimal": reading.decimal,
        "na": list(reading.na),
        "bad values": reading.bad_values,
        "columns": list(map(_column_as_json, reading.columns)),
    }


def _column_as_json(column: ColumnFormat) -> dict[str, Any]:
    saved: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == "date":
        saved |= {"order": column.order, "since": str(date_of(column.since))}
    elif column.kind == "parts":
        saved |= {"order": column.order, "parts": list(column.parts)}
    else:
        given = {"keeps_minus": column.keeps_minus, "unit": column.unit}
        saved |= {field: value for field, value in given.items() if value}
    return saved


def _since(value: Any, place: str) -> float:
    days = days_of_date(value) if isinstance(value, str) else None
    if days is None:
        raise wrong(place, "a date such as 2024-01-31", value)
    return days


COLUMN_FIELDS = {
    "date": {"order": one_of((*ORDERS, ANY_ORDER)), "since": _since},
    "parts": {"order": one_of((*ORDERS, ANY_ORDER)), "parts": listing(one_of(PARTS))},
}


def _column(value: Any, place: str) -> ColumnFormat:
    kind = value.get("kind") if isinstance(value, dict) else None
    one_of(KINDS)(kind, f"{place}.kind")
    names = {"name": any_text, "kind": any_text}
    fields = names | COLUMN_FIELDS.get(str(kind), {"keeps_minus": truth, "unit": any_text})
    if "unit" in fields:
        value = {"keeps_minus": False, "unit": ""} | value
    found = record(fields)(value, place)
    return ColumnFormat(**found)


def _reading(columns: tuple[ColumnFormat, ...], **fields: Any) -> Reading:
    if len({column.name for column in columns}) < len(columns):
        raise ValueError("reading.columns must have different names")
    return Reading(fields["decimal"], fields["na"], fields["bad values"], columns)


READING = record(
    {
        "decimal": one_of(DECIMALS),
        "na": listing(any_text),
        "bad values": one_of(BAD_VALUES),
        "columns": listing(_column),
    },
    _reading,
)
