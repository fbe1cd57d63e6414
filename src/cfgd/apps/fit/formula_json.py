"""A formula in the model file: its factors as texts, their states as numbers, and its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cfgd.apps.fit.columns import Column
from cfgd.apps.fit.expression import Expression, parse
from cfgd.apps.fit.formula import Formula, Product, column_names, needs_state
from cfgd.apps.json_schema import finite, listing, record, whole, wrong


def as_json(formula: Formula) -> dict[str, Any]:
    """Return the formula as plain values."""
    return {
        "text": formula.text,
        "factors": [factor.text for factor in formula.factors],
        "states": [{"call": call, **state} for call, state in formula.states.items()],
        "columns": [
            {"name": product.name, "parts": [list(part) for part in product.parts]}
            for product in formula.products
        ],
    }


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise wrong(place, "text", value)
    return value


def _factor(value: Any, place: str) -> Expression:
    try:
        return parse(_text(value, place))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _positive(value: Any, place: str) -> float:
    if not finite(value, place) > 0:
        raise wrong(place, "a positive number", value)
    return float(value)


STATES = {
    "center": record({"call": _factor, "mean": finite, "deviation": finite}),
    "scale": record({"call": _factor, "mean": finite, "deviation": _positive}),
    "C": record({"call": _factor, "levels": listing(finite)}),
    "poly": record({"call": _factor, "alpha": listing(finite), "norm": listing(_positive)}),
}


def _state(value: Any, place: str) -> tuple[str, dict[str, Any]]:
    if not isinstance(value, dict) or "call" not in value:
        raise wrong(place, "an object with a call", value)
    call = _factor(value["call"], f"{place}.call")
    if call.function not in STATES:
        raise wrong(f"{place}.call", "a call of center, scale, C or poly", call.text)
    state = STATES[call.function](value, place)
    if call.function == "poly" and not len(state["norm"]) - 1 == len(state["alpha"]) == call.degree:
        raise ValueError(f"{place} must have {call.degree} numbers alpha, and one more of norm")
    if call.function == "C" and len(set(state["levels"])) < max(2, len(state["levels"])):
        raise ValueError(f"{place}.levels must be at least two different numbers")
    del state["call"]
    return call.text, {field: _plain(entry) for field, entry in state.items()}


def _plain(entry: Any) -> Any:
    return list(entry) if isinstance(entry, tuple) else entry


def _part(value: Any, place: str) -> tuple[int, int]:
    part = listing(whole)(value, place)
    if len(part) != 2:
        raise wrong(place, "two whole numbers", value)
    return part[0], part[1]


def _formula(
    text: str, factors: tuple[Expression, ...], states: tuple[Any, ...], columns: tuple[Any, ...]
) -> Formula:
    return Formula(text, factors, dict(states), columns)


FORMULA = record(
    {
        "text": _text,
        "factors": listing(_factor),
        "states": listing(_state),
        "columns": listing(record({"name": _text, "parts": listing(_part)}, Product)),
    },
    _formula,
)


def check_formula(formula: Formula, columns: Sequence[Column]) -> None:
    """Raise a `ValueError` if a formula of a file does not fit the columns of that file."""
    names = {column.name for column in columns}
    for factor in formula.factors:
        for name in factor.columns:
            if name not in names:
                raise ValueError(f"formula: {factor.text!r} has no column {name!r} in columns")
        for call in factor.stateful_calls:
            if needs_state(call, columns) and call.text not in formula.states:
                raise ValueError(f"formula: the state of {call.text!r} is missing")
    widths = [len(column_names(factor, columns, formula.states)) for factor in formula.factors]
    for product in formula.products:
        for index, column in product.parts:
            if index >= len(widths) or column >= widths[index]:
                raise ValueError(f"formula: the parts of {product.name!r} must be those of factors")
