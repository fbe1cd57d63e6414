"""The packages of the library, with an arrow for every import between them: read from the files."""

import ast
import importlib
from pathlib import Path

from matplotlib.patches import FancyArrowPatch, Rectangle

import cfgd
from cfgd.apps.page.drawing import LIGHT, Panel

SOURCE = Path(cfgd.__file__).parent
# From the top down: a package imports from packages below it only. Each has its colour.
PACKAGES = {
    "apps": "purple",
    "integrations": "yellow",
    "fitting": "blue",
    "solve": "blue",
    "zoo": "purple",
    "methods/auto": "green",
    "methods/compiled": "green",
    "methods/paper": "green",
    "objectives": "orange",
    "calculus": "orange",
    "_core": "ink",
}
LEFT, RIGHT, HEIGHT = 3.3, 6.7, 0.56


def package_of(module):
    """Return the package of a module, or None for the files that belong to no package."""
    path = module.removeprefix("cfgd").lstrip(".").replace(".", "/")
    return next((package for package in PACKAGES if f"{path}/".startswith(f"{package}/")), None)


def modules_used(tree):
    """Yield the modules of cfgd that a file imports; a re-exported name counts where it is from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cfgd":
            names = [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "cfgd":
            names = [("cfgd", node.attr)]  # `import cfgd`, then `cfgd.minimize`
        else:
            continue
        for module, name in names:
            if package_of(module) is None:  # `cfgd` or `cfgd.methods`, which define nothing
                found = getattr(importlib.import_module(module), name, None)
                module = getattr(found, "__module__", None) or getattr(found, "__name__", module)
            yield module


def data():
    """Return the arrows: (importing package, imported package)."""
    arrows = set()
    for path in SOURCE.rglob("*.py"):
        here = package_of(".".join(path.relative_to(SOURCE).with_suffix("").parts))
        if here is not None:
            found = modules_used(ast.parse(path.read_text(encoding="utf-8")))
            arrows |= {(here, package_of(module)) for module in found}
    return {"arrows": sorted((a, b) for a, b in arrows if b is not None and a != b)}


def architecture(axis, run):
    """Draw the packages as a column; arrows to `_core` pass on its left, others on its right."""
    level = {name: -i for i, name in enumerate(PACKAGES)}
    axis.set(xlim=(0, 10), ylim=(0.6 - len(PACKAGES), 0.4))
    axis.axis("off")
    for name, colour in PACKAGES.items():
        corner = (LEFT, level[name] - HEIGHT / 2)
        style = {"facecolor": "none", "edgecolor": LIGHT[colour], "linewidth": 1.6}
        axis.add_patch(Rectangle(corner, RIGHT - LEFT, HEIGHT, **style))
        at = ((LEFT + RIGHT) / 2, level[name])
        axis.text(*at, name, ha="center", va="center", fontsize=9, color=LIGHT[PACKAGES[name]])
    for start, end in run["arrows"]:
        x = LEFT if end == "_core" else RIGHT
        # out of the lower half of a package, into the upper half of another one
        begin, arrive = (x, level[start] - 0.12), (x, level[end] + 0.12)
        bend = 0.42 if end == "_core" else -0.42
        style = {"arrowstyle": "->", "mutation_scale": 8, "linewidth": 0.9}
        curve = f"arc3,rad={bend}"
        colour = LIGHT[PACKAGES[start]]
        axis.add_patch(FancyArrowPatch(begin, arrive, connectionstyle=curve, color=colour, **style))


PANELS = [[Panel("Imports between the packages", architecture)]]
