"""The figure of growth: time and memory against size, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cfgd.apps.bench.growth.series import SYMBOLS, Series
from cfgd.apps.page.drawing import Panel, colour, png

COLOURS = ("blue", "orange", "green", "purple", "yellow")
# sizes that share a panel, because each has few series
PANELS = (("rows",), ("columns",), ("nodes", "settings"), ("processes",))


def figure(series: Sequence[Series]) -> bytes:
    """Return a PNG with a column for each kind of size, time above and memory below."""
    columns = [
        (" or ".join(sizes), [one for one in series if one.against in sizes]) for sizes in PANELS
    ]
    columns = [column for column in columns if column[1]]
    above = [Panel("time of an iteration", partial(_draw, *column, "least")) for column in columns]
    below = [Panel("memory of the process", partial(_draw, *column, "bytes")) for column in columns]
    return png([above, below], {}, dpi=100)


def _draw(
    xlabel: str, series: Sequence[Series], field: str, axis: Any, data: Mapping[str, Any]
) -> None:
    is_time = field == "least"
    for one, colour_name in zip(series, COLOURS, strict=False):
        values = getattr(one, field)
        if any(value is None for value in values):
            continue
        power, unit = (one.time, 1.0) if is_time else (one.memory, 1e-6)
        label = f"{one.name}: {SYMBOLS[one.against]}^{power:.2f}"
        style = {"color": colour(colour_name), "markersize": 4, "label": label}
        axis.plot(one.sizes, [unit * value for value in values], "o-", **style)
    axis.set(
        xscale="log",
        yscale="log",
        xlabel=f"number of {xlabel}",
        ylabel="CPU time (s)" if is_time else "memory (MB)",
    )
    if axis.lines:
        low, high = axis.get_ylim()
        axis.set_ylim(low, high * (high / low) ** 0.4)  # room for the legend
        axis.legend(loc="upper left", fontsize=7)
