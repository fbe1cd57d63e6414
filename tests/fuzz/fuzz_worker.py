"""Try damaged files on one reader, with a limit of memory: name, folder, first and last mutation.

The number of each mutation is printed before it is tried, so that the parent knows which one ended
the process.
"""

import resource
import sys
from pathlib import Path

from readers import reader

# Bytes of address space beyond what the process has after reading the valid files: the memory that
# the readers are given, and as much again for copies and for what malloc keeps.
ALLOWANCE = 10**9


def limit_memory():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ALLOWANCE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(name, folder, first, last):
    tested = reader(name, Path(folder))
    limit_memory()
    for n in range(int(first), int(last)):
        print(f"mutation {n}", flush=True)
        problem = tested.problem(n)
        if problem is not None:
            print(f"failed {n}: {problem}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
