"""The file model.json: readable JSON of a checked version; reading it executes nothing."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from cfgd._core.files import is_there, json_safe, reason, write
from cfgd.apps.fit import formula_json
from cfgd.apps.fit.column_format import Reading
from cfgd.apps.fit.columns import POOL, Column, NumberColumn, TextColumn, term_names
from cfgd.apps.fit.formula import Formula
from cfgd.apps.fit.missing_values import POLICIES
from cfgd.apps.fit.reading_json import READING, reading_as_json
from cfgd.apps.fit.target import LOSS_NAMES
from cfgd.apps.json_schema import (
    any_text,
    content,
    finite,
    listing,
    maybe,
    one_of,
    parameters,
    record,
    wrong,
)
from cfgd.objectives.linear.formulas import MULTINOMIAL

FORMAT = "cfgd model 1"
INTERCEPT = "intercept"
OPTIONAL = ("offset", "formula", "reading")  # fields that a file may lack


@dataclasses.dataclass(frozen=True)
class Model:
    """A fitted model: all that `cfgd predict` needs.

    Attributes
    ----------
    target, loss, missing : str
        The name of the target, the loss, and the policy for missing values.
    labels : tuple
        The class labels in ascending order, of two the positive one last; empty if the target is
        a number.
    columns : tuple of Column
        The columns of the table with their encodings.
    coefficients : array of shape (d + 1,) or (d + 1, classes)
        In the units of the columns; the intercept is last.
    errors : array of the same shape, or None
        Standard errors of the coefficients.
    facts : dict
        How the model was fitted.
    offset : str or None
        The column that is added to the linear predictor.
    formula : Formula or None
        What makes the columns of the design matrix of the encoded columns.
    reading : Reading or None
        How the file of the training data was read; None for plain numbers and texts.
    """

    target: str
    loss: str
    labels: tuple[Any, ...]
    missing: str
    columns: tuple[Column, ...]
    coefficients: np.ndarray
    errors: np.ndarray | None
    facts: dict[str, Any]
    offset: str | None = None
    formula: Formula | None = None
    reading: Reading | None = None

    @functools.cached_property
    def terms(self) -> list[str]:
        """The names of the coefficients."""
        of_columns = term_names(self.columns) if self.formula is None else self.formula.terms
        return [*of_columns, INTERCEPT]

    def save(self, path: Path) -> None:
        """Write the model as JSON."""
        errors = self.errors if self.errors is not None else [None] * len(self.coefficients)
        rows = zip(self.terms, self.coefficients, errors, strict=True)
        saved = {
            "format": FORMAT,
            "target": self.target,
            "loss": self.loss,
            "labels": list(self.labels),
            "missing": self.missing,
            "columns": [_column_as_json(column) for column in self.columns],
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
        # fields that older versions do not know are written where they are needed
        if self.offset is not None:
            saved["offset"] = self.offset
        if self.formula is not None:
            saved["formula"] = formula_json.as_json(self.formula)
        if self.reading is not None:
            saved["reading"] = reading_as_json(self.reading)
        write(path, _format_json(json_safe(saved, lambda value: None)))


def _format_json(saved: dict[str, Any]) -> str:
    """Return JSON with a line for each column and for each term."""
    lines = []
    for key, entry in saved.items():
        text = json.dumps(entry, ensure_ascii=False)
        if isinstance(entry, list) and entry and isinstance(entry[0], dict):
            items = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in entry)
            text = f"[\n  {items}\n ]"
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_model(path: Path) -> Model:
    """Read a model; raise a `ValueError` that names the file and the field that is wrong."""
    try:
        if not is_there(path):
            raise ValueError(f"There is no file {path}.")
    except OSError as error:  # a name that is too long, a folder that may not be read
        raise ValueError(f"{path} cannot be read: {reason(error)}.") from None
    try:
        saved = content(path)
        if isinstance(saved, dict) and "format" in saved:  # first: other formats have other fields
            one_of((FORMAT,))(saved["format"], "format")
        if isinstance(saved, dict):
            saved = dict.fromkeys(OPTIONAL) | saved
        return MODEL(saved, "")
    except ValueError as error:
        raise ValueError(f"{path} is not a valid model: {error}.") from None


def _column_as_json(column: Column) -> dict[str, Any]:
    saved = {"name": column.name, "kind": column.kind} | {
        field.name: getattr(column, field.name)
        for field in dataclasses.fields(column)
        if field.name not in ("name", "kind")
    }
    return {field: entry for field, entry in saved.items() if field != "rare" or entry}


def _label(value: Any, place: str) -> str | float:
    return any_text(value, place) if isinstance(value, str) else finite(value, place)


def _text_column(
    name: str, kind: str, base: str, levels: tuple[str, ...], rare: tuple[str, ...]
) -> TextColumn:
    if len({base, *levels, *rare}) < 1 + len(levels) + len(rare):
        raise ValueError(f"the base and the levels of the column {name[:40]!r} must be distinct")
    if rare and POOL not in (base, *levels):
        raise ValueError(f"the column {name[:40]!r} must have the level {POOL!r} for rare texts")
    return TextColumn(name, base, levels, rare)


NUMBER_COLUMN = record({"name": any_text, "kind": any_text, "mean": finite}, NumberColumn)
TEXT_COLUMN = record(
    {
        "name": any_text,
        "kind": any_text,
        "base": any_text,
        "levels": listing(any_text),
        "rare": listing(any_text),
    },
    _text_column,
)


def _column(value: Any, place: str) -> Column:
    kind = value.get("kind") if isinstance(value, dict) else None
    one_of(("number", "text"))(kind, f"{place}.kind")
    if kind == "number":
        return NUMBER_COLUMN(value, place)
    return TEXT_COLUMN({"rare": []} | value, place)


TERM = record(
    {
        "term": any_text,
        "coefficient": listing(finite),
        "standard error": maybe(listing(finite)),
    }
)


def _model_from_json(
    format: str,
    target: str,
    loss: str,
    labels: tuple[Any, ...],
    missing: str,
    columns: tuple[Column, ...],
    terms: tuple[dict[str, Any], ...],
    facts: dict[str, Any],
    offset: str | None,
    formula: Formula | None,
    reading: Reading | None,
) -> Model:
    """Check that the fields of a model agree, and return it."""
    wanted = {"logistic": "2 labels", MULTINOMIAL: "at least 2 labels"}.get(loss, "no labels")
    counts = {"logistic": {2}, MULTINOMIAL: range(2, len(labels) + 1)}.get(loss, {0})
    if len(labels) not in counts:
        raise ValueError(f"labels must be {wanted} for the loss {loss}, got {len(labels)}")
    if len(set(map(type, labels))) > 1 or len(set(labels)) < len(labels):
        raise ValueError("labels must be distinct, and all texts or all numbers")
    names = [column.name for column in columns]
    if not names or len(set(names)) < len(names):
        raise ValueError("columns must be at least one and have different names")
    if offset is not None and loss == MULTINOMIAL:
        raise ValueError("offset must be null for the loss multinomial")
    if formula is not None:
        formula_json.check_formula(formula, columns)
    without = (np.zeros(0), None, facts, offset, formula, reading)  # no coefficients yet
    model = Model(target, loss, labels, missing, columns, *without)
    _check_terms([term["term"] for term in terms], model.terms)
    width = len(labels) if loss == MULTINOMIAL else 1
    arrays = [_array(terms, field, width) for field in ("coefficient", "standard error")]
    w, errors = (array if array is None or width > 1 else array[:, 0] for array in arrays)
    if w is None:
        raise ValueError("terms must have coefficients")
    return dataclasses.replace(model, coefficients=w, errors=errors)


def _check_terms(found: list[str], wanted: list[str]) -> None:
    if len(found) != len(wanted):
        raise ValueError(
            f"terms must be {len(wanted)}, as many as the columns give, got {len(found)}"
        )
    for i, (got, term) in enumerate(zip(found, wanted, strict=True)):
        if got != term:
            raise wrong(f"terms[{i}].term", repr(term), got)


def _array(terms: tuple[dict[str, Any], ...], field: str, width: int) -> np.ndarray | None:
    """Return a field of all terms as a matrix, or None if all are null."""
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
        "target": any_text,
        "loss": one_of(LOSS_NAMES),
        "labels": listing(_label),
        "missing": one_of(POLICIES),
        "columns": listing(_column),
        "terms": listing(TERM),
        "facts": parameters,
        "offset": maybe(any_text),
        "formula": maybe(formula_json.FORMULA),
        "reading": maybe(READING),
    },
    _model_from_json,
)
