"""The covariance of the coefficients of a linear model, from sums over its rows.

Without a penalty it is `factor` times the inverse of the information matrix:

- a negative log-likelihood (logistic, Poisson, multinomial): its Hessian, with the factor 1;
- squared: X'SX, and the residual variance;
- gamma: X'SX, the expected Hessian, and Pearson's estimate of the dispersion;
- Huber: X'SX, and k^2 (sum psi^2 / dof) / mean(psi')^2, the sandwich that statsmodels' RLM calls H1
  (Huber, Robust Statistics, section 7.6).

With a penalty l2 it is the covariance A^-1 B A^-1 of the shrunken coefficients, where A includes
the penalty and B does not; it does not include their bias.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from cfgd.objectives.information import (
    Information,
    Inverse,
    centred,
    inverse_where_definite,
    with_infinite,
)
from cfgd.objectives.linear.formulas import Formulas

NO_PENALTY = np.zeros(())


@dataclasses.dataclass(frozen=True)
class CoefficientCovariance:
    """The covariance of coefficients in the order of the flattened x.

    Attributes
    ----------
    matrix : array
        Infinite for coefficients that the data do not determine, and all infinite where no degrees
        of freedom are left.
    dof : float
        The degrees of freedom of the residuals: the rows less the rank, or with a penalty less the
        effective number of coefficients.
    dispersion : float
        The mean square of the residuals of the loss; 1 for a likelihood.
    information : Information
        The information matrix without a penalty; it names undetermined combinations.
    """

    matrix: np.ndarray
    dof: float
    dispersion: float
    information: Information

    @property
    def errors(self) -> np.ndarray:
        """The standard errors."""
        return np.sqrt(np.diagonal(self.matrix))


class InformationSums:
    """Sums over the rows of a linear model at its coefficients, block by block."""

    def __init__(self, loss: Formulas, size: int) -> None:
        """Begin with no rows of a model with `size` coefficients."""
        self.loss, self.classes = loss, getattr(loss, "classes", 1)
        self.gram = np.zeros((size, size))
        self.count = 0  # rows whose weight is not zero
        self.squares = self.slopes = self.squared_slopes = 0.0

    def add(self, X: Any, y: Any, p: np.ndarray, weight: np.ndarray) -> None:
        """Add rows: a design matrix, targets as the loss takes them, predictions and weights."""
        used = np.asarray(weight) > 0
        self.count += int(used.sum())
        if self.loss.has_classes:
            from cfgd.objectives.linear.multinomial import matrix_of_classes  # which needs JAX

            self.gram += np.asarray(matrix_of_classes(X, self.loss, p, weight))
            return
        by = np.asarray(self.loss.information_weight(p, y))
        self.gram += np.asarray(X.gram(weight * by, NO_PENALTY))
        residuals = self.loss.residuals(p, y)
        if residuals is None:
            return
        self.squares += float(weight @ np.asarray(residuals) ** 2)
        if self.loss.is_robust:
            slopes = np.asarray(self.loss.derivatives(p, y)[1])[used]
            self.slopes += float(slopes.sum())
            self.squared_slopes += float(slopes @ slopes)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The matrix, and the numbers beside it: those of several parts of the rows are added."""
        numbers = self.count, self.squares, self.slopes, self.squared_slopes
        return self.gram, np.array(numbers, float)

    @classmethod
    def of(cls, loss: Formulas, gram: np.ndarray, numbers: np.ndarray) -> InformationSums:
        """Return the sums that have such `arrays`."""
        found = cls(loss, 0)
        count, *sums = numbers.tolist()
        found.gram, found.count = gram, round(count)
        found.squares, found.slopes, found.squared_slopes = sums
        return found

    def summed(self, total: Callable[[np.ndarray], np.ndarray]) -> InformationSums:
        """Return the sums over all processes, each of which has some of the rows."""
        return InformationSums.of(self.loss, *map(total, self.arrays))

    def without(self, held: np.ndarray) -> InformationSums:
        """Return the sums of the model in which some coefficients are constants."""
        if not held.any():
            return self
        other = InformationSums(self.loss, 0)
        vars(other).update(vars(self), gram=self.gram[np.ix_(~held, ~held)])
        return other

    def information(self, inverse: Inverse | None = None) -> Information:
        """Return the information matrix with its factor, for a model without a penalty.

        `inverse` is that of a multiple of the matrix, if it is known.
        """
        size, classes = len(self.gram), self.classes
        if not self.loss.has_dispersion:
            return Information.of(self.gram, 1.0, classes=classes)
        inverse = inverse or inverse_where_definite(self.gram)
        rank = size if inverse is None else size - inverse.null.shape[1]
        factor = self._factor(self.count - rank, rank) / self._mean_slope() ** 2
        return Information.of(self.gram, factor)

    def _mean_slope(self) -> float:
        """Return the mean of psi' of a robust loss; 1 for the others, whose matrix has it."""
        return self.slopes / max(self.count, 1) if self.loss.is_robust else 1.0

    def _factor(self, dof: float, parameters: float) -> float:
        """Return the dispersion, times the square of Huber's correction for a robust loss."""
        mean = self._mean_slope()
        if dof <= 0 or mean <= 0:
            return np.inf
        factor = self.squares / dof
        if self.loss.is_robust:
            from cfgd.objectives.robust import huber_correction

            variance = self.squared_slopes / self.count - mean**2
            factor *= huber_correction(mean, variance, parameters, self.count) ** 2
        return factor

    def covariance(self, l2: np.ndarray | float = 0.0) -> CoefficientCovariance:
        """Return the covariance for one penalty, or one for each coefficient."""
        penalty = np.broadcast_to(np.asarray(l2, float), len(self.gram))
        classes, is_penalised = self.classes, bool(np.any(penalty > 0))
        bread = self._mean_slope() * self.gram + np.diag(penalty)
        if classes > 1:
            from cfgd.objectives.linear.multinomial import fix_gauge

            bread = np.asarray(fix_gauge(bread, penalty, classes))
        inverse = inverse_where_definite(bread)
        information = self.information(None if is_penalised or classes > 1 else inverse)
        infinite = np.full_like(self.gram, np.inf)
        if inverse is None:
            return CoefficientCovariance(infinite, np.nan, np.nan, information)
        if is_penalised:
            parameters = float(np.sum(inverse.matrix * self.gram)) * self._mean_slope()
        else:
            parameters = len(self.gram) - inverse.null.shape[1]
        dof = self.count - parameters
        factor, dispersion = 1.0, 1.0
        if self.loss.has_dispersion:
            factor = self._factor(dof, parameters)
            dispersion = self.squares / dof if dof > 0 else np.inf
        if not np.isfinite(factor):
            return CoefficientCovariance(infinite, dof, dispersion, information)
        if is_penalised or classes > 1 or inverse.null.size:
            matrix = factor * inverse.matrix @ self.gram @ inverse.matrix
        else:
            matrix = factor / self._mean_slope() * inverse.matrix
        matrix = with_infinite(centred(matrix, classes), inverse.is_undetermined)
        return CoefficientCovariance(matrix, dof, dispersion, information)
