"""Figure 5: the adaptive terminal on ill-conditioned random least squares."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import cfgd
from cfgd.apps.data.random_least_squares import RandomLeastSquares, random_least_squares, smallest
from cfgd.apps.page.drawing import Panel, decades, line
from cfgd.apps.reproduce.experiment import Experiment, Meter, Record, Setting
from cfgd.apps.reproduce.experiments.conditional import ANY, select_seeds
from cfgd.apps.reproduce.experiments.solving import identity, run_in_threads, solve_with_progress
from cfgd.apps.reproduce.report.claim import OURS, Claim

DIMENSION = 20
GAMMAS = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
LAGS = (1, 2, 3, 4)
BEST, DESCENT = GAMMAS.index(-0.25), GAMMAS.index(0.0)
MACHINE = 1e-10  # a distance that counts as machine accuracy at a condition number of 1e4 and more
TARGET = 1e-8  # the distance at which runs are compared
ROWS = 200
# The construction sets the extreme singular values; whether A is worse conditioned than 1e4 depends
# on the second smallest. The paper's instance has 90,053, which one draw in 250 has within 10 %.
CONDITION, WITHIN, DRAWS = 90_053, 0.1, 5_000
LIKE = "condition number as in the paper"


def errors(meter: Meter, p: RandomLeastSquares, lag: int, iterations: int) -> tuple[Any, Any]:
    """Return the recorded iterations, and the distances to the minimiser for each gamma."""
    solutions = solve_with_progress(
        meter,
        cfgd.sweep,
        cfgd.LeastSquares(p.X, p.y),
        p.x0,
        cfgd.AdaptiveTerminal(gamma=np.array(GAMMAS), lag=lag, past=p.past[:lag]),
        max_iterations=iterations,
        every=iterations // ROWS,
        record={"x": identity},
    )
    best = np.linalg.solve(p.X, p.y)
    return solutions.history["iteration"], np.linalg.norm(solutions.history["x"] - best, axis=-1)


def condition_of(seed: int) -> float:
    """Return the condition number of A without making the instance."""
    return float((10 / smallest(seed, DIMENSION)) ** 2)


def run(setting: Setting, meter: Meter) -> Record:
    seeds = setting.seeds_or(quick=3, full=10)
    iterations = setting.pick(tiny=2_000, quick=100_000, full=100_000)
    like = select_seeds(
        condition_of,
        lambda found: abs(found / CONDITION - 1) <= WITHIN,
        DRAWS,
        len(seeds),
        f"condition number within {WITHIN:.0%} of {CONDITION:,}",
    )
    meter.start(2 * len(seeds) * len(LAGS) * iterations)
    data = runs_on(meter, list(seeds), iterations)
    data["like"] = runs_on(meter, like.seeds, iterations)
    parameters = {
        "d = m": DIMENSION,
        "gamma": GAMMAS,
        "lag": LAGS,
        "x0": "uniform in [-1, 1]",
        "past": "standard normal",
        "step": "exact",
        "iterations": iterations,
        "condition number of A": [round(value) for value in data["condition"]],
        "seeds": list(seeds),
        "random data like the paper's": like.rule,
        "fraction that qualifies": like.share,
        "their seeds": like.seeds,
        "their condition numbers": [round(value) for value in data["like"]["condition"]],
    }
    return Record(data, parameters)


def runs_on(meter: Meter, seeds: list[int], iterations: int) -> dict[str, Any]:
    problems = [random_least_squares(seed, DIMENSION) for seed in seeds]
    # one lag after the other, because the seeds of a lag share its compilation
    runs = {
        lag: run_in_threads(meter, [partial(errors, meter, p, lag, iterations) for p in problems])
        for lag in LAGS
    }
    return {
        "iteration": runs[1][0][0],
        # lag -> (seeds, gammas, rows)
        "errors": {lag: np.stack([error for _, error in each]) for lag, each in runs.items()},
        "condition": np.array([np.linalg.cond(p.X) ** 2 for p in problems]),
        "iterations": iterations,
    }


def on_both(measure: Any) -> Any:
    """Return a measure with two cases: any instance, and random data like the paper's."""
    return lambda data: {ANY: measure(data), LIKE: measure(data["like"])}


def iterations_to(data: Mapping[str, Any], lag: int, distance: float) -> Any:
    """Return (seeds, gammas): the first recorded iteration within a distance.

    A run that does not reach it counts all of its iterations, and as many again for each decade
    that is missing, so that two runs which fall short can still be compared.
    """
    errors, k = data["errors"][lag], data["iteration"]
    reached = errors <= distance
    first = k[np.argmax(reached, -1)]
    missing = np.log10(np.maximum(errors[..., -1] / distance, 1.0))
    return np.where(reached.any(-1), first, data["iterations"] * (1 + missing))


def iterations_to_accuracy(data: Mapping[str, Any]) -> Any:
    """Return the iterations of gamma = -0.25 to machine accuracy, or infinity."""
    errors = data["errors"][1][:, BEST]
    first = data["iteration"][np.argmax(errors <= MACHINE, -1)]
    return np.where((errors <= MACHINE).any(-1), first, np.inf)


