"""`cfgd fit` on CSV files, compared with pandas and scikit-learn or statsmodels.

Each run is a new process, and the time is that of the whole process: imports, reading and fit.
`cfgd fit` also evaluates held-out rows and writes a report. It computes standard errors, as
statsmodels does; scikit-learn does not.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cfgd.apps.bench.speed import tables_rivals
from cfgd.apps.bench.speed.measure import ReportRow, at_most


class Case(NamedTuple):
    """A table and its targets: "y" for least squares, "label" for logistic regression."""

    rows: int
    columns: int
    targets: tuple[str, ...] = ("y", "label")


# the wide table has the most columns for which `cfgd fit` computes standard errors; its classes are
# separated, so it has no logistic fit without a penalty
CASES = {
    "1,000,000 x 8": Case(1_000_000, 8),
    "5,000,000 x 5": Case(5_000_000, 5),
    "5,000 x 1,999": Case(5_000, 1_999, ("y",)),
}
RIVALS = ("scikit-learn", "statsmodels")
REPEATS = 3
DIGITS = "%.6g"  # number format of the files: six digits, as in many measurements


class Seconds(NamedTuple):
    """The wall time and the CPU time of a process."""

    clock: float
    processor: float


def rows() -> Iterator[ReportRow]:
    """Yield the times, and the time of `cfgd fit` / the time of the fastest other."""
    rivals = [name for name in RIVALS if importlib.util.find_spec(name.replace("scikit-", "sk"))]
    if importlib.util.find_spec("pandas") is None or not rivals:
        yield ReportRow("tables", "pandas is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            path = Path(folder) / "table.csv"
            write(path, case)
            for target in case.targets:
                yield from _compared(name, path, target, rivals)


def write(path: Path, case: Case) -> None:
    """Write normal columns with a linear target and one of two labels; the seed is 0."""
    import pandas as pd

    random = np.random.default_rng(0)
    w = random.normal(size=case.columns) / np.sqrt(case.columns)
    X = random.normal(size=(case.rows, case.columns))
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(case.columns)])
    eta = X @ w
    label = (random.random(case.rows) < 1 / (1 + np.exp(-eta))).astype(int)
    table = table.assign(y=eta + random.normal(size=case.rows), label=label)
    table.to_csv(path, index=False, float_format=DIGITS)


def _compared(name: str, path: Path, target: str, rivals: list[str]) -> Iterator[ReportRow]:
    other = "label" if target == "y" else "y"
    out = str(path.with_name("fit"))
    words = ["fit", str(path), "--target", target, "--drop", other, "--out", out]
    commands = {"cfgd fit": [sys.executable, "-m", "cfgd", *words]}
    for rival in rivals:
        commands[rival] = [sys.executable, tables_rivals.__file__, str(path), target, rival]
    found: dict[str, list[Seconds]] = {job: [] for job in commands}
    for turn in range(REPEATS + 1):  # the first turn fills the file cache and is not counted
        for job, command in commands.items():
            seconds = _run(command)
            found[job] += [seconds] if turn else []
    times = {
        job: Seconds(*map(statistics.median, zip(*runs, strict=True)))
        for job, runs in found.items()
    }
    for job, taken in times.items():
        shown = f"{taken.clock:.2f} s, {taken.processor:.2f} s CPU"
        yield ReportRow(f"{name}, {target}: time and CPU time of {job}", shown)
    ours = times.pop("cfgd fit")
    for i, what in enumerate(("time", "CPU time")):
        fastest = min(taken[i] for taken in times.values())
        ratio = ours[i] / fastest
        yield at_most(f"{name}, {target}: {what} of cfgd fit / of the fastest other", ratio, 1.0)


def _run(command: list[str]) -> Seconds:
    """Run a command with one thread of BLAS and OpenMP."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    clock, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Seconds(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
