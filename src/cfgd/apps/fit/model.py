"""The model in a file: readable, of a version that is checked, and nothing that is executed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from cfgd._core.files import json_safe, write
from cfgd.apps.fit.columns import Column, Number, Text, labels
from cfgd.apps.fit.survey import MISSING
from cfgd.apps.fit.target import NAMES
from cfgd.apps.json_schema import content, finite, listing, maybe, one_of, parameters, record, wrong
from cfgd.objectives.linear.losses import MULTINOMIAL

FORMAT = "cfgd model 1"
INTERCEPT = "intercept"


@dataclasses.dataclass(frozen=True)
class Model:
    """Coefficients of columns in their own units: a row for each, the intercept last."""

    target: str
    loss: str
    labels: tuple[Any, ...]  # of the target, in ascending order; none of a number
    missing: str
    columns: tuple[Column, ...]
    coefficients: np.ndarray  # (d + 1,), or (d + 1, classes)
    errors: np.ndarray | None  # of the same shape
    facts: dict[str, Any]  # how it was found

    @property
    def terms(self) -> list[str]:
        return [*labels(self.columns), INTERCEPT]

    def save(self, path: Path) -> None:
        errors = self.errors if self.errors is not None else [None] * len(self.coefficients)
        rows = zip(self.terms, self.coefficients, errors, strict=True)
        saved = {
            "format": FORMAT,
            "target": self.target,
            "loss": self.loss,
            "labels": list(self.labels),
            "missing": self.missing,
            "columns": [_plain(column) for column in self.columns],
            "terms": [
                {
                    "term": term,
                    "coefficient": np.atleast_1d(w),
                    "standard error": None if error is None else np.atleast_1d(error),
                }
                for term, w, error in rows
            ],
            "facts": self.facts,
        }
        write(path, _text(json_safe(saved, lambda value: None)))


def _text(saved: dict[str, Any]) -> str:
    """JSON with a line for each column and term."""
    lines = []
    for key, entry in saved.items():
        whole = json.dumps(entry, ensure_ascii=False)
        if isinstance(entry, list) and entry and isinstance(entry[0], dict):
            each = ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in entry)
            whole = f"[\n  {each}\n ]"
        lines.append(f" {json.dumps(key)}: {whole}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_model(path: Path) -> Model:
    """The model, or one sentence that names the file and the field."""
    if not path.exists():
        raise ValueError(f"There is no file {path}.")
    try:
        found = content(path)
        if isinstance(found, dict) and "format" in found:
            one_of((FORMAT,))(found["format"], "format")
        return MODEL(found, "")
    except ValueError as error:
        raise ValueError(f"{path} is no model that can be used: {error}.") from None


def _plain(column: Column) -> dict[str, Any]:
    return {"name": column.name, "kind": column.kind} | {
        field.name: getattr(column, field.name)
        for field in dataclasses.fields(column)
        if field.name not in ("name", "kind")
    }


def _word(value: Any, place: str) -> str:
    """Any text: it is made fit for what shows it."""
    if not isinstance(value, str):
        raise wrong(place, "text", value)
    return value


def _label(value: Any, place: str) -> str | float:
    return value if isinstance(value, str) else finite(value, place)


NUMBER = record({"name": _word, "kind": _word, "mean": finite}, Number)
TEXT = record({"name": _word, "kind": _word, "base": _word, "levels": listing(_word)}, Text)


def _column(value: Any, place: str) -> Column:
    kind = value.get("kind") if isinstance(value, dict) else None
    one_of(("number", "text"))(kind, f"{place}.kind")
    return NUMBER(value, place) if kind == "number" else TEXT(value, place)


TERM = record(
    {
        "term": _word,
        "coefficient": listing(finite),
        "standard error": maybe(listing(finite)),
    }
)


def _made(
    format: str,
    target: str,
    loss: str,
    labels: tuple[Any, ...],
    missing: str,
    columns: tuple[Column, ...],
    terms: tuple[dict[str, Any], ...],
    facts: dict[str, Any],
) -> Model:
    wanted = {"logistic": "2 labels", MULTINOMIAL: "at least 2 labels"}.get(loss, "no labels")
    count = {"logistic": {2}, MULTINOMIAL: range(2, len(labels) + 1)}.get(loss, {0})
    if len(labels) not in count:
        raise ValueError(f"labels must be {wanted} for the loss {loss}, got {len(labels)}")
    if len(set(map(type, labels))) > 1 or len(set(labels)) < len(labels):
        raise ValueError("labels must be different, and all texts or all numbers")
    names = [column.name for column in columns]
    if not names or len(set(names)) < len(names):
        raise ValueError("columns must be at least one, of different names")
    model = Model(target, loss, labels, missing, columns, np.zeros(0), None, facts)
    _same([term["term"] for term in terms], model.terms)
    width = len(labels) if loss == MULTINOMIAL else 1
    arrays = [_array(terms, field, width) for field in ("coefficient", "standard error")]
    w, errors = (array if array is None or width > 1 else array[:, 0] for array in arrays)
    if w is None:
        raise ValueError("terms must have coefficients")
    return dataclasses.replace(model, coefficients=w, errors=errors)


def _same(found: list[str], wanted: list[str]) -> None:
    if len(found) != len(wanted):
        raise ValueError(f"terms must be {len(wanted)} as the columns have it, got {len(found)}")
    for i, (here, there) in enumerate(zip(found, wanted, strict=True)):
        if here != there:
            raise wrong(f"terms[{i}].term", repr(there), here)


def _array(terms: tuple[dict[str, Any], ...], field: str, width: int) -> np.ndarray | None:
    rows = [term[field] for term in terms]
    if all(row is None for row in rows):
        return None
    for i, row in enumerate(rows):
        if row is None or len(row) != width:
            got = "null" if row is None else len(row)
            numbers = f"{width} number{'s' if width > 1 else ''}"
            raise ValueError(f"terms[{i}].{field} must be {numbers}, got {got}")
    return np.array(rows, float)


MODEL = record(
    {
        "format": one_of((FORMAT,)),
        "target": _word,
        "loss": one_of(NAMES),
        "labels": listing(_label),
        "missing": one_of(MISSING),
        "columns": listing(_column),
        "terms": listing(TERM),
        "facts": parameters,
    },
    _made,
)
