"""The conditioning of the design matrix: how well the data separate the effects of the columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from cfgd._core.engines.base import Arrays
from cfgd.apps.fit.row_block import RowBlock
from cfgd.apps.fit.rows import InMemoryRows, Rows
from cfgd.apps.fit.split import training_rows
from cfgd.apps.fit.table_statistics import Standardisation
from cfgd.objectives.information import MOST_COMBINATIONS, Information, inverse_of_many

MAX_COLUMNS = 2000  # whose matrix of second moments takes 32 MB
# The condition number of X is the root of that of X'X, whose eigenvalues are known to about
# 1e-14 of the largest one: beyond this number a matrix is singular to rounding.
MAX_CONDITION = 1e7
TOLERANCE = 1e-6  # of an eigenvalue, relative: four digits of a condition number are shown
SINGULAR = "singular"
GRADES = ((10.0, "low"), (30.0, "moderate"), (100.0, "high"), (MAX_CONDITION, "severe"))


@dataclasses.dataclass(frozen=True)
class Conditioning:
    """Condition numbers of the design matrix, raw and standardised, and its most collinear column.

    `inflation` is the variance inflation factor of the column `worst`: how many times larger the
    variance of its coefficient is than it would be for a column uncorrelated with the others.
    `moments` are the correlations with the deviations of the columns.
    """

    raw: float
    standardised: float
    worst: int
    inflation: float
    moments: Information

    def constant_combinations(self, terms: list[str]) -> str:
        """Return which combinations of the columns are constant, as " ('a' - 'b' is constant)".

        There is nothing to return for columns that are collinear to less than rounding.
        """
        found = self.moments.combinations([repr(term) for term in terms])
        if len(found) > MOST_COMBINATIONS:
            return f" ({len(found):,} combinations of the columns are constant)"
        verb = "is" if len(found) == 1 else "are"
        return f" ({' and '.join(found)} {verb} constant)" if found else ""

    @property
    def grade(self) -> str:
        """The condition number of the standardised columns in a word, from low to singular."""
        return next((grade for limit, grade in GRADES if self.standardised < limit), SINGULAR)


def correlation_matrix(rows: Rows) -> np.ndarray | None:
    """Return the correlations of the columns over the training rows, or None if there are too many.

    This takes one pass.
    """
    if rows.width > MAX_COLUMNS:
        return None
    if isinstance(rows, InMemoryRows):
        return rows.gram[:-1, :-1] / rows.count
    (total,) = rows.sum(training_rows, _second_moments, rows.width)
    return total / rows.count


def _second_moments(blocks: Iterator[RowBlock], width: int) -> Arrays:
    total = np.zeros((width, width))
    for block in blocks:
        total += block.X.T @ block.X
    return (total,)


def conditioning(correlations: np.ndarray, standardisation: Standardisation) -> Conditioning:
    """Return the conditioning of columns with these correlations, means and deviations."""
    m, s = standardisation.mean, standardisation.deviation
    # second moments of the raw columns and the intercept
    moments = np.block(
        [[s[:, None] * correlations * s + np.outer(m, m), m[:, None]], [m, np.ones(1)]]
    )
    inverse = inverse_of_many(correlations)
    if inverse is None:
        eigenvalues, eigenvectors = np.linalg.eigh(correlations)
        # eigenvalues below this are rounding errors: one size for all of them
        floor = eigenvalues[-1] / MAX_CONDITION**2
        inflations = (eigenvectors**2 / np.maximum(eigenvalues, floor)).sum(1)
        of_moments = np.linalg.eigvalsh(moments)
    else:
        inflations = np.diagonal(inverse)
        eigenvalues = _extremes(correlations, lambda v: inverse @ v)

        def times_inverse(v: np.ndarray) -> np.ndarray:
            """Return M^-1 v, where M = T' diag(R, 1) T with T = [[s, 0], [m, 1]]."""
            u = (v[:-1] - m * v[-1]) / s
            part = (inverse @ u) / s
            return np.append(part, v[-1] - m @ part)

        of_moments = _extremes(moments, times_inverse)
    worst = int(np.argmax(inflations))
    return Conditioning(
        _condition_number(of_moments),
        _condition_number(eigenvalues),
        worst,
        float(inflations[worst]),
        Information(correlations, s, 1.0),
    )


def _extremes(matrix: np.ndarray, times_inverse: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the least and the largest eigenvalue of a definite matrix, by Lanczos' method."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    n = len(matrix)
    start = np.random.default_rng(0).normal(size=n)
    inverse = LinearOperator((n, n), matvec=times_inverse, dtype=float)
    found = [
        float(eigsh(one, 1, which="LA", v0=start, tol=TOLERANCE, return_eigenvectors=False)[0])
        for one in (inverse, matrix)
    ]
    return np.array([1 / found[0], found[1]])


def _condition_number(eigenvalues: np.ndarray) -> float:
    """Return the condition number of X from the ascending eigenvalues of X'X."""
    smallest = max(float(eigenvalues[0]), float(eigenvalues[-1]) / MAX_CONDITION**2)
    return min(MAX_CONDITION, float(np.sqrt(eigenvalues[-1] / smallest)))
