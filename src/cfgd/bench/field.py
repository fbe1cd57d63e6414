"""`cfgd bench`: where cfgd stands among the solvers of the field, losses included.

Two questions. Where a problem can be solved: what work and time does it take to reach an error (or
a gradient relative to its start) of 1e-8? For the networks: what loss is reached with equal work?
"""

from __future__ import annotations

import dataclasses
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cfgd.bench.cases import TARGET, Case, makers
from cfgd.bench.rivals import Outcome, Rival, rivals

OURS = "cfgd Auto"
TOLERANCES = (1e-8, 1e-10, 1e-12, 1e-14)
# a run that takes longer is not tried again with a smaller tolerance, and is timed as it was
PATIENCE = 20.0


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
    measure: str
    solver: str
    score: tuple[float, float, float]  # median, least, most
    seconds: tuple[float, float, float]
    solved: int
    seeds: int
    winner: bool
    ratio: float  # ours to theirs: above one, cfgd loses
    seconds_ratio: float


def run(
    out: Path, seeds: int = 5, quick: bool = False, say: Callable[[str], None] | None = None
) -> list[Line]:
    """Run all; write `bench.json`, `bench.png` and `bench.svg` to `out`; give the table back."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    problems = list(makers(quick))
    runs: list[Run] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=say is not None) as progress:
        task = progress.add_task("", total=len(problems) * seeds)
        for name, make in problems:
            for seed in range(seeds):
                case = make(seed)
                runs += _instance(case, name, seed, lambda s: progress.update(task, description=s))
                progress.advance(task)
            if say is not None:
                say(f"{name}: done")
            lines = table(runs)
            _write(out / "bench.json", runs, lines, seeds, quick)  # an interrupted run is kept
    lines = table(runs)
    console.print(render(lines))
    figure(runs, out)
    return lines


def _instance(case: Case, name: str, seed: int, say: Callable[[str], None]) -> list[Run]:
    found: list[Run] = []
    reference = float("nan")
    # L-BFGS-B before all others: its final loss is what the others are timed to
    solvers = sorted(rivals(case).items(), key=lambda item: item[0] != "L-BFGS-B")
    with jax.enable_x64(True):
        for solver, solve in solvers:
            say(f"{name}, seed {seed}: {solver}")
            one = _measured(case, name, seed, solver, solve, reference)
            reference = one.value if solver == "L-BFGS-B" else reference
            found.append(one)
    return found


def _measured(case: Case, name: str, seed: int, solver: str, solve: Rival, reference: float) -> Run:
    outcome, seconds, met, error = None, float("inf"), False, ""
    for tolerance in TOLERANCES:
        began = time.perf_counter()
        try:
            outcome = solve(case, tolerance)
        except (ArithmeticError, ValueError, RuntimeError) as caught:  # what solvers raise
            error = f"{type(caught).__name__}: {str(caught)[:80]}"
            break
        seconds = time.perf_counter() - began
        met = case.budget is not None or _distance(case, outcome.x) <= TARGET
        if met or seconds > PATIENCE:
            break
    if met and seconds <= PATIENCE:  # once more, now that all is compiled
        began = time.perf_counter()
        outcome = solve(case, tolerance)
        seconds = time.perf_counter() - began
    value = float("inf") if outcome is None else float(case.objective.value(outcome.x))
    value = value if np.isfinite(value) else float("inf")
    return Run(
        name,
        case.group,
        case.unit,
        solver,
        seed,
        outcome.work if outcome is not None and met else float("inf"),
        seconds if met else float("inf"),
        value,
        met,
        _time_to(reference, outcome, value, seconds),
        error,
    )


def _distance(case: Case, x: Any) -> float:
    """Error relative to the minimiser where it is known, else gradient relative to the start."""
    if not np.all(np.isfinite(x)):
        return float("inf")
    if case.minimiser is not None:
        return float(np.linalg.norm(x - case.minimiser) / np.linalg.norm(case.minimiser))
    start, end = case.objective.gradient(case.x0), case.objective.gradient(np.asarray(x))
    return float(np.linalg.norm(end) / np.linalg.norm(start))


def _time_to(reference: float, outcome: Outcome | None, value: float, seconds: float) -> float:
    """Seconds to the reference loss, as the share of the iterations that it took."""
    if outcome is None or not value <= reference:
        return float("nan")
    if outcome.values is None:
        return seconds
    return float(seconds * np.argmax(outcome.values <= reference) / (len(outcome.values) - 1))


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
        for solver, some in scores.items():
            lines.append(
                Line(
                    problem,
                    "loss" if by_loss else of_problem[0].unit,
                    solver,
                    _spread([_score(r) for r in some]),
                    _spread([r.seconds for r in some]),
                    sum(r.solved for r in some),
                    len(some),
                    medians[solver] == min(medians.values()) < float("inf"),
                    _ratio(medians[OURS], medians[solver]),
                    _ratio(times[OURS], times[solver]),
                )
            )
    return lines


def _score(run: Run) -> float:
    return run.value if run.group == "network" else run.work


def _spread(numbers: list[float]) -> tuple[float, float, float]:
    return float(np.median(numbers)), min(numbers), max(numbers)


def _ratio(ours: float, theirs: float) -> float:
    return ours / theirs if np.isfinite(theirs) and theirs > 0 else 0.0


def render(lines: list[Line]) -> Any:
    """The table for a terminal; a ratio above one is a loss of cfgd and is marked so."""
    from rich.table import Table

    shown = Table(title="Where cfgd stands: median (least to most); ratio = cfgd / solver")
    for name in ("problem", "solver", "measure", "score", "ratio", "seconds", "ratio", "solved"):
        shown.add_column(name, justify="left" if name in ("problem", "solver") else "right")
    shown.add_column("")
    last = ""
    for line in lines:
        if line.problem != last:
            shown.add_section()
        loses = line.solver != OURS and (line.ratio > 1 or line.seconds_ratio > 1)
        where = [w for w, r in ((line.measure, line.ratio), ("time", line.seconds_ratio)) if r > 1]
        note = "winner" if line.winner else ""
        note += f"{', ' if note else ''}cfgd loses: {', '.join(where)}" if loses else ""
        shown.add_row(
            line.problem if line.problem != last else "",
            line.solver,
            line.measure,
            _words(line.score),
            f"{line.ratio:.2g}",
            _words(line.seconds),
            f"{line.seconds_ratio:.2g}",
            f"{line.solved}/{line.seeds}",
            note,
            style="bold" if line.solver == OURS else None,
        )
        last = line.problem
    return shown


def _words(spread: tuple[float, float, float]) -> str:
    if not np.isfinite(spread[0]):
        return "not reached"
    return f"{spread[0]:.3g} ({spread[1]:.2g} to {spread[2]:.2g})"


def _write(path: Path, runs: list[Run], lines: list[Line], seeds: int, quick: bool) -> None:
    def plain(thing: Any) -> Any:
        if isinstance(thing, dict):
            return {key: plain(value) for key, value in thing.items()}
        if isinstance(thing, list | tuple):
            return [plain(value) for value in thing]
        if isinstance(thing, float) and not np.isfinite(thing):
            return None  # JSON has no infinity
        return thing.item() if isinstance(thing, np.generic) else thing

    data = {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "jax": jax.__version__,
        },
        "target": TARGET,
        "seeds": seeds,
        "quick": quick,
        "table": [dataclasses.asdict(line) for line in lines],
        "runs": [dataclasses.asdict(run) for run in runs],
    }
    path.write_text(json.dumps(plain(data), indent=1) + "\n")


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
                    np.append(at[inside], 1e3),
                    np.append(share[inside], share[inside][-1:] if inside.any() else 0.0),
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
