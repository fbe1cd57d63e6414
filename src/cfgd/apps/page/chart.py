"""A chart as SVG, for reports that are written in a moment: loading matplotlib takes longer.

Colours are the CSS variables of the page, so that a chart follows its light and dark themes.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

WIDTH, HEIGHT = 340, 262  # of the view box; a phone shows it at about this size
TOP, RIGHT, BOTTOM = 10, 12, 42  # margins around the axes
CHARACTER, TEXT = 6.5, 11  # the width of a character and the height of a text
MOST_TICKS = 6
PADDING = 0.04  # of the range of the data, beyond its ends
LEGEND_LINE = 15


def round_ticks(low: float, high: float, integer: bool = False) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten within the limits.

    >>> print(round_ticks(-0.3, 2.1), round_ticks(0, 3, integer=True))
    [0.0, 0.5, 1.0, 1.5, 2.0] [0.0, 1.0, 2.0, 3.0]
    """
    span = high - low
    if not 0 < span < math.inf:
        return [low] if math.isfinite(low) else []
    size = 10.0 ** math.floor(math.log10(span / MOST_TICKS))
    step = next(size * k for k in (1, 2, 5, 10, 20) if span / (size * k) <= MOST_TICKS - 1)
    if integer:
        step = max(1.0, float(round(step)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def decade_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten within the limits, at most `MOST_TICKS` of them.

    >>> print(decade_ticks(0.02, 300.0))
    [0.1, 1.0, 10.0, 100.0]
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, -(-(last - first + 1) // MOST_TICKS))
    return [10.0**k for k in range(first, last + 1, step)]


def tick_text(value: float, is_log: bool = False) -> str:
    """Return the number of a tick as people write it.

    >>> print(tick_text(0.30000000000000004), tick_text(12000.0), tick_text(1e-05, is_log=True))
    0.3 12,000 1e-5
    """
    if is_log and not 1e-3 < value < 1e4:
        return f"1e{round(math.log10(value))}"
    size = abs(value)
    if size and not 1e-4 <= size < 1e6:
        return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    text = f"{value:,.6g}" if size < 1000 else f"{value:,.0f}"
    return text.replace("-", "\N{MINUS SIGN}")


class Chart:
    """Points, lines and bars between two axes.

    Parameters
    ----------
    x_label, y_label
        What the axes show.
    log
        The axes that are logarithmic, of "x" and "y".
    integer_x
        Whether the ticks of x are whole numbers.
    names
        Names at the y axis instead of numbers: the first one is at y = 0, the next one at 1.
    limits
        Limits of both axes, where they are known.
    """

    def __init__(
        self,
        x_label: str,
        y_label: str = "",
        *,
        log: str = "",
        integer_x: bool = False,
        names: Sequence[str] = (),
        limits: tuple[float, float] | None = None,
    ) -> None:
        self.labels, self.log, self.integer_x, self.names = (
            (x_label, y_label),
            log,
            integer_x,
            names,
        )
        self.limits = limits
        self._marks: list[tuple[str, np.ndarray, np.ndarray, dict[str, Any]]] = []
        self._rules: list[tuple[str, float]] = []
        self._legend: list[tuple[str, str]] = []

    def points(self, x: Any, y: Any, colour: str, size: float = 3.5, opacity: float = 1.0) -> None:
        self._add("points", x, y, colour=colour, size=size, opacity=opacity)

    def line(self, x: Any, y: Any, colour: str, label: str = "", width: float = 1.8) -> None:
        """Add a line; values that are not finite are gaps."""
        self._add("line", x, y, colour=colour, width=width)
        if label:
            self._legend.append((colour, label))

    def whiskers(self, x: Any, y: Any, colour: str) -> None:
        """Add short lines: x and y have the two ends of each in a row."""
        self._add("whiskers", x, y, colour=colour)

    def columns(self, edges: Any, heights: Any, colour: str) -> None:
        """Add the columns of a histogram."""
        edges, heights = np.asarray(edges, float), np.asarray(heights, float)
        x = np.column_stack([edges[:-1], edges[1:]])
        self._add("columns", x, np.column_stack([0 * heights, heights]), colour=colour)

    def rule(self, axis: str, at: float) -> None:
        """Add a thin line across the chart where x, or y, has a value."""
        self._rules.append((axis, at))

    def _add(self, kind: str, x: Any, y: Any, **style: Any) -> None:
        x, y = np.asarray(x, float), np.asarray(y, float)
        for axis, values in (("x", x), ("y", y)):
            if axis in self.log:
                values[~(values > 0)] = np.nan
        self._marks.append((kind, x, y, style))

    def _range(self, axis: str) -> tuple[float, float]:
        """Return the limits of an axis, of logarithms for a logarithmic one."""
        if self.limits is not None:
            return self.limits
        if axis == "y" and self.names:
            return -0.6, len(self.names) - 0.4
        parts = [np.ravel(x if axis == "x" else y) for _, x, y, _ in self._marks]
        parts += [np.array([at]) for name, at in self._rules if name == axis]
        values = np.concatenate(parts) if parts else np.zeros(0)
        if axis in self.log:
            values = np.log10(values)
        values = values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
        pad = PADDING * (high - low) or 0.5 * (abs(low) or 1.0)
        return low - pad, high + pad

    def svg(self, title: str) -> str:
        """Return the chart; `title` is for readers that do not see it."""
        x_range, y_range = self._range("x"), self._range("y")
        x_ticks = self._ticks("x", x_range)
        y_ticks = [] if self.names else self._ticks("y", y_range)
        texts = [*self.names, *(tick_text(tick, "y" in self.log) for tick in y_ticks)]
        left = 12 + CHARACTER * max(map(len, texts), default=0) + (TEXT + 5) * bool(self.labels[1])
        top = TOP + LEGEND_LINE * len(self._legend)
        box = left, WIDTH - RIGHT, top, HEIGHT - BOTTOM
        place = _Place(box, x_range, y_range, self.log)
        parts = [*self._axes(place, x_ticks, y_ticks), *self._drawn(place)]
        for i, (colour, label) in enumerate(self._legend):
            y = TOP + LEGEND_LINE * i + 4
            parts.append(
                f'<path d="M{left:.1f} {y}h18" stroke="var(--{colour})" stroke-width="2"/>'
            )
            parts.append(_text(left + 24, y + 4, label))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{html.escape(title)}" font-size="{TEXT}" fill="var(--ink)">'
            + "".join(parts)
            + "</svg>"
        )

    def _ticks(self, axis: str, limits: tuple[float, float]) -> list[float]:
        if axis not in self.log:
            return round_ticks(*limits, integer=axis == "x" and self.integer_x)
        low, high = (10.0**limit for limit in limits)
        found = decade_ticks(low, high)
        return found if len(found) > 1 else [tick for tick in round_ticks(low, high) if tick > 0]

    def _axes(self, place: _Place, x_ticks: list[float], y_ticks: list[float]) -> list[str]:
        left, right, top, bottom = place.box
        parts = []
        for tick in x_ticks:
            x = place.x(tick)
            parts.append(f'<path d="M{x:.1f} {top}V{bottom}" stroke="var(--faint)"/>')
            parts.append(_text(x, bottom + 15, tick_text(tick, "x" in self.log), "middle"))
        for tick, name in (
            [(float(i), name) for i, name in enumerate(self.names)]
            if self.names
            else [(tick, tick_text(tick, "y" in self.log)) for tick in y_ticks]
        ):
            y = place.y(tick)
            parts.append(f'<path d="M{left:.1f} {y:.1f}H{right}" stroke="var(--faint)"/>')
            parts.append(_text(left - 6, y + 4, name, "end"))
        parts.append(
            f'<path d="M{left:.1f} {top}V{bottom}H{right}" fill="none" stroke="var(--ink)"/>'
        )
        half = CHARACTER * len(self.labels[0]) / 2
        middle = max(half, min((left + right) / 2, WIDTH - half))  # a long label has all the width
        parts.append(_text(middle, HEIGHT - 8, self.labels[0], "middle"))
        if self.labels[1]:
            y = (top + bottom) / 2
            parts.append(_text(TEXT, y, self.labels[1], "middle", f"rotate(-90 {TEXT} {y:.1f})"))
        for axis, at in self._rules:
            here = f"M{place.x(at):.1f} {top}V{bottom}"
            if axis == "y":
                here = f"M{left:.1f} {place.y(at):.1f}H{right}"
            parts.append(f'<path d="{here}" stroke="var(--ink)"/>')
        return parts

    def _drawn(self, place: _Place) -> list[str]:
        parts = []
        for kind, x, y, style in self._marks:
            colour = f"var(--{style['colour']})"
            a, b = place.x(x), place.y(y)
            shown = np.isfinite(a) & np.isfinite(b)
            if kind == "points":
                circles = "".join(
                    f'<circle cx="{u:.1f}" cy="{v:.1f}" r="{style["size"]}"/>'
                    for u, v in zip(a[shown].tolist(), b[shown].tolist(), strict=True)
                )
                parts.append(f'<g fill="{colour}" opacity="{style["opacity"]}">{circles}</g>')
            elif kind == "columns":
                bars = "".join(
                    f"M{u[0]:.1f} {v[0]:.1f}V{v[1]:.1f}H{u[1] - 0.5:.1f}V{v[0]:.1f}z"
                    for u, v in zip(a.tolist(), b.tolist(), strict=True)
                )
                parts.append(f'<path d="{bars}" fill="{colour}"/>')
            else:
                path = _path(a, b, shown) if kind == "line" else _segments(a, b, shown)
                width = style.get("width", 1.5)
                parts.append(
                    f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
                )
        return parts


class _Place:
    """The map from data to the view box."""

    def __init__(
        self,
        box: tuple[float, float, float, float],
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        log: str,
    ) -> None:
        self.box, self.ranges, self.log = box, (x_range, y_range), log

    def x(self, value: Any) -> Any:
        left, right, _, _ = self.box
        return left + (right - left) * self._share("x", value)

    def y(self, value: Any) -> Any:
        _, _, top, bottom = self.box
        return bottom - (bottom - top) * self._share("y", value)

    def _share(self, axis: str, value: Any) -> Any:
        low, high = self.ranges[axis == "y"]
        return ((np.log10(value) if axis in self.log else value) - low) / (high - low)


def _path(x: np.ndarray, y: np.ndarray, shown: np.ndarray) -> str:
    """Return a line with gaps where nothing is shown."""
    pieces, pen = [], "M"
    for u, v, is_shown in zip(x.tolist(), y.tolist(), shown.tolist(), strict=True):
        if is_shown:
            pieces.append(f"{pen}{u:.1f} {v:.1f}")
        pen = "L" if is_shown else "M"
    return "".join(pieces)


def _segments(x: np.ndarray, y: np.ndarray, shown: np.ndarray) -> str:
    ends = zip(x.tolist(), y.tolist(), np.all(shown, axis=1).tolist(), strict=True)
    return "".join(
        f"M{u[0]:.1f} {v[0]:.1f}L{u[1]:.1f} {v[1]:.1f}" for u, v, is_shown in ends if is_shown
    )


def _text(x: float, y: float, text: str, anchor: str = "start", transform: str = "") -> str:
    turned = f' transform="{transform}"' if transform else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}>{html.escape(text)}</text>'
    )
