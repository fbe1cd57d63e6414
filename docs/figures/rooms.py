"""The six rooms, from the ground up, and what each is for."""

from matplotlib.patches import Rectangle

from cfgd.apps.page.drawing import LIGHT, Panel

ROOMS = (
    ("around", "integrations, reproduce, bench, fit, cli", "purple"),
    ("solve", "minimize, sweep, curve_fit: the host loop", "blue"),
    ("method", "terminal x order x step", "green"),
    ("objective", "value, line, slopes: what is minimised", "yellow"),
    ("calculus", "functions of one variable", "orange"),
    ("ground", "types, status, checks, precision", "ink"),
)


def data():
    return {}


def house(axis, run):
    axis.set(xlim=(0, 10), ylim=(-0.3, len(ROOMS)))
    axis.axis("off")
    for i, (name, about, colour) in enumerate(reversed(ROOMS)):
        edge = {"edgecolor": LIGHT[colour], "linewidth": 1.8}
        axis.add_patch(Rectangle((0.1, i + 0.08), 9.3, 0.8, fill=False, **edge))
        axis.text(0.4, i + 0.48, name, va="center", weight="bold", color=LIGHT[colour])
        axis.text(2.9, i + 0.48, about, va="center", fontsize=8.5)
    arrow = {"arrowstyle": "->", "color": LIGHT["ink"]}
    axis.annotate("", (9.75, 0.2), (9.75, len(ROOMS) - 0.2), arrowprops=arrow)


PANELS = [[Panel("A room imports from lower rooms only", house)]]
