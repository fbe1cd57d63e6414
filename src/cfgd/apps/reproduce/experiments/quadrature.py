"""Figure 8: the number of quadrature nodes of the direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cfgd.apps.data.network_functions import ALPHAS, FORMULAS, FUNCTIONS, SAMPLES, WIDTH
from cfgd.apps.data.network_starts import FAMILY
from cfgd.apps.page.drawing import Panel, ramp
from cfgd.apps.reproduce.experiment import Experiment, Meter, Record, Setting
from cfgd.apps.reproduce.experiments.network_report import draw_losses, label_losses
from cfgd.apps.reproduce.experiments.network_runs import (
    LOSSES,
    READINGS,
    Curve,
    TrainingRun,
    test_points,
    total_work,
    train_all,
)
from cfgd.apps.reproduce.experiments.network_start import RECORDED_CHOICE
from cfgd.apps.reproduce.report.claim import OURS, Claim

GAMMAS = {"h1": 70.0, "h2": 10.0, "h3": -150.0}
# the start and the readings that the rule of the networks chose
START, FORMULA, LOSS = RECORDED_CHOICE[:3]
OTHER = next(reading for reading in READINGS if reading != FORMULA)


def run(setting: Setting, meter: Meter) -> Record:
    seeds = setting.seeds_or(quick=1, full=1)
    nodes = setting.pick(tiny=(1, 2), quick=(1, 2, 5, 10), full=tuple(range(1, 11)))
    other_nodes = setting.pick(tiny=(1,), quick=(1,), full=(1, 2, 5, 10))
    iterations = setting.pick(tiny=40, quick=1_000, full=100_000)
    rows = setting.pick(tiny=(4, 2), quick=(50, 10), full=(100, 50))
    directions = [
        ("descent", 1),
        *((FORMULA, s) for s in nodes),
        *((OTHER, s) for s in other_nodes),
    ]
    runs = [
        TrainingRun(function, START, seed, how, gamma if how != "descent" else 0.0, iterations, s)
        for how, s in directions
        for seed in seeds
        for function, gamma in GAMMAS.items()
    ]
    meter.start(total_work(runs))
    curves = train_all(meter, setting, runs, rows)
    data = {
        "curves": curves,
        "seeds": list(seeds),
        "nodes": nodes,
        "iterations": iterations,
    }
    parameters = {
        "functions": FORMULAS,
        "samples, units": [SAMPLES, WIDTH],
        "nodes": {FORMULA: nodes, OTHER: other_nodes},
        "alpha": ALPHAS,
        "gamma": GAMMAS,
        "start": FAMILY[START].words,
        "formula": FORMULA,
        "loss": LOSS,
        "past": "x0 itself: the first step is a gradient step",
        "step": "exact for the output layer, 32 candidates for the hidden one, in both methods",
        "iterations": iterations,
        "gradients of an iteration, search included": {
            run.how if run.how == "descent" else f"{run.how}, s = {run.nodes}": float(curve.cost)
            for run, curve in curves.items()
        },
        "test points": test_points(setting),
        "seeds": list(seeds),
    }
    return Record(data, parameters)


def ratios(
    select: Callable[[TrainingRun], bool], equal: str = "iterations"
) -> Callable[[Mapping[str, Any]], Any]:
    """Return a measure: losses over those of gradient descent, at equal iterations or gradients.

    It has the selected runs, by function.
    """

    def measure(data: Mapping[str, Any]) -> dict[str, list[float]]:
        curves: dict[TrainingRun, Curve] = data["curves"]
        descent = {(r.function, r.seed): c for r, c in curves.items() if r.how == "descent"}
        ratios: dict[str, list[float]] = {function: [] for function in FUNCTIONS}
        for run, curve in curves.items():
            if run.how == "descent" or not select(run):
                continue
            base = descent[run.function, run.seed]
            k = data["iterations"]
            if equal == "gradients":  # the run with costlier iterations makes fewer of them
                k = k * float(base.cost) / float(curve.cost)
            ratios[run.function].append(curve.interpolate(k) / float(base.loss[-1]))
        return ratios

    return measure


CLAIMS = [
    Claim(
        "For any number of nodes, one included, the adaptive terminal outperforms gradient descent"
        " (ratio of the final losses, each number of nodes)",
        "section 4.3, figure 8",
        1,
        "at most",
        ratios(lambda run: run.how == FORMULA),
    ),
    Claim(
        "Even when the cost is taken into account, the adaptive terminal converges faster with"
        " s = 1, which costs as much as gradient descent (ratio of the losses at equal cost, s"
        " gradients an iteration)",
        "section 4.3, figure 8 top",
        1,
        "at most",
        ratios(lambda run: run.how == FORMULA and run.nodes == 1),
    ),
    Claim(
        "The adaptive terminal outperforms gradient descent at equal numbers of gradients, those of"
        " the step search included (ratio of the losses, each number of nodes)",
        f"{OURS}: figure 8 against gradients",
        1,
        "at most",
        ratios(lambda run: run.how == FORMULA, "gradients"),
    ),
    Claim(
        f"The adaptive terminal outperforms gradient descent with the formula {OTHER}, too"
        " (ratio of the final losses, each number of nodes)",
        f"{OURS}: the other reading",
        1,
        "at most",
        ratios(lambda run: run.how == OTHER),
    ),
]


def curves_by_nodes(function: str, low: int, high: int, gradients: bool = False) -> Any:
    def draw(axis: Any, data: Mapping[str, Any]) -> None:
        seed = data["seeds"][0]
        for run, curve in data["curves"].items():
            if (run.function, run.seed) != (function, seed) or run.how == OTHER:
                continue
            cost = float(curve.cost) if gradients else 1.0
            if run.how == "descent":
                draw_losses(axis, curve, LOSSES[LOSS], "ink", "gradient descent", cost)
            elif low <= run.nodes <= high:
                hue = ramp((run.nodes - low) / (high - low))
                draw_losses(axis, curve, LOSSES[LOSS], hue, f"s = {run.nodes}", cost)
        label_losses(axis, LOSS)
        if gradients:
            axis.set_xlabel("gradients, the search included")

    return draw


EXPERIMENT = Experiment(
    name="quadrature",
    title="The number of quadrature nodes",
    where="figure 8",
    summary="the networks with s = 1 to 10 nodes: losses against iterations and against gradients",
    about=(
        "The direction is an expectation, computed with s Gauss-Jacobi nodes; s = 1 costs about "
        "one more gradient; the step search costs more than either. The start and the readings are "
        "those that the numbers of figure 7 choose. Full lines are training losses, dashed lines "
        "test errors, of seed 0; the last row has them against gradients."
    ),
    run=run,
    claims=CLAIMS,
    panels=[
        *[
            [
                Panel(f"{name}, s = {low} to {high}", curves_by_nodes(name, low, high))
                for name in FUNCTIONS
            ]
            for low, high in ((1, 5), (6, 10))
        ],
        [
            Panel(f"{name}, against gradients", curves_by_nodes(name, 1, 10, True))
            for name in FUNCTIONS
        ],
    ],
)
