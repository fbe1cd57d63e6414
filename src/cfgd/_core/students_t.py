"""The two-sided quantile of Student's t and of the normal distribution."""

from __future__ import annotations

import numpy as np
from scipy import special


def quantile(level: float, freedom: float) -> float:
    """Return the two-sided quantile of Student's t; infinite `freedom` means the normal one."""
    if np.isinf(freedom):
        return float(special.ndtri((1 + level) / 2))
    return float(special.stdtrit(freedom, (1 + level) / 2)) if freedom > 0 else np.inf
