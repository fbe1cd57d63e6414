"""How well the columns tell their effects apart."""

from __future__ import annotations

import dataclasses

import numpy as np

from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import train
from cfgd.apps.fit.survey import Scaling

MOST_COLUMNS = 2000  # whose matrix of 32 MB is looked at
MOST = 1e7  # condition numbers are roots: beyond this, rounding is all that is seen
SINGULAR = "singular"
WORDS = ((10.0, "good"), (30.0, "fair"), (100.0, "poor"), (MOST, "bad"))


def correlation(rows: Rows) -> np.ndarray | None:
    """Of the columns, in one pass; None where there are too many."""
    if rows.width > MOST_COLUMNS:
        return None
    total = np.zeros((rows.width, rows.width))
    for X, _ in rows.blocks(train):
        total += X.T @ X
    return total / rows.count


@dataclasses.dataclass(frozen=True)
class Conditioning:
    """Condition numbers of X, as it is and standardised, and the column most like the others.

    `inflation` is how many times as large its variance is as it would be if it were unlike them.
    """

    raw: float
    standardised: float
    worst: int
    inflation: float

    @property
    def words(self) -> str:
        return next((word for most, word in WORDS if self.standardised < most), SINGULAR)


def conditioning(matrix: np.ndarray, scaling: Scaling) -> Conditioning:
    values, vectors = np.linalg.eigh(matrix)
    standardised = _condition(values)
    # what no row tells apart is told by rounding: one size for all of that
    inflations = (vectors**2 / np.maximum(values, values[-1] / MOST**2)).sum(1)
    worst = int(np.argmax(inflations))
    m, d = scaling.mean, scaling.deviation
    unscaled = np.block([[d[:, None] * matrix * d + np.outer(m, m), m[:, None]], [m, np.ones(1)]])
    raw = _condition(np.linalg.eigvalsh(unscaled))
    return Conditioning(raw, standardised, worst, float(inflations[worst]))


def _condition(values: np.ndarray) -> float:
    least = max(float(values[0]), float(values[-1]) / MOST**2)
    return min(MOST, float(np.sqrt(values[-1] / least)))
