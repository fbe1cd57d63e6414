"""Fits per second of `curve_fit_many` and of other libraries, and its memory."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

import cfgd
from cfgd.apps.bench.growth.fresh_process import resident_bytes
from cfgd.apps.bench.speed.many_fits_cases import CASES, Case
from cfgd.apps.bench.speed.many_fits_numpy import relative_differences
from cfgd.apps.bench.speed.many_fits_rivals import RIVALS, SCIPY
from cfgd.apps.bench.speed.measure import ReportRow, at_least, at_most, time_in_turns

OURS = "curve_fit_many"
COMPARED = 200  # number of fits that are compared with accurate ones
TYPICAL = 50  # the same for another library
AGREEMENT = 1e-8  # eight digits
CHUNK = 100_000  # number of data sets that are written to a file at once


def rows(seconds: float = 2.0, n_on_disk: int = 1_000_000) -> Iterator[ReportRow]:
    """Measure each case with `seconds` times its goal as the number of fits, then the memory."""
    jax.devices()  # starts JAX, so that this is not part of the compilation time
    fit_many = cfgd.curve_fit_many  # the same for the import
    for case in CASES:
        yield from _case(case, fit_many, round(seconds * case.goal))
    yield _memory(CASES[0], n_on_disk)


def _case(case: Case, fit_many: Callable[..., Any], n: int) -> Iterator[ReportRow]:
    Y = case.data(n)

    def ours() -> Any:
        return fit_many(case.model, case.t, Y, case.start)

    calls = [_timed(ours) for _ in range(2)]
    fits = calls[1][1]
    counts, jobs, notes = {OURS: n}, {OURS: ours}, {}
    found = {OURS: fits.parameters}
    for name, rival in RIVALS.items():
        count = min(rival.n_fits, n)
        job = functools.partial(rival.fit, case, Y[:count])
        try:
            found[name] = job()
        except ImportError:
            notes[name] = "not installed"
        except Exception as error:  # the exception of a library is its result
            notes[name] = f"fails: {str(error).splitlines()[0] if str(error) else repr(error)}"
        else:
            counts[name], jobs[name] = count, job
    times = time_in_turns(jobs, repeats=3)
    rates = {name: counts[name] / times[name] for name in jobs}

    what = f"{case.name}, {len(case.start)} parameters, {case.n_points} points"
    yield ReportRow(
        f"{what}: {OURS}",
        f"{rates[OURS]:,.0f} fits/s",
        f"at least {case.goal:,.0f}",
        rates[OURS] >= case.goal,
    )
    better = max(rates[name] for name in SCIPY)
    yield at_least(
        "... / the faster of the two loops over SciPy's curve_fit", rates[OURS] / better, 100
    )
    for name in RIVALS:
        shown = notes[name] if name in notes else f"{rates[name]:,.0f} fits/s"
        yield ReportRow(f"... {name}", shown)
        if name not in notes:
            typical = np.median(_differences(case, Y, found[name], TYPICAL))
            yield ReportRow("...... its median relative error", f"{typical:.0e}")
    yield ReportRow(f"... fraction of {n:,} fits that converged", f"{np.mean(fits.converged):.3%}")
    yield at_most(
        "... compilation: first call minus second call", calls[0][0] - calls[1][0], 2.0, "s"
    )
    # parameters that the data do not determine may have any value
    is_known = np.all([np.isfinite(fits.errors[name]) for name in fits.names], axis=0)
    is_good = np.asarray(fits.converged) & is_known
    differences = _differences(case, Y[is_good], found[OURS][is_good], COMPARED)
    yield ReportRow(
        f"... largest relative error of {len(differences)} fits",
        f"{differences.max():.1e}",
        f"at most {AGREEMENT:g}",
        bool(differences.max() <= AGREEMENT),
    )


def _differences(case: Case, Y: np.ndarray, found: np.ndarray, most: int) -> np.ndarray:
    """Return the relative errors of up to `most` fits that have a result."""
    which = np.flatnonzero(np.isfinite(found).all(1))[:most]
    return relative_differences(case, Y[which], found[which])


def _timed(job: Callable[[], Any]) -> tuple[float, Any]:
    tick = time.perf_counter()
    result = job()
    return time.perf_counter() - tick, result


def _memory(case: Case, n: int) -> ReportRow:
    """Measure the peak of a fresh process that reads its data from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Y.npy"
        shape = (n, case.n_points)
        file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=shape)
        for seed, i in enumerate(range(0, n, CHUNK)):
            file[i : i + CHUNK] = case.data(min(CHUNK, n - i), seed)
        file.flush()
        del file
        command = [sys.executable, "-m", __name__, str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    added = json.loads(done.stdout.splitlines()[-1])
    what = f"{n:,} fits ({case.name}) from a file: added peak memory"
    return ReportRow(what, "not measured") if added is None else at_most(what, added, 1.0, "GB")


def _added_by_fits(path: str) -> float | None:
    """Return the GB that the fits of a file add to this process, its pages in memory included."""
    case = CASES[0]
    jax.numpy.zeros(1).block_until_ready()  # the memory of the JAX runtime is not part of a fit
    fit_many = cfgd.curve_fit_many
    before = resident_bytes("VmRSS")
    fit_many(case.model, case.t, np.load(path, mmap_mode="r"), case.start)
    peak = resident_bytes("VmHWM")
    return None if peak is None or before is None else (peak - before) / 1e9


if __name__ == "__main__":
    print(json.dumps(_added_by_fits(sys.argv[1])))