def best_ratio(data: Mapping[str, Any]) -> Any:
    """Return the iterations of gamma = -0.25 over those of the best other gamma."""
    times = iterations_to(data, 1, TARGET)
    return times[:, BEST] / np.delete(times, BEST, 1).min(1)


def sign_ratio(data: Mapping[str, Any]) -> Any:
    """Return the iterations of the worst negative gamma over those of the best other."""
    times = iterations_to(data, 1, TARGET)
    return times[:, :DESCENT].max(1) / times[:, DESCENT:].min(1)


def longer_lags(data: Mapping[str, Any]) -> Any:
    """Return the iterations of the worst gamma and lag over those of gradient descent."""
    times = np.stack([iterations_to(data, lag, TARGET) for lag in LAGS[1:]], 1)
    return np.delete(times, DESCENT, 2).max((1, 2)) / times[:, 0, DESCENT]


def share_of_longer_lags(data: Mapping[str, Any]) -> Any:
    """Return the share of gammas and lags with fewer iterations than gradient descent."""
    times = np.stack([iterations_to(data, lag, TARGET) for lag in LAGS[1:]], 1)
    others = np.delete(times, DESCENT, 2)
    return np.mean(others < times[:, :1, DESCENT, None], axis=(1, 2))


def too_short(data: Mapping[str, Any]) -> str | None:
    return None if data["iterations"] >= 100_000 else "fewer than the paper's 1e5 iterations"


CLAIMS = [
    Claim(
        "gamma = -0.25, L = 1 reaches machine accuracy (distance 1e-10) within 4e4 iterations",
        "section 4.1, figure 5 top",
        4e4,
        "at most",
        iterations_to_accuracy,
        excuse=too_short,
    ),
    Claim(
        "gamma = -0.25 is the best gamma of L = 1 (its iterations to 1e-8 over those of the best"
        " other one)",
        "section 4.1, figure 5 top",
        1,
        "at most",
        best_ratio,
        excuse=too_short,
    ),
    Claim(
        "The construction makes the condition number of A at least 1e4",
        "section 4.1 (90,053 in the paper's instance)",
        1e4,
        "at least",
        lambda data: data["condition"],
        tolerance=1e-6,
    ),
    Claim(
        "With L = 1 every negative gamma outperforms every other and gradient descent"
        " (worst negative over best other, iterations to 1e-8)",
        "section 4.1, figure 5 top",
        1,
        "at most",
        sign_ratio,
        excuse=too_short,
    ),
    Claim(
        "Gradient descent shows no significant improvement within 1e5 iterations"
        " (final distance over the first; at least a tenth remains)",
        "section 4.1, figure 5",
        0.1,
        "at least",
        on_both(lambda data: data["errors"][1][:, DESCENT, -1] / data["errors"][1][:, DESCENT, 0]),
        excuse=too_short,
    ),
    Claim(
        "With L = 2, 3, 4 every gamma outperforms gradient descent"
        " (worst over gradient descent, iterations to 1e-8)",
        "section 4.1, figure 5 bottom",
        1,
        "at most",
        on_both(longer_lags),
        excuse=too_short,
    ),
    Claim(
        "With L = 2, 3, 4 most gammas outperform gradient descent (share of gammas and lags that"
        " reach 1e-8 in fewer iterations)",
        f"{OURS}: every gamma, or how many",
        0.5,
        "at least",
        on_both(share_of_longer_lags),
        excuse=too_short,
    ),
]

STYLES = {0.25: "-", 0.5: "--", 0.75: "-.", 1.0: ":"}


def lag_panel(lag: int) -> Any:
    def draw(axis: Any, data: Mapping[str, Any]) -> None:
        for gamma, errors in zip(GAMMAS, data["like"]["errors"][lag][0], strict=True):
            hue = "ink" if gamma == 0 else "blue" if gamma < 0 else "orange"
            style = STYLES.get(abs(gamma), "-")
            wide = {"linewidth": 2.4} if gamma == 0 else {}
            label = f"γ = {gamma:g}"
            line(axis, data["iteration"], errors, hue, label=label, linestyle=style, **wide)
        decades(axis, "distance to the minimiser", low=1e-19 if lag == 1 else 1e-14, legend=False)
        if lag == 1:  # one legend for the four panels, below the lines
            axis.legend(ncols=3, fontsize=8, loc="lower left")

    return draw


EXPERIMENT = Experiment(
    name="random",
    title="Ill-conditioned random least squares",
    where="figure 5",
    summary="d = m = 20, nine values of gamma, lags 1 to 4, several seeds",
    about=(
        "The adaptive terminal against gradient descent (gamma = 0) where the condition number of "
        "A is at least 1e4. The paper shows one instance, with 90,053; this run checks claims over "
        "seeds and, where they depend on the instance, also over instances selected for a "
        "condition number like the paper's; the panels show the first of these. Blue is "
        "gamma < 0, orange gamma > 0."
    ),
    run=run,
    claims=CLAIMS,
    missing="the instance of its random data",
    panels=[
        [Panel("L = 1", lag_panel(1))],
        [Panel(f"L = {lag}", lag_panel(lag)) for lag in LAGS[1:]],
    ],
)
