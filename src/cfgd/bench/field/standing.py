"""What the runs of `cfgd bench` come to: a table with every loss in it, and profiles."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

OURS = "cfgd Auto"
# columns of a terminal that has room for the spread
WIDE = 100


@dataclasses.dataclass(frozen=True)
class Run:
    """One solver on one instance; work and seconds are infinite where the target was not met."""

    problem: str
    group: str
    unit: str
    solver: str
    seed: int
    work: float
    seconds: float
    value: float
    solved: bool
    to_reference: float = float("nan")  # seconds to the final loss of L-BFGS-B
    error: str = ""


@dataclasses.dataclass(frozen=True)
class Line:
    """A row of the table: medians over seeds with the smallest and the largest."""

    problem: str
    group: str
    measure: str
    solver: str
    score: tuple[float, float, float]  # median, least, most
    seconds: tuple[float, float, float]
    solved: int
    seeds: int
    winner: bool
    ratio: float  # ours to theirs: above one, cfgd loses
    seconds_ratio: float
    to_reference: float  # median seconds to the final loss of L-BFGS-B, on networks


def table(runs: list[Run]) -> list[Line]:
    """Medians; the winner has the least of them, on networks the least loss."""
    lines: list[Line] = []
    for problem in dict.fromkeys(run.problem for run in runs):
        of_problem = [run for run in runs if run.problem == problem]
        by_loss = of_problem[0].group == "network"
        scores = {
            solver: [r for r in of_problem if r.solver == solver]
            for solver in dict.fromkeys(r.solver for r in of_problem)
        }
        medians = {
            solver: float(np.median([_score(r) for r in some])) for solver, some in scores.items()
        }
        times = {
            solver: float(np.median([r.seconds for r in some])) for solver, some in scores.items()
        }
        for solver, some in sorted(scores.items(), key=lambda item: item[0] != OURS):
            lines.append(
                Line(
                    problem,
                    of_problem[0].group,
                    "loss" if by_loss else of_problem[0].unit,
                    solver,
                    _spread([_score(r) for r in some]),
                    _spread([r.seconds for r in some]),
                    sum(r.solved for r in some),
                    len(some),
                    medians[solver] == min(medians.values()) < float("inf"),
                    _ratio(medians[OURS], medians[solver]),
                    _ratio(times[OURS], times[solver]),
                    float(np.median([np.nan_to_num(r.to_reference, nan=np.inf) for r in some])),
                )
            )
    return lines


def _score(run: Run) -> float:
    return run.value if run.group == "network" else run.work


def _spread(numbers: list[float]) -> tuple[float, float, float]:
    return float(np.median(numbers)), min(numbers), max(numbers)


def _ratio(ours: float, theirs: float) -> float:
    return ours / theirs if np.isfinite(theirs) and theirs > 0 else 0.0


def render(lines: list[Line], width: int) -> Any:
    """The table for a terminal; a ratio above one is a loss of cfgd and is marked so."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    shown = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        title="Where cfgd stands: medians over seeds",
        caption=f"x is {OURS} over the solver; ✗ where cfgd loses; * the least of a problem",
    )
    shown.add_column("solver", no_wrap=True)
    wide = width >= WIDE
    for name in ("score", *(["least to most"] if wide else []), "x", "seconds", "x", "solved"):
        shown.add_column(name, justify="right", no_wrap=True)
    last = ""
    for line in lines:
        if line.problem != last:
            shown.add_section()
            shown.add_row(f"[bold]{line.problem}[/]", line.measure)
        last = line.problem
        shown.add_row(
            f"  {line.solver}",
            _words(line.score[0]) + ("*" if line.winner else " "),
            *([f"{_words(line.score[1])} to {_words(line.score[2])}"] if wide else []),
            _factor(line.ratio),
            f"{line.seconds[0]:.2g}" if np.isfinite(line.seconds[0]) else "-",
            _factor(line.seconds_ratio),
            f"{line.solved}/{line.seeds}",
            style="bold" if line.solver == OURS else None,
        )
    return shown


