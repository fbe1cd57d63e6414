"""Tables and small figures that IPython and Jupyter show for results: HTML without scripts.

Lines have the colour of the text, so that they can be read on light and dark pages.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

WIDTH, HEIGHT, MARGIN = 150, 26, 2  # of a sparkline, in CSS pixels: about a line of text high
MOST_POINTS = 300  # two for each pixel of the width; more cannot be seen


class Markup(str):
    """Text that is HTML already; any other text is escaped."""


def table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first column names its rows.

    With a header, columns of numbers end below one another and no cell is wrapped. The last cell
    of a row with fewer cells than the header spans the rest.
    """
    whole = next((row for row in rows if len(row) == len(header)), header)
    styles = [LINE, *(map(_style, whole[1:]) if header else [CELL])]
    head = "".join(
        f'<th style="{style}">{_text(each)}</th>'
        for each, style in zip(header, styles, strict=bool(header))
    )
    body = "".join(
        f'<tr><th style="{LINE}">{_text(first)}</th>' + "".join(_cells(rest, styles[1:])) + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<table><caption style="{CAPTION}">{_text(caption)}</caption>'
        + (f"<thead><tr>{head}</tr></thead>" if header else "")
        + f"<tbody>{body}</tbody></table>"
    )


CELL = "text-align: left; vertical-align: top; padding: 1px 8px"
LINE = f"{CELL}; white-space: nowrap"
NUMBER = LINE.replace("left", "right", 1)
CAPTION = "text-align: left; font-weight: bold; color: inherit"


def _style(cell: str) -> str:
    """Return the style of the column of a cell: numbers end below one another."""
    return NUMBER if re.match(r"[-+]?\d|nan|inf", cell) else LINE


def _cells(row: Sequence[str], styles: Sequence[str]) -> Iterator[str]:
    for i, (cell, style) in enumerate(zip(row, styles, strict=False), 1):
        spans = len(styles) - i + 1 if i == len(row) else 1
        wide = f' colspan="{spans}"' if spans > 1 else ""
        yield f'<td style="{LINE if wide else style}"{wide}>{_text(cell)}</td>'


def _text(cell: str) -> str:
    return cell if isinstance(cell, Markup) else html.escape(cell)


def line(values: Any, label: str, log: bool = False) -> Markup:
    """Return a sparkline through the values; those that are not finite leave gaps."""
    x, y = _places(values, log)
    parts, joined = [], False
    for at, height in zip(x, y, strict=True):
        if np.isfinite(height):
            parts.append(f"{'L' if joined else 'M'}{at:.1f} {height:.1f}")
        joined = bool(np.isfinite(height))
    path = "".join(parts) + ("h0" if len(parts) == 1 else "")
    return _figure(f'<path d="{path}" stroke-width="1.5" stroke-linecap="round"/>', label)


def dots(values: Any, label: str) -> Markup:
    """Return the values as dots around a line at zero."""
    numbers = np.append(np.asarray(values, float), 0.0)
    x, y = _places(numbers, False)
    zero = f'<path d="M0 {y[-1]:.1f}H{WIDTH}" stroke-width="0.7" opacity="0.5"/>'
    known = [(at, height) for at, height in zip(x[:-1], y[:-1], strict=True) if np.isfinite(height)]
    path = "".join(f"M{at:.1f} {height:.1f}h0" for at, height in known)
    return _figure(f'{zero}<path d="{path}" stroke-width="3" stroke-linecap="round"/>', label)


def bars(values: Any, label: str) -> Markup:
    """Return a histogram of the finite values."""
    numbers = np.asarray(values, float).ravel()
    counts, _ = np.histogram(numbers[np.isfinite(numbers)], BINS)
    width, height = (WIDTH - 2 * MARGIN) / BINS, (HEIGHT - 2 * MARGIN) / max(counts.max(), 1)
    path = "".join(
        f"M{MARGIN + (i + 0.5) * width:.1f} {HEIGHT - MARGIN}v{-height * n:.1f}"
        for i, n in enumerate(counts)
        if n
    )
    return _figure(f'<path d="{path}" stroke-width="{0.8 * width:.1f}"/>', label)


BINS = 24  # bars of about six pixels


def _places(values: Any, log: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the values in a figure, NaN where there is none."""
    numbers = np.asarray(values, float).ravel()
    index = np.arange(len(numbers))
    if len(numbers) > MOST_POINTS:
        index = np.unique(np.linspace(0, len(numbers) - 1, MOST_POINTS).astype(int))
    numbers = numbers[index]
    if log:
        numbers = np.log10(np.where(numbers > 0, numbers, np.nan))
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    known = numbers[~np.isnan(numbers)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 0.0)
    # equal numbers lie in the middle
    share = (numbers - low) / (high - low) if high > low else numbers - low + 0.5
    x = MARGIN + (WIDTH - 2 * MARGIN) * index / max(int(index.max(initial=0)), 1)
    return x, HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * share


def _figure(content: str, label: str) -> Markup:
    label = html.escape(label)
    return Markup(
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{label}" fill="none" stroke="currentColor"><title>{label}</title>'
        f"{content}</svg>"
    )
