"""How many bytes a fit may use for rows."""

from __future__ import annotations

import os
from pathlib import Path

MEMORY_SHARE = (
    1 / 4
)  # of the free memory for the rows: a fit makes about two copies of some of them
ASSUMED_MEMORY = 1e9  # bytes, where the system does not say how many are free


def free_memory() -> float:
    """Return the free memory in bytes, or an assumption if the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return ASSUMED_MEMORY
