"""The first screen of the report: what was fitted, how good it is, and what matters most."""

from __future__ import annotations

import dataclasses

import numpy as np

from cfgd._core.files import printable
from cfgd.apps.fit.columns import TextColumn
from cfgd.apps.fit.effects import RATIO_NAMES, as_ratio
from cfgd.apps.fit.formats import format_label, format_number
from cfgd.apps.fit.result import FitResult
from cfgd.apps.page.document import escape

SHOWN = 3  # coefficients on the first screen


@dataclasses.dataclass(frozen=True)
class Important:
    """One of the largest coefficients of standardised columns, in words.

    `size` is its share of the largest one, `is_positive` its sign.
    """

    term: str
    effect: str
    size: float
    is_positive: bool


def important_coefficients(result: FitResult) -> list[Important]:
    """Return the largest coefficients of standardised columns, of each column the largest class."""
    d = len(result.standardised) - 1
    by_class = result.target.scale * result.standardised[:-1].reshape(d, -1)
    classes = np.argmax(np.abs(by_class), 1)
    largest = by_class[np.arange(d), classes]
    order = np.argsort(-np.abs(largest), kind="stable")[:SHOWN]
    top = float(np.abs(largest[order[0]])) if d else 0.0
    return [
        Important(
            _term_name(result, int(j), int(classes[j])),
            _effect(result, int(j), int(classes[j]), float(largest[j])),
            float(abs(largest[j]) / top) if top > 0 else 0.0,
            bool(largest[j] >= 0),
        )
        for j in order
    ]


def _term_name(result: FitResult, j: int, k: int) -> str:
    term = result.model.terms[j]
    if result.target.classes == 1:
        return term
    return f"{term} (class {format_label(result.target.labels[k])})"


def _effect(result: FitResult, j: int, k: int, per_deviation: float) -> str:
    """Return what the column does to the prediction, in its most readable unit."""
    raw = float(result.model.coefficients.reshape(len(result.model.coefficients), -1)[j, k])
    reference = _reference(result, j)
    ratio_name = RATIO_NAMES.get(result.target.loss)
    amount, unit = raw, f"compared with {reference!r}"
    if reference is None and _is_boolean(result, j):
        unit = "for 1 compared with 0"
    elif reference is None:
        amount, unit = per_deviation, "per standard deviation"
    if ratio_name is None:
        sign = "+" if amount >= 0 else "\N{MINUS SIGN}"
        return f"{sign}{format_number(abs(amount))} {unit}"
    return f"{ratio_name} {format_number(as_ratio(amount))} {unit}"


def _reference(result: FitResult, j: int) -> str | None:
    """Return the reference level of the j-th term, or None if it is a number."""
    for column in result.model.columns:
        if j < len(column.terms):
            return column.base if isinstance(column, TextColumn) else None
        j -= len(column.terms)
    return None


def _is_boolean(result: FitResult, j: int) -> bool:
    """Return whether the j-th term is a column that was read as 1 and 0."""
    if result.model.reading is None:
        return False
    formats = {column.name: column.kind for column in result.model.reading.columns}
    return formats.get(result.model.terms[j]) == "boolean"


def overview(result: FitResult) -> str:
    """Return the first screen as HTML."""
    return f"""<div class="overview">
<div class="tiles">{"".join(_tiles(result))}</div>
<div class="important"><h2>Largest effects</h2>
<ol>{"".join(map(_line, important_coefficients(result)))}</ol>
<small>The columns with the largest standardised coefficients: blue bars raise the prediction,
orange ones lower it.</small></div>
</div>"""


def _tiles(result: FitResult) -> list[str]:
    """Return the first two measures with those of the baseline, and the rows."""
    quality = result.quality
    shown = list(quality.model)[:2]
    if "R squared" in quality.model:
        shown = ["R squared", *[name for name in shown if name != "R squared"]][:2]
    tiles = [
        _tile(
            format_number(quality.model[name]),
            name,
            f"baseline {format_number(quality.baseline[name])}" if name in quality.baseline else "",
        )
        for name in shown
    ]
    kind = "held-out rows" if result.options.test else "training rows"
    fitted = f"fitted to {result.statistics.training_count:,} rows"
    return [*tiles, _tile(f"{quality.rows:,}", kind, fitted)]


def _tile(number: str, name: str, more: str) -> str:
    return (
        f"<div class='tile'><b>{escape(number)}</b><span>{escape(name)}</span>"
        f"<small>{escape(more)}</small></div>"
    )


def _line(one: Important) -> str:
    side = "up" if one.is_positive else "down"
    width = max(1, round(100 * one.size))
    return (
        f'<li><span class="name">{escape(printable(one.term))}</span>'
        f'<span class="bar"><i class="{side}" style="width: {width}%"></i></span>'
        f"<small>{escape(printable(one.effect))}</small></li>"
    )
