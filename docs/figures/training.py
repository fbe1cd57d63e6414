"""The table of the page on training, drawn: loss over that with gamma = 0, by gamma and lag."""

import re
from pathlib import Path

import numpy as np

from cfgd.apps.page.drawing import LIGHT, Panel

PAGE = Path(__file__).parents[1] / "training.md"
ROW = re.compile(r"^\| (cf\w+) \((\S+), (\d)\) \|(.*)\|$", re.MULTILINE)
COLOURS = {"cfgd": "blue", "cfadam": "orange", "cfadamw": "green"}


def data():
    """(optimizer, gamma, lag) with the means of equal gradients and of equal steps."""
    rows = {}
    for name, gamma, lag, cells in ROW.findall(PAGE.read_text(encoding="utf-8")):
        numbers = re.findall(r"[\d.]+", cells)
        if len(numbers) == 8 and "[" not in cells:
            rows[name, gamma, lag] = float(numbers[5]), float(numbers[7])
    return rows


def order(setting):
    gamma, lag = float(setting[0]), int(setting[1])
    return abs(gamma) * lag, gamma


def drawn(place, axis, rows):
    settings = sorted({key[1:] for key in rows}, key=order)
    for i, name in enumerate(COLOURS):
        at = [j for j, setting in enumerate(settings) if (name, *setting) in rows]
        means = [rows[name, *settings[j]][place] for j in at]
        where = np.array(at) + 0.25 * (i - 1)
        axis.bar(where, means, 0.23, color=LIGHT[COLOURS[name]], label=name)
    axis.axhline(1.0, color=LIGHT["ink"], linewidth=1.0)
    names = [f"{gamma}\n{lag}".replace("-", "−") for gamma, lag in settings]
    axis.set_xticks(range(len(settings)), names, fontsize=8)
    axis.set_yscale("log")
    axis.set_yticks([1, 2, 4], ["1", "2", "4"])
    axis.set_yticks([], minor=True)
    axis.set(xlabel="gamma, lag, sorted by |gamma| lag", ylabel="loss / loss with gamma = 0")
    axis.legend()


PANELS = [
    [
        Panel("At equal gradients", lambda axis, rows: drawn(0, axis, rows)),
        Panel("At equal steps", lambda axis, rows: drawn(1, axis, rows)),
    ]
]
