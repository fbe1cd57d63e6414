"""Draw figures with matplotlib: an SVG per panel in the colours of the page, or one PNG of all.

matplotlib is an optional dependency and imported only inside functions.
"""

from __future__ import annotations

import dataclasses
import html
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# The colours of Okabe and Ito, which can be distinguished with any colour vision. Each is a CSS
# variable of the page, since a shade that is readable on white is too dark on black.
LIGHT = {
    "blue": "#0072b2",
    "orange": "#d55e00",
    "green": "#009e73",
    "purple": "#b45f93",
    "yellow": "#c98a00",
    "ink": "#1f2328",
    "faint": "#c9ced6",
}
DARK = {
    "blue": "#58b4ec",
    "orange": "#ff8b4a",
    "green": "#2fc79b",
    "purple": "#e39ac6",
    "yellow": "#f2bd45",
    "ink": "#e6e9ee",
    "faint": "#414955",
}
# The colour ramp for a parameter with many values: lightness increases along it, and both ends are
# readable on white and on black.
RAMP = ("#0b74b8", "#7d71c9", "#c96fa6", "#df8a62", "#dba32a")
PANEL = (4.0, 3.1)  # width and height in inches
WIDE = 1.35  # width over height of the axes of a panel, without their labels
LEVELS = 14  # contours: enough to see a valley, few enough to see the paths on them
MAX_POINTS = 400  # of a line: more cannot be distinguished and make the page large
STYLE: Any = {
    "svg.fonttype": "none",  # text instead of paths: small, selectable, in the font of the page
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LIGHT["ink"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.titlecolor": LIGHT["ink"],
    "axes.titlesize": 10.5,
    "text.color": LIGHT["ink"],
    "xtick.color": LIGHT["ink"],
    "ytick.color": LIGHT["ink"],
    "axes.grid": True,
    "axes.axisbelow": True,  # bars and points hide the grid
    "grid.color": LIGHT["faint"],
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.constrained_layout.use": True,
}


@dataclasses.dataclass(frozen=True)
class Panel:
    """One panel of a figure; `draw(axes, data)` draws it with matplotlib."""

    title: str
    draw: Callable[[Any, Mapping[str, Any]], None]


Panels = Sequence[Sequence[Panel]]  # rows of panels, as in the paper


def colour(name: str) -> str:
    """Return the code of a named colour; other colours are returned as they are."""
    return LIGHT.get(name, name)


def ramp(t: float) -> str:
    """Return the colour of the ramp at t in [0, 1]."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    return to_hex(LinearSegmentedColormap.from_list("ramp", RAMP)(float(t)))


def line(axis: Any, x: Any, y: Any, named: str, **style: Any) -> None:
    """Draw a line of at most `MAX_POINTS` points; values that are not finite are gaps."""
    x, y = np.asarray(x), np.asarray(y)
    shown = np.unique(np.linspace(0, len(x) - 1, min(len(x), MAX_POINTS)).astype(int))
    style = {"markersize": 4.5, **style}
    axis.plot(x[shown], np.where(np.isfinite(y), y, np.nan)[shown], color=colour(named), **style)


def decades(axis: Any, label: str, low: float | None = None, legend: bool = True) -> None:
    """Label the axes as values on a logarithmic scale against iterations, as in the paper."""
    axis.set_yscale("log")
    axis.set(xlabel="iteration", ylabel=label)
    if axis.get_xscale() == "linear":
        axis.locator_params(axis="x", integer=True)  # iterations are whole numbers
        if axis.get_xlim()[1] >= 1e4:
            axis.locator_params(axis="x", nbins=5)  # long numbers need room
            axis.xaxis.set_major_formatter("{x:,.0f}")
    if low is not None:
        axis.set_ylim(bottom=low)
    if legend:
        axis.legend()


def contours(
    axis: Any, f: Callable[..., Any], x_range: tuple[float, float], y_range: tuple[float, float]
) -> None:
    """Draw the contours of f(x, y) with one scale on both axes, for which x has a wider range."""
    centre, height = sum(x_range) / 2, y_range[1] - y_range[0]
    half = max(x_range[1] - x_range[0], WIDE * height) / 2
    x_range = (centre - half, centre + half)
    x, y = np.meshgrid(np.linspace(*x_range, 160), np.linspace(*y_range, 80))
    values = f(x, y)
    # squares, so that the contours of a quadratic have equal distances
    levels = values.min() + np.ptp(values) * np.linspace(0, 1, LEVELS + 2)[1:-1] ** 2
    axis.contour(
        x, y, values, levels=levels, colors=LIGHT["faint"], linewidths=0.9, linestyles="solid"
    )
    axis.set(xlim=x_range, ylim=y_range, aspect="equal")
    axis.locator_params(steps=(1, 2, 5, 10))  # -10, -5, 0, not -7.5
    axis.grid(False)


def render(name: str, panels: Panels, data: Mapping[str, Any]) -> tuple[list[list[str]], bytes]:
    """Return the panels as rows of SVG texts, and as one PNG."""
    return svgs(name, panels, data), png(panels, data)


def png(panels: Panels, data: Mapping[str, Any], dpi: int = 130) -> bytes:
    """Return all panels as one PNG."""
    plt = _pyplot()
    with plt.rc_context(STYLE):
        return _png(plt, panels, data, dpi)


def svgs(name: str, panels: Panels, data: Mapping[str, Any]) -> list[list[str]]:
    """Return the panels as rows of SVG texts; `name` makes their ids unique in a page."""
    plt = _pyplot()
    with plt.rc_context(STYLE):
        return [
            [_svg(plt, f"{name}-{i}-{j}", panel, data) for j, panel in enumerate(row)]
            for i, row in enumerate(panels)
        ]


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def _png(plt: Any, panels: Panels, data: Mapping[str, Any], dpi: int) -> bytes:
    widest = max(len(row) for row in panels)
    size = (PANEL[0] * widest, (PANEL[1] + 0.2) * len(panels))
    figure = plt.figure(figsize=size)
    subfigures = np.ravel(figure.subfigures(len(panels), 1))
    for subfigure, row in zip(subfigures, panels, strict=True):
        for axis, panel in zip(np.ravel(subfigure.subplots(1, len(row))), row, strict=True):
            panel.draw(axis, data)
            axis.set_title(panel.title)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    plt.close(figure)
    return buffer.getvalue()


def _svg(plt: Any, salt: str, panel: Panel, data: Mapping[str, Any]) -> str:
    with plt.rc_context({"svg.hashsalt": salt}):
        figure, axis = plt.subplots(figsize=PANEL)
        panel.draw(axis, data)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        plt.close(figure)
    return _inline_svg(buffer.getvalue(), salt, panel.title)


def _inline_svg(svg: str, prefix: str, title: str) -> str:
    """Return SVG to embed in a page: CSS variables as colours, unique ids, an accessible title."""
    svg = svg[svg.index("<svg") :]
    # the style sheet of the page replaces that of the SVG; comments only repeat the texts
    for pattern in ("<metadata>.*?</metadata>", "<style.*?</style>", "<!--.*?-->"):
        svg = re.sub(pattern, "", svg, flags=re.DOTALL)
    for name, code in LIGHT.items():
        svg = svg.replace(code, f"var(--{name})")
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    svg = svg.replace("url(#", f"url(#{prefix}-")
    svg = re.sub(r"(font: [^;\"]*?)'[^\"]*?sans-serif", r"\1sans-serif", svg)
    opening = re.match(r"<svg[^>]*>", svg)
    assert opening is not None
    box = re.search(r'viewBox="[^"]*"', opening.group(0))
    assert box is not None
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{box.group(0)} role="img" aria-label="{html.escape(title)}">'
        + svg[opening.end() :].strip()
    )
