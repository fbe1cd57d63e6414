"""How far the coefficients are known: the spread that they would have over data of this kind.

A^-1 B A^-1, A being the curvature with the penalty and B the variance of the gradient. For a
likelihood B is the curvature without the penalty; for squares and gamma that times the dispersion,
which is estimated; for huber the sum of squared slopes. With a penalty it is the spread of the
shrunken coefficients, and not how far they are from the truth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfgd.apps.fit.conditioning import MOST_COLUMNS
from cfgd.apps.fit.fitting import as_wanted
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import train
from cfgd.apps.fit.survey import Scaling
from cfgd.objectives.linear.design import Dense
from cfgd.objectives.linear.intercept import WithIntercept
from cfgd.objectives.linear.multinomial import fix_gauge, matrix_of_classes

NONE = np.zeros(())
# Pearson's residuals, whose mean square is the dispersion
SPREAD: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "squared": lambda p, y: y - p,
    "gamma": lambda p, y: y * np.exp(-p) - 1,
}


def covariance(rows: Rows, w: np.ndarray, l2: float) -> np.ndarray | None:
    """Of the coefficients in a row, of standardised columns; None where it is not determined."""
    size = w.size
    if size > MOST_COLUMNS:
        return None
    loss, kind = rows.target.rule, rows.target.loss
    H, B, squares = np.zeros((size, size)), np.zeros((size, size)), 0.0
    for X, y in rows.blocks(train):
        design, p = WithIntercept(Dense(X)), X @ w[:-1] + w[-1]
        if loss.has_classes:
            H += fix_gauge(
                matrix_of_classes(design, loss, p, np.ones(len(p))), NONE, rows.target.classes
            )
            continue
        slope, curvature = (np.asarray(of) for of in loss.derivatives(p, as_wanted(rows, y)))
        if kind == "gamma":
            curvature = np.ones_like(p)  # as expected: the targets' own varies with them
        H += design.gram(curvature, NONE)
        if kind == "huber":
            B += design.gram(slope**2, NONE)
        if kind in SPREAD:
            squares += float(np.sum(SPREAD[kind](p, y) ** 2))
    penalty = np.repeat(np.append(np.full(rows.width, l2), 0.0), rows.target.classes)
    inverse = _inverse(H + np.diag(penalty))
    if inverse is None:
        return None
    freedom = rows.count - float(np.sum(inverse * H))  # rows, less the coefficients they determine
    if kind in (*SPREAD, "huber") and freedom <= 0:
        return None
    if kind in SPREAD:
        B = squares / freedom * H
    elif kind == "huber":
        B *= rows.count / freedom
    else:
        B = H
    return _centred(inverse @ B @ inverse, rows.target.classes)


def _inverse(A: np.ndarray) -> np.ndarray | None:
    own = np.sqrt(np.diagonal(A))
    if not np.all(own > 0) or not np.all(np.isfinite(A)):
        return None
    values, vectors = np.linalg.eigh(A / own / own[:, None])
    if values[0] <= len(A) * np.finfo(float).eps * values[-1]:
        return None
    return (vectors / values) @ vectors.T / own / own[:, None]


def _centred(C: np.ndarray, classes: int) -> np.ndarray:
    """Of several classes, whose coefficients sum to zero."""
    if classes == 1:
        return C
    P = np.kron(np.eye(len(C) // classes), np.eye(classes) - 1 / classes)
    return P @ C @ P


def as_they_are(
    w: np.ndarray, C: np.ndarray | None, scaling: Scaling, centre: float, scale: float
) -> tuple[np.ndarray, np.ndarray | None]:
    """Coefficients, and their standard errors, of columns and target in their own units."""
    T = np.diag(np.append(1 / scaling.deviation, 1.0))
    T[-1, :-1] = -scaling.mean / scaling.deviation
    raw = scale * T @ w
    raw[-1] += centre
    if C is None:
        return raw, None
    T = scale * np.kron(T, np.eye(w.size // len(w)))
    return raw, np.sqrt(np.einsum("ij,jk,ik->i", T, C, T)).reshape(w.shape)
