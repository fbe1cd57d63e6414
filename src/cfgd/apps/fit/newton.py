"""Newton's method for rows in memory and few columns: the step that `Auto` takes, without JAX.

Loading JAX takes longer than such a fit. `newton` takes the plain cases, and returns None for all
others: where the Hessian is singular to rounding, or the steps do not become small, as on separated
classes. `minimize` then solves the problem and says what it is.

A run that ends here has a minimum: the losses are convex, the Hessian is positive definite, and
after a step that is small beside the coefficients the error is of the size of its square.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd.apps.fit.row_block import RowBlock
from cfgd.objectives.linear.formulas import Formulas

MAX_STEPS = 40  # from a good start fewer than ten are usual
MAX_HALVINGS = 30
ACCEPT = 1e-4  # share of the predicted decrease that a step must achieve (Nocedal and Wright, 3.1)
# A step of this size, relative to the coefficients, is the last one: the error of a quadratically
# convergent method is then about 1e-12.
SMALL_STEP = 1e-6
# The least squared diagonal entry of the Cholesky factor of a matrix of unit diagonal: the
# variance of a column that the others do not explain. Collinear columns have rounding errors there.
LEAST_PIVOT = 1e-10
# Rounding errors of the value, relative to the sum of the sizes of its parts.
ROUNDING = 1e-13
CHUNK_NUMBERS = 2**17  # of the design matrix: 1 MiB, so that temporaries stay in the cache
MIN_CHUNK = 1024  # rows, however wide they are: products of fewer rows do not use all of BLAS


class NewtonRun(NamedTuple):
    """Coefficients, the intercept last, and the history of values and gradient norms.

    `is_separated` says that every row is classified correctly, so that there is no minimum.
    """

    w: np.ndarray
    values: list[float]
    gradient_norms: list[float]
    is_separated: bool = False

    @property
    def iterations(self) -> int:
        return len(self.values) - 1


class _Point(NamedTuple):
    value: float
    size: float  # the sum of the sizes of the parts of the value
    gradient: np.ndarray
    curvature: np.ndarray  # weighted second derivative of the loss of each row


def newton(
    loss: Formulas,
    rows: RowBlock,
    y: Any,
    weight: np.ndarray,
    l2: float,
    w0: np.ndarray,
    gram: np.ndarray | None = None,
    separating: float = -np.inf,
) -> NewtonRun | None:
    """Minimise sum_i weight_i loss(x_i w + b + offset_i, y_i) + l2 |w|^2 / 2.

    Parameters
    ----------
    loss
        A convex loss of one prediction.
    rows, y
        The design matrix and the offsets, and the targets as the loss takes them.
    w0
        The start: coefficients, and the intercept last.
    gram
        X'SX with the intercept, if it is known; the Hessian of the squared loss is made of it.
    separating
        A value below which every row is classified correctly: the run ends there.
    """
    penalty = np.append(np.full(rows.X.shape[1], float(l2)), 0.0)
    w = np.array(w0, float)
    with np.errstate(over="ignore", invalid="ignore"):
        now = _evaluate(loss, rows, y, weight, penalty, w)
        if not np.isfinite(now.value):
            return None
        run = NewtonRun(w, [now.value], [float(np.linalg.norm(now.gradient))])
        hessian: _Cholesky | None = None
        for _ in range(MAX_STEPS):
            if hessian is None or not loss.is_quadratic:
                is_known = loss.is_quadratic and gram is not None
                H = gram if is_known else _gram(rows, now.curvature)
                hessian = _Cholesky.of(H + np.diag(penalty))
            if hessian is None:
                return None
            step = -hessian.solve(now.gradient)
            is_last = np.linalg.norm(step) <= SMALL_STEP * (1 + np.linalg.norm(w))
            found = _trial(loss, rows, y, weight, penalty, w, step, now)
            if found is None:
                return None
            w, now = found
            run.values.append(now.value)
            run.gradient_norms.append(float(np.linalg.norm(now.gradient)))
            if now.value < separating:
                return run._replace(w=w, is_separated=True)
            if is_last:
                return run._replace(w=w)
    return None


def _trial(
    loss: Formulas,
    rows: RowBlock,
    y: Any,
    weight: np.ndarray,
    penalty: np.ndarray,
    w: np.ndarray,
    step: np.ndarray,
    now: _Point,
) -> tuple[np.ndarray, _Point] | None:
    """Halve a step until it achieves a share of the decrease that the slope predicts."""
    slope, share = float(now.gradient @ step), 1.0
    for _ in range(MAX_HALVINGS):
        trial = w + share * step
        found = _evaluate(loss, rows, y, weight, penalty, trial)
        allowed = ACCEPT * share * slope + ROUNDING * (now.size + found.size)
        if found.value <= now.value + allowed and np.all(np.isfinite(found.gradient)):
            return trial, found
        share /= 2
    return None


def _chunks(rows: RowBlock) -> list[slice]:
    m, d = rows.X.shape
    size = max(MIN_CHUNK, CHUNK_NUMBERS // max(d, 1))
    return [slice(start, start + size) for start in range(0, m, size)]


def _evaluate(
    loss: Formulas, rows: RowBlock, y: Any, weight: np.ndarray, penalty: np.ndarray, w: np.ndarray
) -> _Point:
    value, size, gradient = 0.0, 0.0, np.zeros(len(w))
    curvature = np.empty(len(weight))
    for place in _chunks(rows):
        part, by = rows.select(place), weight[place]
        p = part.predictors(w)
        losses = loss.value(p, y[place])
        first, second = loss.derivatives(p, y[place])
        value += float(by @ losses)
        size += float(by @ np.abs(losses))
        slope = by * first
        gradient[:-1] += slope @ part.X
        gradient[-1] += slope.sum()
        curvature[place] = by * second
    shrinkage = float(penalty @ w**2) / 2
    return _Point(value + shrinkage, size + shrinkage, gradient + penalty * w, curvature)


def _gram(rows: RowBlock, curvature: np.ndarray) -> np.ndarray:
    total = np.zeros(2 * (rows.X.shape[1] + 1,))
    for place in _chunks(rows):
        total += rows.select(place).gram(curvature[place], np.zeros(()))
    return total


class _Cholesky(NamedTuple):
    """The factor of a matrix that is scaled to a unit diagonal."""

    factor: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> _Cholesky | None:
        """Return the factor; None if the matrix is not positive definite, or so to rounding."""
        diagonal = np.diagonal(matrix)
        if not np.all(np.isfinite(matrix)) or not np.all(diagonal > 0):
            return None
        scale = np.sqrt(diagonal)
        try:
            factor = np.linalg.cholesky(matrix / scale / scale[:, None])
        except np.linalg.LinAlgError:
            return None
        is_definite = np.min(np.diagonal(factor)) ** 2 > LEAST_PIVOT
        return cls(factor, scale) if is_definite else None

    def solve(self, v: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular  # here: loading it takes a twentieth of a second

        half = solve_triangular(self.factor, v / self.scale, lower=True)
        return np.asarray(solve_triangular(self.factor, half, lower=True, trans=1)) / self.scale
