"""The processes that share the rows, without JAX where there is one."""

from __future__ import annotations

import os
import sys

from cfgd._core.environment import COORDINATOR, in_cluster


def has_others() -> bool:
    """Return whether this process may be one of several, which JAX connects."""
    return COORDINATOR in os.environ or in_cluster() or "jax" in sys.modules


def process() -> tuple[int, int]:
    """Join the other processes; return the index of this one, and their number."""
    if not has_others():
        return 0, 1
    from cfgd import distributed

    found = distributed.start()
    return found.index, found.count
