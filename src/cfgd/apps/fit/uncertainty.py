"""Standard errors of the coefficients.

The covariance is the sandwich A^-1 B A^-1, where A is the Hessian with the penalty and B the
variance of the gradient. B is the Hessian without the penalty for a likelihood, the estimated
dispersion times that for the squared and gamma losses, and the sum of squared scores for the Huber
loss. With a penalty this is the covariance of the shrunken coefficients: it does not include their
bias.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfgd.apps.fit.conditioning import MAX_COLUMNS
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import training_rows
from cfgd.apps.fit.table_statistics import Standardisation
from cfgd.apps.fit.target import Target
from cfgd.objectives.linear.design import Dense
from cfgd.objectives.linear.intercept import WithIntercept
from cfgd.objectives.linear.multinomial import fix_gauge, matrix_of_classes
from cfgd.solve.covariance import inverse_if_definite

Z95 = 1.96  # standard errors on each side of a 95 % interval of a normal distribution
NO_PENALTY = np.zeros(())
# Pearson residuals, whose mean square estimates the dispersion, from predictors and targets
PEARSON_RESIDUALS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "squared": lambda p, y: y - p,
    "gamma": lambda p, y: y * np.exp(-p) - 1,
}


def covariance(rows: Rows, w: np.ndarray, l2: float) -> np.ndarray | None:
    """Return the covariance of the coefficients of standardised columns, flattened by rows.

    Return None if there are too many coefficients or the rows do not determine them. This takes
    one pass.
    """
    size, target = w.size, rows.target
    if size > MAX_COLUMNS:
        return None
    hessian, scores, squares = np.zeros((size, size)), np.zeros((size, size)), 0.0
    for block in rows.blocks(training_rows):
        p, weight = block.predictors(w), rows.fit_weight(block)
        block_hessian, block_scores = _hessian_and_scores(target, block.X, block.y, p, weight)
        hessian += block_hessian
        scores += block_scores
        if target.loss in PEARSON_RESIDUALS:
            squares += float(weight @ PEARSON_RESIDUALS[target.loss](p, block.y) ** 2)
    penalty = np.repeat(np.append(np.full(rows.width, l2), 0.0), target.classes)
    inverse = inverse_if_definite(hessian + np.diag(penalty))
    if inverse is None:
        return None
    # the rows less the effective number of coefficients
    freedom = rows.count - float(np.sum(inverse * hessian))
    if target.loss in (*PEARSON_RESIDUALS, "huber") and freedom <= 0:
        return None
    if target.loss in PEARSON_RESIDUALS:
        gradient_variance = squares / freedom * hessian
    elif target.loss == "huber":
        gradient_variance = rows.count / freedom * scores
    else:
        gradient_variance = hessian
    return _centre_classes(inverse @ gradient_variance @ inverse, target.classes)


def _hessian_and_scores(
    target: Target, X: np.ndarray, y: np.ndarray, p: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray | float]:
    """Return the Hessian of a block and, for the Huber loss, the sum of its squared scores."""
    design, loss = WithIntercept(Dense(X)), target.loss_function
    if loss.has_classes:
        matrix = matrix_of_classes(design, loss, p, weight)
        return np.asarray(fix_gauge(matrix, NO_PENALTY, target.classes)), 0.0
    slope, curvature = (np.asarray(d) for d in loss.derivatives(p, target.for_loss(y)))
    if target.loss == "gamma":
        curvature = np.ones_like(p)  # its expectation: the observed one varies with the targets
    hessian = np.asarray(design.gram(weight * curvature, NO_PENALTY))
    if target.loss != "huber":
        return hessian, 0.0
    return hessian, np.asarray(design.gram((weight * slope) ** 2, NO_PENALTY))


def _centre_classes(covariance: np.ndarray, classes: int) -> np.ndarray:
    """Return the covariance of coefficients whose sum over the classes is zero."""
    if classes == 1:
        return covariance
    P = np.kron(np.eye(len(covariance) // classes), np.eye(classes) - 1 / classes)
    return P @ covariance @ P


def in_original_units(
    w: np.ndarray, covariance: np.ndarray | None, standardisation: Standardisation, target: Target
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return coefficients and standard errors for columns and a target that are not standardised.

    Parameters
    ----------
    w, covariance
        The coefficients of standardised columns, and their covariance if it is known.
    """
    T = np.diag(np.append(1 / standardisation.deviation, 1.0))
    T[-1, :-1] = -standardisation.mean / standardisation.deviation
    original = target.scale * T @ w
    original[-1] += target.centre
    if covariance is None:
        return original, None
    T = target.scale * np.kron(T, np.eye(w.size // len(w)))
    variances = np.einsum("ij,jk,ik->i", T, covariance, T)
    return original, np.sqrt(variances).reshape(w.shape)
