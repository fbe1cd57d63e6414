"""`cfgd bench`: where cfgd stands among the solvers of the field, losses included.

Two questions. Where a problem can be solved: what work and time does it take to reach an error (or
a gradient relative to its start) of 1e-8? For the networks: what loss is reached with equal work?
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cfgd.bench.field.cases import TARGET, Case, Maker, makers
from cfgd.bench.field.rivals_jax import rivals
from cfgd.bench.field.rivals_scipy import PATIENCE, Outcome, Rival
from cfgd.bench.field.standing import Line, Run, figure, render, table, verdicts
from cfgd.data import gas
from cfgd.reproduce.runner import check_writable

# seconds beside which the time of compiling does not count
COMPILING = 8.0
INTERRUPTED = 130  # what a shell gives for Ctrl-C

# from loose to tight: what a tolerance means differs from solver to solver
TOLERANCES = tuple(10.0**-k for k in range(4, 15))
# decades of it that may change nothing before a solver is given up
IDLE = 4


class Report(NamedTuple):
    lines: list[Line]
    interrupted: bool


def run(
    out: Path,
    problems: Sequence[tuple[str, Maker]],
    seeds: int,
    say: Callable[[str], None] = lambda what: None,
    advance: Callable[[], None] = lambda: None,
) -> Report:
    """Run all; write `bench.json`, `bench.png` and `bench.svg` to `out`. Ctrl-C keeps the rest."""
    runs: list[Run] = []
    interrupted = False
    try:
        for name, make in problems:
            for seed in range(seeds):
                runs += _instance(make(seed), name, seed, say)
                advance()
            _write(out / "bench.json", runs, table(runs), seeds)
    except KeyboardInterrupt:
        interrupted = True
    lines = table(runs)
    _write(out / "bench.json", runs, lines, seeds)
    figure(runs, out)
    return Report(lines, interrupted)


def show(console: Console, out: Path, seeds: int, quick: bool, data: Path | None) -> int:
    """`cfgd bench`: progress, the table, and where it was written; an exit code."""
    for name in ("optax", "optimistix"):
        if importlib.util.find_spec(name) is None:
            raise ValueError(f"The rivals need {name}: pip install 'cfgd[bench]'.")
    check_writable(out)
    problems = list(makers(quick, gas.read(data) if data is not None else _cached()))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    # an instance may take minutes: longer than what the estimate looks back on by itself
    with Progress(*columns, console=console, speed_estimate_period=3600) as progress:
        task = progress.add_task("", total=len(problems) * seeds)
        report = run(
            out,
            problems,
            seeds,
            say=lambda what: progress.update(task, description=what),
            advance=lambda: progress.advance(task),
        )
    console.print(render(report.lines, console.width))
    for line in verdicts(report.lines):
        console.print(line, highlight=False)
    where = out.resolve()
    console.print(f"{where / 'bench.json'} and {where / 'bench.png'}", soft_wrap=True)
    if report.interrupted:
        console.print("Interrupted: the table has what was finished.")
    return INTERRUPTED if report.interrupted else 0


def _cached() -> gas.Gas | None:
    return gas.read(gas.cache()) if gas.cache().exists() else None


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
    outcome, seconds, met, error, idle, spent = None, float("inf"), False, "", 0, 0.0
    for tolerance in TOLERANCES:
        before, began = outcome, time.perf_counter()
        try:
            outcome = solve(case, tolerance)
        except (ArithmeticError, ValueError, RuntimeError) as caught:  # what solvers raise
            error = f"{type(caught).__name__}: {str(caught)[:80]}"
            break
        seconds = time.perf_counter() - began
        met = case.budget is not None or _distance(case, outcome.x) <= TARGET
        # a solver that was not stopped by its tolerance will not go on for a smaller one; of loose
        # tolerances a fast one may well skip a few
        same = before is not None and before.work == outcome.work and tolerance < TARGET
        idle = idle + 1 if same else 0
        spent += seconds
        # the first run may have spent its time on compiling
        late = before is not None and (seconds > PATIENCE or spent > 2 * PATIENCE)
        if met or idle == IDLE or late:
            break
    if met and seconds < COMPILING:  # once more, now that all is compiled
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
    if outcome.values is None or not np.any(outcome.values <= reference):
        return seconds
    return float(seconds * np.argmax(outcome.values <= reference) / (len(outcome.values) - 1))


def _write(path: Path, runs: list[Run], lines: list[Line], seeds: int) -> None:
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
        "table": [dataclasses.asdict(line) for line in lines],
        "runs": [dataclasses.asdict(run) for run in runs],
    }
    path.write_text(json.dumps(plain(data), indent=1) + "\n")
