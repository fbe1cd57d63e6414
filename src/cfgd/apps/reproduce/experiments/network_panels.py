"""The figures of the networks: figure 7 as in the paper, and the diagrams over starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cfgd.apps.data.network_functions import FORMULAS, FUNCTIONS
from cfgd.apps.page.drawing import Panel, Panels, colour, decades, line
from cfgd.apps.reproduce.experiments.network_choice import EARLY, PAPER, median_loss
from cfgd.apps.reproduce.experiments.network_claims import CAUSES, medians
from cfgd.apps.reproduce.experiments.network_rivals import AUTO
from cfgd.apps.reproduce.experiments.network_runs import GAMMA, GAMMAS, LOSSES, READINGS, Curve

Data = Mapping[str, Any]
Draw = Callable[[Any, Data], None]
HUES = ("blue", "orange", "green")
# a factor of ten, two and a quarter more or less; the middle counts as equal
LEVELS = (-9.0, -1.0, -0.3, -0.1, 0.1, 0.3, 1.0, 9.0)
SHADES = ("#a63c00", "#d98a5b", "#f0cdb5", "#d9d9d9", "#b5d3ea", "#5aa0d0", "#0a5a96")


def graph(function: str) -> Draw:
    def draw(axis: Any, data: Data) -> None:
        z = np.linspace(-1, 1, 400)
        line(axis, z, FUNCTIONS[function](z), "blue")
        axis.set(xlabel="z", ylabel=f"{function}(z)")

    return draw


def losses(axis: Any, one: Curve, factor: float, hue: Any, label: str, cost: float = 1.0) -> None:
    """A run's training loss as a full line and its test error as a dashed one."""
    line(axis, cost * one.iteration, factor * one.loss, hue, label=label)
    line(axis, cost * one.test_iteration, one.test, hue, linestyle="--")


def name_losses(axis: Any, loss: str) -> None:
    """Say what the two kinds of lines are."""
    line(axis, [], [], "ink", linestyle="--", label="test error")
    decades(axis, f"training loss ({loss}), test error")


def training(function: str) -> Draw:
    def draw(axis: Any, data: Data) -> None:
        choice, seed = data["choice"], data["seeds"][0]
        found = {
            run.gamma: curve
            for run, curve in data["panel"].items()
            if (run.function, run.seed) == (function, seed)
        }
        for gamma, hue in zip((0.0, *GAMMAS[function]), ("ink", *HUES), strict=True):
            label = f"γ = {gamma:g}" if gamma else "gradient descent"
            losses(axis, found[gamma], LOSSES[choice.loss], hue, label)
        name_losses(axis, choice.loss)

    return draw


def diagram(function: str, how: str) -> Draw:
    def draw(axis: Any, data: Data) -> None:
        from matplotlib.colors import BoundaryNorm, ListedColormap

        plan, names = data["plan"], list(data["plan"].starts)
        values = medians(data, function, how)[:, 1:]
        edges = np.linspace(0, plan.family[function], values.shape[1] + 1)
        norm, shades = BoundaryNorm(LEVELS, len(SHADES)), ListedColormap(SHADES)
        rows = np.arange(len(names) + 1) - 0.5
        drawn = axis.pcolormesh(edges, rows, values, cmap=shades, norm=norm)
        axis.set_yticks(range(len(names)), names, fontsize=6)
        axis.set(xlabel="iteration", ylabel="start: deviation of hidden/output")
        axis.grid(False)
        if data["choice"].start in names:
            at = min(EARLY, plan.family[function]), names.index(data["choice"].start)
            axis.plot(*at, "o", markersize=8, mfc="none", mec=colour("ink"), clip_on=False)
        bar = axis.figure.colorbar(drawn, ax=axis, ticks=LEVELS[1:-1])
        bar.set_label("log10(gradient descent / ours)", fontsize=7)
        bar.ax.tick_params(labelsize=6)

    return draw


def levels(axis: Any, data: Data) -> None:
    """The rule: losses on h1 after the family's iterations against the paper's numbers."""
    names, end = list(data["plan"].starts), data["plan"].family["h1"]
    hues = {"descent": "ink", "exact": "orange", "printed": "blue"}
    for how, hue in hues.items():
        values = [LOSSES["mean"] * median_loss(data["family"], name, how, end) for name in names]
        label = "gradient descent" if how == "descent" else how
        axis.plot(range(len(names)), values, "o", color=colour(hue), markersize=4, label=label)
    for (who, iteration), level in PAPER.items():
        if iteration == EARLY:
            hue = "ink" if who == "descent" else "blue"
            axis.axhline(level, color=colour(hue), linestyle=":", linewidth=1)
    axis.set_yscale("log")
    axis.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    axis.set_ylabel(f"mean squared error on h1 at {end:,}")
    axis.legend(fontsize=7)


def causes(function: str) -> Draw:
    def draw(axis: Any, data: Data) -> None:
        found = {
            (run.how, run.seed): curve
            for run, curve in data["causes"].items()
            if run.function == function
        }
        for place, how in enumerate(CAUSES):
            ratios = [
                found["descent", seed].loss[-1] / found[how, seed].loss[-1]
                for seed in data["seeds"]
            ]
            axis.plot([place] * len(ratios), ratios, "o", color=colour("blue"), markersize=4)
            axis.plot(place, np.median(ratios), "_", color=colour("ink"), markersize=18)
        axis.axhline(1, color=colour("ink"), linewidth=0.8)
        axis.set_yscale("log")
        axis.set_xticks(range(len(CAUSES)), ("exact", "printed", "random\nsign", "noise"))
        axis.set_ylabel("loss of gradient descent over its own")

    return draw


def solvers(function: str) -> Draw:
    def draw(axis: Any, data: Data) -> None:
        seed, factor = data["seeds"][0], LOSSES[data["choice"].loss]
        for run, curve in data["panel"].items():
            if (run.function, run.seed) == (function, seed) and run.gamma in (0.0, GAMMA[function]):
                hue, label = (
                    ("blue", f"γ = {run.gamma:g}") if run.gamma else ("ink", "gradient descent")
                )
                x = np.maximum(float(curve.cost) * curve.iteration, 1)
                line(axis, x, factor * curve.loss, hue, label=label)
        for name, hue in ((AUTO, "green"), (data["rival"], "orange")):
            value, gradients, _ = data["rivals"][function, name, seed]
            axis.plot(gradients, factor * value, "o", color=colour(hue), label=name)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set(xlabel="gradients", ylabel=f"training loss ({data['choice'].loss})")
        axis.legend(fontsize=8)

    return draw


PANELS: Panels = [
    [Panel(f"{name}(z) = {FORMULAS[name]}", graph(name)) for name in FUNCTIONS],
    [Panel(f"{name} at the chosen start", training(name)) for name in FUNCTIONS],
    [Panel("how the start is chosen (dotted: the paper's)", levels)],
    *[
        [Panel(f"{name}, the formula {how}", diagram(name, how)) for name in FUNCTIONS]
        for how in READINGS
    ],
    [Panel(f"{name}: which cause", causes(name)) for name in FUNCTIONS],
    [Panel(f"{name}: solvers of today (not in the paper)", solvers(name)) for name in FUNCTIONS],
]
