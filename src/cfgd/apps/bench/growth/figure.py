"""Time and memory against each of the sizes, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cfgd.apps.bench.growth.series import SYMBOLS, Series
from cfgd.apps.page.drawing import Panel, colour, png

COLOURS = ("blue", "orange", "green", "purple", "yellow")
# what goes into one panel: those of which there are few
TOGETHER = (("rows",), ("columns",), ("nodes", "settings"), ("processes",))


def figure(found: Sequence[Series]) -> bytes:
    """A PNG: a column for each size, time above and memory below."""
    columns = [
        (" or ".join(kinds), [one for one in found if one.against in kinds]) for kinds in TOGETHER
    ]
    columns = [column for column in columns if column[1]]
    above = [Panel("time of an iteration", partial(_draw, *of, "least")) for of in columns]
    below = [Panel("memory of the process", partial(_draw, *of, "bytes")) for of in columns]
    return png([above, below], {}, dpi=100)


def _draw(
    sizes: str, shown: Sequence[Series], field: str, axis: Any, data: Mapping[str, Any]
) -> None:
    is_time = field == "least"
    for one, named in zip(shown, COLOURS, strict=False):
        values = getattr(one, field)
        if any(value is None for value in values):
            continue
        power, unit = (one.time, 1.0) if is_time else (one.memory, 1e-6)
        label = f"{one.name}: {SYMBOLS[one.against]}^{power:.2f}"
        style = {"color": colour(named), "markersize": 4, "label": label}
        axis.plot(one.sizes, [unit * value for value in values], "o-", **style)
    axis.set(xscale="log", yscale="log", xlabel=sizes, ylabel="seconds" if is_time else "MB")
    if axis.lines:
        low, high = axis.get_ylim()
        axis.set_ylim(low, high * (high / low) ** 0.4)  # room for the names
        axis.legend(loc="upper left", fontsize=7)