def verdicts(lines: list[Line]) -> list[str]:
    """What the project says of itself, held against the medians of this run."""
    problems = list(dict.fromkeys(line.problem for line in lines))
    by = {(line.problem, line.solver): line for line in lines}

    def against(problem: str, solver: str) -> tuple[Line, Line] | None:
        ours, theirs = by.get((problem, OURS)), by.get((problem, solver))
        return (ours, theirs) if ours is not None and theirs is not None else None

    found = []
    if pair := against("random d = 20", "CG, Jacobi"):
        ratio = pair[0].score[0] / pair[1].score[0]
        found.append(_verdict("random d = 20: products of Auto over those of CG", ratio, 1.3))
    if gas := by.get(("gas", OURS)):  # two products an iteration
        words = "gas: iterations of Auto to a relative error of 1e-8"
        found.append(_verdict(words, gas.score[0] / 2, 4000))
    networks = [pair for p in problems if (pair := against(p, "L-BFGS-B")) and _by_loss(pair[0])]
    if networks:
        wanted = -(-5 * len(networks) // 6)
        better = sum(ours.score[0] <= theirs.score[0] for ours, theirs in networks)
        words = "networks: at equal work the loss of Auto is at most that of L-BFGS-B"
        found.append(_count(words, better, len(networks), wanted))
        shares = [ours.to_reference / theirs.seconds[0] for ours, theirs in networks]
        quick = sum(share <= 0.2 for share in shares)
        words = "networks: Auto is at the final loss of L-BFGS-B in a fifth of its time"
        words += f" ({min(shares):.2g} to {max(shares):.2g})"
        found.append(_count(words, quick, len(networks), wanted))
    smooth = [
        pair
        for p in problems
        if (pair := against(p, "L-BFGS-B")) and by[(p, OURS)].group == "smooth"
    ]
    solved = [pair for pair in smooth if np.isfinite(pair[1].score[0])]
    if solved:
        ratio = float(np.median([ours.score[0] / theirs.score[0] for ours, theirs in solved]))
        found.append(_verdict("smooth problems: gradients of Auto over L-BFGS-B, median", ratio, 3))
        missed = [ours.problem for ours, theirs in solved if ours.solved < theirs.solved]
        words = f"Auto solves what L-BFGS-B solves; missed: {', '.join(missed) or 'none'}"
        found.append(f"smooth problems: {words}: {_holds(not missed)}")
    return found


def _verdict(what: str, ratio: float, most: float) -> str:
    return f"{what}: {ratio:.4g} (wanted at most {most:g}): {_holds(ratio <= most)}"


def _count(what: str, count: int, of: int, wanted: int) -> str:
    return f"{what} in {count} of {of} cases (wanted {wanted}): {_holds(count >= wanted)}"


def _holds(holds: bool) -> str:
    return "holds" if holds else "DOES NOT HOLD"


def _by_loss(line: Line) -> bool:
    return line.group == "network"


def _words(number: float) -> str:
    if not np.isfinite(number):
        return "never"
    return f"{number:.0f}" if 10 <= number < 1e6 else f"{number:.2g}"


def _factor(ratio: float) -> str:
    if ratio == 0:
        return "-  "
    return f"[red]{ratio:.2g} ✗[/]" if ratio > 1 else f"{ratio:.2g}  "


def figure(runs: list[Run], out: Path) -> None:
    """Performance profiles: the share of instances solved within a factor of the best solver."""
    from matplotlib.figure import Figure

    groups = [g for g in ("least squares", "smooth") if any(r.group == g for r in runs)]
    canvas = Figure(figsize=(6 * len(groups), 8), layout="constrained")
    axes = canvas.subplots(2, len(groups), squeeze=False)
    for column, group in enumerate(groups):
        for row, measure in enumerate(("work", "seconds")):
            ax = axes[row][column]
            for solver, factors in profile(runs, group, measure).items():
                at = np.sort(factors)
                share = np.arange(1, len(at) + 1) / len(at)
                inside = at < float("inf")
                thick = 2.5 if solver == OURS else 1.2
                ax.step(
                    np.concatenate([[1.0], at[inside], [1e3]]),
                    np.concatenate([[0.0], share[inside], [np.mean(inside)]]),
                    where="post",
                    label=solver,
                    linewidth=thick,
                )
            ax.set(xscale="log", xlim=(1, 1e3), ylim=(0, 1.02))
            ax.set(title=f"{group}: {measure}", xlabel="times the best", ylabel="share solved")
        axes[0][column].legend(fontsize="small")
    for ending in ("png", "svg"):
        canvas.savefig(out / f"bench.{ending}", dpi=150)


def profile(runs: list[Run], group: str, measure: str) -> dict[str, list[float]]:
    """For each solver its factors over the best, one for each instance on which it competes."""
    factors: dict[str, list[float]] = {}
    best: dict[tuple[str, int], float] = {}
    some = [r for r in runs if r.group == group]
    for r in some:
        key = (r.problem, r.seed)
        best[key] = min(best.get(key, float("inf")), getattr(r, measure))
    for r in some:
        least = best[(r.problem, r.seed)]
        factor = getattr(r, measure) / least if least < float("inf") else float("inf")
        factors.setdefault(r.solver, []).append(factor)
    return factors
