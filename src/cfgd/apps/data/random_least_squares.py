"""The random ill-conditioned least-squares problems of section 4.1."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PAST = 4  # points before x0, the longest lag in the paper


class RandomLeastSquares(NamedTuple):
    """The problem |Xw - y|^2 / 2 with its start; `past` is (4, d), the latest point first."""

    X: Any
    y: Any
    x0: Any
    past: Any


def random_least_squares(seed: int, d: int) -> RandomLeastSquares:
    """Draw a problem: x0 is uniform in [-1, 1], targets and past are standard normal."""
    random = np.random.default_rng(seed)
    return RandomLeastSquares(
        X=ill_conditioned(random.normal(size=(d, d)) / np.sqrt(d)),
        y=random.normal(size=d),
        x0=random.uniform(-1, 1, size=d),
        past=random.normal(size=(PAST, d)),
    )


def smallest(seed: int, d: int) -> float:
    """Return the smallest singular value of the X of a problem.

    It is 0.1, unless the second smallest singular value of the random matrix is below that.
    """
    W = np.random.default_rng(seed).normal(size=(d, d)) / np.sqrt(d)
    return float(min(0.1, np.linalg.svd(W, compute_uv=False)[-2]))


def ill_conditioned(W: Any) -> Any:
    """Return W with its largest singular value set to 10 and its smallest to 0.1."""
    U, s, V = np.linalg.svd(W)
    s[0], s[-1] = 10.0, 0.1
    return (U * s) @ V
