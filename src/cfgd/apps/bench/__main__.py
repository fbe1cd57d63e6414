"""`python -m cfgd.apps.bench [SUITE ...]`: measure every speed that the documentation claims."""

from __future__ import annotations

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
from cfgd.apps.bench.speed.measure import ReportRow

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


def main(names: list[str]) -> int:
    """Run the named suites, or all, and print a line for each measurement."""
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        print(f"Unknown suite {unknown[0]!r}; the suites are {', '.join(SUITES)}.", file=sys.stderr)
        return 2
    failed = 0
    for name in names or SUITES:
        print(f"\n{name}", flush=True)
        for row in SUITES[name]():
            print(row.line(), flush=True)
            failed += row.holds is False
    print(f"\n{failed} of the claims did not hold in this run." if failed else "\nAll claims hold.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
