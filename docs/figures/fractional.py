"""The genealogy of the published fractional rules: which formula each one changes, and how."""

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from cfgd.apps.page.drawing import LIGHT, Panel

# name: (column, row, text, colour, parent); columns count to the right, rows downwards
BOXES = {
    "root": (0, 5.5, "gradient\ndescent", "ink", None),
    "last": (1, 2.5, "times a power\nof the last step", "blue", "root"),
    "1": (2, 2.5, "1 Wang 2017", "blue", "last"),
    "2": (3, 0, "2 Sheng 2020\nprevious gradient", "blue", "1"),
    "6": (4, 0, "6 Taresh 2022\none term more", "blue", "2"),
    "3": (3, 1, "3 Lou 2022\norder to 1", "blue", "1"),
    "4": (3, 2, "4 Xue 2020\nplus momentum", "blue", "1"),
    "10": (3, 3, "10 Khan 2018\nmean with g", "blue", "1"),
    "11": (3, 4, "11 Liu 2023\none rate for all", "blue", "1"),
    "12": (3, 5, "12 Tan 2024\norder above 1", "blue", "1"),
    "own": (1, 7, "times a power\nof |x|", "orange", "root"),
    "7": (2, 6, "7 Herrera 2022", "orange", "own"),
    "7a": (3, 6, "7 Herrera 2022\nin Adam", "orange", "7"),
    "8": (2, 7, "8 Thabet 2026\nconformable", "orange", "own"),
    "9": (2, 8, "9 Khan 2019\nplus gradient step", "orange", "own"),
    "caputo": (1, 9, "Caputo derivative\nby coordinate", "green", "root"),
    "5": (2, 9, "5 Wei 2020", "green", "caputo"),
    "16": (3, 9, "16 Shin 2021\nnormalised (ours)", "green", "5"),
    "16a": (4, 9, "16 Aggarwal 2024\nterminal along g", "green", "16"),
    "difference": (1, 11, "difference of\na sequence", "purple", "root"),
    "13": (2, 10, "13 AdaGL 2024\nof gradients", "purple", "difference"),
    "13a": (3, 10, "13 Frac-Adam 2025\nwith one rate", "purple", "13"),
    "14": (2, 11, "14 Kan 2021\nof steps", "purple", "difference"),
    "15": (2, 12, "15 Xie 2022\nof points", "purple", "difference"),
}
WIDTH, HEIGHT = 0.84, 0.78


def data():
    return {}


def genealogy(axis, run):
    """Draw the boxes by column and row, with an arrow from each parent."""
    axis.set(xlim=(-0.45, 4.45), ylim=(-12.5, 0.5))
    axis.axis("off")
    for x, row, text, colour, parent in BOXES.values():
        box = FancyBboxPatch(
            (x - WIDTH / 2, -row - HEIGHT / 2),
            WIDTH,
            HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.05",
            mutation_aspect=3,
            facecolor="none",
            edgecolor=LIGHT[colour],
            linewidth=1.4 if x < 2 else 0.8,
        )
        axis.add_patch(box)
        axis.text(x, -row, text, ha="center", va="center", fontsize=4.6, color=LIGHT[colour])
        if parent is not None:
            x0, row0, *_ = BOXES[parent]
            ends = (x0 + WIDTH / 2, -row0), (x - WIDTH / 2, -row)
            style = {"arrowstyle": "->", "mutation_scale": 4, "linewidth": 0.7}
            axis.add_patch(
                FancyArrowPatch(*ends, shrinkA=0, shrinkB=0, color=LIGHT[colour], **style)
            )


PANELS = [[Panel("Genealogy of the published rules, by their formulas", genealogy)]]
