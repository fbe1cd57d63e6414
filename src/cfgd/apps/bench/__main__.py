"""`python -m cfgd.apps.bench [SUITE ...]`: measure the speeds that the documentation states."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

from cfgd.apps.bench.growth import runner as growth
from cfgd.apps.bench.speed import (
    core,
    dask_clusters,
    explorer,
    many_fits,
    networks,
    objectives,
    processes,
    tables,
)
from cfgd.apps.bench.speed.measure import HEADER, ReportRow

SUITES: dict[str, Callable[[], Iterator[ReportRow]]] = {
    "core": core.rows,
    "objectives": objectives.rows,
    "networks": networks.rows,
    "many_fits": many_fits.rows,
    "explorer": explorer.rows,
    "processes": processes.rows,
    "dask": dask_clusters.rows,
    "tables": tables.rows,
    "growth": growth.rows,
}
DESCRIPTIONS = {
    "core": "minimize and sweep compared with NumPy loops; time of the import and the first solve",
    "objectives": "cost of a fractional direction in gradients, for each kind of objective",
    "networks": "time of a step of cfadam compared with optax.adam",
    "many_fits": "fits per second of curve_fit_many, SciPy, lmfit and optimistix",
    "explorer": "load time and frame rate of the explorer (needs Chromium)",
    "processes": "speedup of two processes on two cores",
    "dask": "passes over data on Dask clusters of one and two workers",
    "tables": "cfgd fit on CSV files compared with pandas, scikit-learn and statsmodels",
    "growth": "time and memory against the size of the data",
}


def main(names: list[str]) -> int:
    """Run the named suites, or all, and print a line for each measurement."""
    parser = argparse.ArgumentParser(
        "python -m cfgd.apps.bench",
        description="Measure the speed and memory of cfgd, and compare them with their goals. "
        "Ratios are taken within one run, with the competitors in turns. `cfgd bench` compares "
        "cfgd with other solvers.",
        epilog="suites:\n" + "\n".join(f"  {name:<12}{DESCRIPTIONS[name]}" for name in SUITES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="suites to run; default: all")
    suites = parser.parse_args(names).suites
    unknown = [name for name in suites if name not in SUITES]
    if unknown:
        parser.error(f"unknown suite {unknown[0]!r}; the suites are {', '.join(SUITES)}")
    missed = 0
    print(HEADER)
    for name in suites or SUITES:
        print(f"\n{name}: {DESCRIPTIONS[name]}", flush=True)
        for row in SUITES[name]():
            print(row.line(), flush=True)
            missed += row.holds is False
    print(f"\nGoals that were not met: {missed}." if missed else "\nAll goals were met.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
