"""Judge random problems of any seeds: PYTHONPATH=tests python -m judge --help."""

import argparse
import collections
import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

from judge.families import FAMILIES
from judge.runs import judged, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m judge", description=__doc__)
    parser.add_argument("--seeds", default="0:25", help="first:last of each family")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    options = parser.parse_args()
    first, last = (int(part) for part in options.seeds.split(":"))
    runs = []
    for family in options.families:
        began = time.process_time()
        mine = [judged(family, seed) for seed in range(first, last)]
        runs += mine
        counts = collections.Counter(run.status for run in mine)
        print(f"{family:22} {time.process_time() - began:6.1f} s", dict(counts), flush=True)
        print(table(mine), end="", flush=True)
    kinds = collections.Counter(run.kind for run in runs)
    print(f"{len(runs)} runs: {kinds['false']} false, {kinds['harsh']} harsh")
    return int(kinds["false"] > 0)


if __name__ == "__main__":
    sys.exit(main())
