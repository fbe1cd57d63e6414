"""The genealogy of the published fractional rules: which formula each one changes, and how."""

from cfgd.apps.page.drawing import LIGHT, Panel

# (depth, text, colour): a rule changes the formula of the nearest line above it with less depth
LAST_STEP = (
    (0, "gradient descent", "ink"),
    (1, "times a power of the last step", "blue"),
    (2, "1 Wang 2017", "blue"),
    (3, "2 Sheng 2020: gradient of the previous point", "blue"),
    (4, "6 Taresh 2022: a second term of the series", "blue"),
    (3, "3 Lou 2022: order that grows to 1", "blue"),
    (3, "4 Xue 2020: with momentum", "blue"),
    (3, "10 Khan 2018: mean with the gradient", "blue"),
    (3, "11 Liu 2023: one rate for all coordinates", "blue"),
    (3, "12 Tan 2024: order above 1", "blue"),
    (1, "Caputo derivative along each coordinate", "green"),
    (2, "5 Wei 2020", "green"),
    (3, "16 Shin 2021: normalised (ours)", "green"),
    (4, "16 Aggarwal 2024: terminal along the gradient", "green"),
)
OTHERS = (
    (0, "gradient descent", "ink"),
    (1, "times a power of |x|", "orange"),
    (2, "7 Herrera 2022: Caputo derivative of x", "orange"),
    (3, "7 Herrera 2022 in Adam", "orange"),
    (2, "8 Thabet 2026: conformable derivative", "orange"),
    (2, "9 Khan 2019: plus a gradient step", "orange"),
    (1, "fractional difference of a sequence", "purple"),
    (2, "13 AdaGL 2024: of gradients, in Adam", "purple"),
    (3, "13 Frac-Adam 2025: with a constant rate", "purple"),
    (2, "14 Kan 2021: of steps", "purple"),
    (2, "15 Xie 2022: of points", "purple"),
)
ROWS = max(len(LAST_STEP), len(OTHERS))
INDENT, GAP = 0.055, 0.015  # of the width: a level, and a line before its text


def data():
    return {"last step": LAST_STEP, "others": OTHERS}


def tree(name):
    """Return the drawing of a tree, one line for each rule, with a line to what it changes."""

    def draw(axis, trees):
        axis.set(xlim=(0, 1), ylim=(-ROWS + 0.5, 0.5))
        axis.axis("off")
        parents = {}
        for row, (depth, text, colour) in enumerate(trees[name]):
            parents[depth] = row
            weight = "bold" if depth < 2 else "normal"
            x = depth * INDENT
            style = {"va": "center", "fontsize": 8.3, "fontweight": weight}
            axis.text(x, -row, text, color=LIGHT[colour], **style)
            if depth:
                left = x - INDENT + GAP
                corner = [left, left, x - GAP], [-parents[depth - 1] - 0.4, -row, -row]
                axis.plot(*corner, color=LIGHT[colour], linewidth=0.8)

    return draw


PANELS = [
    [
        Panel("Powers of the last step, and the Caputo derivative", tree("last step")),
        Panel("Powers of |x|, and fractional differences", tree("others")),
    ]
]
