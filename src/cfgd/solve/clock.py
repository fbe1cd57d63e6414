"""The clock of a run.

Time limits, progress lines, checkpoints and chunk lengths all read the time here, so that a test
can replace `now`.
"""

from __future__ import annotations

import time


def now() -> float:
    """Return the time in seconds, counted from an arbitrary origin."""
    return time.perf_counter()
