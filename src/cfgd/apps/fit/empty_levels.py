"""Levels without counts, or without a class: the likelihood then has no maximum.

If every row of a level has the count 0, the mean of that level is estimated as 0, whose logarithm
is minus infinity. The same holds beyond a value of a number: if all rows with positive counts have
the same value of a column, and the others this value or larger ones. A level in which a class does
not occur separates the classes: the log-odds of that class are estimated as minus infinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cfgd._core.engines.base import Arrays
from cfgd.apps.fit.columns import Column, TextColumn
from cfgd.apps.fit.formats import format_label
from cfgd.apps.fit.row_block import RowBlock
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import training_rows

# Of standardised columns: equal values of a column are equal in every row, to rounding.
EQUAL = 1e-9
SHOWN_LEVELS = 5  # without a class


def describe_empty_levels(rows: Rows, columns: Sequence[Column], terms: Sequence[str]) -> str:
    """Return which training rows all have the count 0, as sentences; "" if there are none.

    Parameters
    ----------
    columns
        The encoded columns; none where a formula makes the design matrix.
    terms
        The names of the columns of the design matrix.
    """
    found_limits = zip(*rows.map(training_rows, _limits, rows.width), strict=True)
    lows, highs = map(np.array, found_limits)
    low, high = lows.min(0), highs.max(0)
    is_constant = high[1] - low[1] <= EQUAL
    above = is_constant & (high[0] > high[1] + EQUAL) & (low[0] >= low[1] - EQUAL)
    below = is_constant & (low[0] < low[1] - EQUAL) & (high[0] <= high[1] + EQUAL)
    groups = _groups(columns)
    places = [place for place, _ in groups.values()]
    with_counts: dict[str, int] = {}
    if groups:
        (counts,) = rows.sum(training_rows, _with_counts, places, low[0])
        with_counts = dict(zip(groups, counts.tolist(), strict=True))
    levels = {j for place, _ in groups.values() for j in range(place.start, place.stop)}
    found = [repr(terms[j]) for j in sorted(levels) if above[j]]
    found += [
        repr(f"{name} = {base}") for name, (_, base) in groups.items() if not with_counts[name]
    ]
    for j in sorted(set(range(rows.width)) - levels):
        if above[j] or below[j]:
            side = "larger" if above[j] else "smaller"
            found.append(f"a {side} {terms[j]!r} than those with counts")
    return f"All training rows with {' and with '.join(found)} have the target 0." if found else ""


def _limits(blocks: Iterator[RowBlock], width: int) -> Arrays:
    """Return the least and the largest values of all rows, and of those with counts."""
    low, high = (np.full((2, width), sign * np.inf) for sign in (1, -1))
    for block in blocks:
        for k, X in enumerate((block.X, block.X[block.y > 0])):
            low[k] = np.minimum(low[k], X.min(0, initial=np.inf))
            high[k] = np.maximum(high[k], X.max(0, initial=-np.inf))
    return low, high


def _with_counts(blocks: Iterator[RowBlock], places: Sequence[slice], low: np.ndarray) -> Arrays:
    """Return for each text how many rows of the reference level have a count."""
    found = np.zeros(len(places), int)
    for block in blocks:
        for k, place in enumerate(places):
            is_other = (block.X[:, place] > low[place] + EQUAL).any(1)
            found[k] += int(np.sum((block.y > 0) & ~is_other))
    return (found,)


def describe_levels_without_class(rows: Rows, columns: Sequence[Column]) -> str:
    """Return which classes no training row of a level has, as sentences; "" if there are none.

    There are none to return for text columns in a formula, whose terms are no levels.
    """
    groups, labels = _groups(columns), rows.target.labels
    if not groups:
        return ""
    lows, _ = zip(*rows.map(training_rows, _limits, rows.width), strict=True)
    low = np.array(lows).min((0, 1))
    places = [place for place, _ in groups.values()]
    found = rows.sum(training_rows, _classes_of_levels, places, low, len(labels))
    counts = dict(zip(groups, found, strict=True))
    sentences = []
    for column in columns:
        if not isinstance(column, TextColumn):
            continue
        terms = [*column.terms, f"{column.name} = {column.base}"]
        for term, of_level in zip(terms, counts[column.name], strict=True):
            absent = [format_label(labels[k]) for k in np.flatnonzero(of_level == 0)]
            if absent and of_level.any():
                sentences.append(
                    f"None of the {of_level.sum():,.0f} training rows with {term!r} has the target "
                    f"{' or '.join(absent)}."
                )
    return " ".join(sentences[:SHOWN_LEVELS])


def _groups(columns: Sequence[Column]) -> dict[str, tuple[slice, str]]:
    """Return the places of the levels of each text, with its reference level."""
    found, start = {}, 0
    for column in columns:
        if isinstance(column, TextColumn):
            found[column.name] = slice(start, start + len(column.terms)), column.base
        start += len(column.terms)
    return found


def _classes_of_levels(
    blocks: Iterator[RowBlock], places: Sequence[slice], low: np.ndarray, labels: int
) -> Arrays:
    """Return for each text how many rows of each level, the reference level last, have a class."""
    counts = [np.zeros((place.stop - place.start + 1, labels)) for place in places]
    for block in blocks:
        classes = np.eye(labels)[block.y.astype(int)]
        for place, of_text in zip(places, counts, strict=True):
            is_level = block.X[:, place] > low[place] + EQUAL
            is_level = np.column_stack([is_level, ~is_level.any(1)])
            of_text += is_level.T.astype(float) @ classes
    return tuple(counts)
