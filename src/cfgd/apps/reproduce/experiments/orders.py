"""The adaptive order, for which the paper proves a bound that it does not test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import cfgd
from cfgd import theory
from cfgd.apps.page.drawing import Panel, decades, line, ramp
from cfgd.apps.reproduce.experiment import Experiment, Meter, Record, Setting
from cfgd.apps.reproduce.experiments.solving import check_uninterrupted, identity
from cfgd.apps.reproduce.report.claim import Claim

DIMENSION, SAMPLES = 20, 100
GAMMAS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0)
STAGE = {"short": 10, "long": 200}  # iterations of a stage
STEP_FACTOR = 1.0  # times 1 / sigma_max(A + gamma_1 D): one constant step for all stages


def run(setting: Setting, meter: Meter) -> Record:
    seeds = setting.seeds_or(quick=5, full=20)
    meter.start(len(seeds) * len(STAGE))
    data: dict[str, Any] = {kind: [] for kind in STAGE}
    for seed in seeds:
        random = np.random.default_rng(seed)
        X = random.normal(size=(SAMPLES, DIMENSION)) / np.sqrt(SAMPLES)
        A, b = X.T @ X, -X.T @ random.normal(size=SAMPLES)
        x0, c = random.normal(size=DIMENSION), np.ones(DIMENSION)
        best = theory.tikhonov_solution(A, b, c, 0.0)
        sigmas = np.array([np.linalg.eigvalsh(theory.tilde_A(A, gamma))[-1] for gamma in GAMMAS])
        step = STEP_FACTOR / sigmas[0]
        for kind, iterations in STAGE.items():
            solution = check_uninterrupted(
                cfgd.minimize(
                    cfgd.Quadratic(A, b),
                    x0,
                    cfgd.AdaptiveOrder(
                        [cfgd.Stage(iterations, gamma=gamma) for gamma in GAMMAS],
                        c,
                        step=cfgd.FixedStep(step),
                    ),
                    max_iterations=len(GAMMAS) * iterations,
                    tolerance=0.0,
                    record={"x": identity},
                )
            )
            stages = [(iterations, gamma) for gamma in GAMMAS]
            errors = np.linalg.norm(solution.history["x"] - best, axis=1)
            data[kind].append(
                {
                    "errors": errors,
                    "ends": errors[iterations::iterations],
                    "bound": theory.adaptive_order_bound(A, b, c, x0, stages, step * sigmas),
                    "constant": theory.adaptive_order_constant(A, b, c, GAMMAS),
                }
            )
            meter.advance(1)
    parameters = {
        "d, m": [DIMENSION, SAMPLES],
        "gamma of the stages": GAMMAS,
        "iterations of a stage": STAGE,
        "terminal": "all ones",
        "x0": "standard normal",
        "step": "constant, 1 / sigma_max(A + gamma_1 D)",
        "seeds": list(seeds),
    }
    return Record(data, parameters)


def ratio_to_bound(run: Mapping[str, Any]) -> float:
    """Return the largest ratio of the error after a stage to the bound, above rounding."""
    return float(np.max(run["ends"] / np.maximum(run["bound"], 1e-12)))


def ratio_to_limit(run: Mapping[str, Any]) -> float:
    """Return the largest ratio of the error after a stage to C gamma, over gamma > 0."""
    return float(np.max(run["ends"][:-1] / (run["constant"] * np.array(GAMMAS[:-1]))))


CLAIMS = [
    Claim(
        f"After every stage of {STAGE['short']} iterations the distance is below the bound"
        " (largest ratio)",
        "theorem 5 (section 3.3)",
        1,
        "at most",
        lambda data: [ratio_to_bound(run) for run in data["short"]],
    ),
    Claim(
        f"After every stage of {STAGE['long']} iterations the distance is below the bound"
        " (largest ratio)",
        "theorem 5 (section 3.3)",
        1,
        "at most",
        lambda data: [ratio_to_bound(run) for run in data["long"]],
    ),
    Claim(
        "With long stages the distance is at most C times gamma (largest ratio)",
        "theorem 5, first limit",
        1,
        "at most",
        lambda data: [ratio_to_limit(run) for run in data["long"]],
    ),
    Claim(
        "As gamma goes to 0 the method converges to the minimiser (final distance over the first)",
        "theorem 5, last limit",
        1e-10,
        "at most",
        lambda data: [run["errors"][-1] / run["errors"][0] for run in data["long"]],
    ),
]


def stages_panel(kind: str) -> Any:
    def draw(axis: Any, data: Mapping[str, Any]) -> None:
        first, size = data[kind][0], STAGE[kind]
        k = np.arange(len(first["errors"]))
        for s, gamma in enumerate(GAMMAS):
            part = slice(s * size, (s + 1) * size + 1)
            label = f"γ = {gamma:g}" if s in (0, len(GAMMAS) - 1) else None
            line(axis, k[part], first["errors"][part], ramp(s / (len(GAMMAS) - 1)), label=label)
        ends = size * np.arange(1, len(GAMMAS) + 1)
        bound = np.maximum(first["bound"], 1e-15)
        line(axis, ends, bound, "ink", label="bound", linestyle="none", marker="v")
        decades(axis, "distance to the minimiser", low=1e-14)

    return draw


def errors_by_gamma(axis: Any, data: Mapping[str, Any]) -> None:
    gammas = np.array(GAMMAS[:-1])
    for run in data["long"]:
        line(axis, gammas, run["ends"][:-1], "blue", marker="o", linewidth=0.8)
    axis.plot([], [], color="#0072b2", marker="o", label="distance, each seed")
    line(axis, gammas, data["long"][0]["constant"] * gammas, "ink", label="C γ", linestyle="--")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set(xlabel="γ of the stage", ylabel="distance after the stage")
    axis.legend()


EXPERIMENT = Experiment(
    name="orders",
    title="The adaptive order",
    where="section 3.3, which has no figure",
    summary="stages along gamma -> 0 against the proved bound; the paper does not test it",
    about=(
        "Each stage is the non-adaptive method with a smaller gamma, started at the end of the "
        "previous one. The bound is that of theorem 5 with the corrected rate of the non-adaptive "
        "method. Problem, stages and step are ours."
    ),
    run=run,
    claims=CLAIMS,
    panels=[
        [
            Panel("stages of 10 iterations", stages_panel("short")),
            Panel("stages of 200 iterations", stages_panel("long")),
            Panel("distance against gamma", errors_by_gamma),
        ]
    ],
)
