"""The ill-conditioned random least squares of section 4.1."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PAST = 4  # points before x0: as many as the longest lag of the paper


class RandomLeastSquares(NamedTuple):
    """|Xw - y|^2 / 2 with its start; `past` is (4, d), the last point before x0 first."""

    X: Any
    y: Any
    x0: Any
    past: Any


def random_least_squares(seed: int, d: int) -> RandomLeastSquares:
    """One instance: x0 uniform in [-1, 1], targets and past standard normal."""
    random = np.random.default_rng(seed)
    return RandomLeastSquares(
        X=ill_conditioned(random.normal(size=(d, d)) / np.sqrt(d)),
        y=random.normal(size=d),
        x0=random.uniform(-1, 1, size=d),
        past=random.normal(size=(PAST, d)),
    )


def smallest(seed: int, d: int) -> float:
    """The smallest singular value of an instance's X: 0.1, or the second smallest of the draw."""
    W = np.random.default_rng(seed).normal(size=(d, d)) / np.sqrt(d)
    return float(min(0.1, np.linalg.svd(W, compute_uv=False)[-2]))


def ill_conditioned(W: Any) -> Any:
    """W with its largest singular value set to 10 and its smallest to 0.1."""
    U, s, V = np.linalg.svd(W)
    s[0], s[-1] = 10.0, 0.1
    return (U * s) @ V
