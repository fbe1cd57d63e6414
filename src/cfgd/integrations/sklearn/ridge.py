"""Ridge regression in the metric of the paper, as the limit point of the non-adaptive method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from cfgd._core import checks
from cfgd.integrations.sklearn.base import DTYPES, CaputoEstimator, check_sample_weight
from cfgd.methods import NonAdaptive
from cfgd.objectives import Quadratic
from cfgd.solve import sweep


class CaputoRidge(RegressorMixin, CaputoEstimator):
    """argmin |Xw + b - y|^2 / 2 + gamma/2 |w|_D^2, where D is the diagonal of X'X for centred X.

    The non-adaptive method with terminal 0 and gamma > 0 converges to this point (Theorem 3 of the
    paper). The penalty follows the scale of every feature: for n samples the model is
    `Ridge(alpha=n * gamma)` after `StandardScaler`.

    Parameters
    ----------
    gamma : float, default 0.001
        The penalty, at least 0.
    fit_intercept : bool, default True
        Whether to fit b.
    max_iter : int, default 100000
        Maximum number of iterations.
    tol : float or None, optional
        Relative tolerance of the gradient; None means 1e-8 for float64 data and 1e-4 for float32.
    verbose : int, default 0
        Whether to print progress.

    Attributes
    ----------
    coef_, intercept_
        w and b.
    n_iter_, loss_curve_, status_
        Iterations, the values of the objective, and the name of the final status.

    Examples
    --------
    >>> import numpy as np
    >>> from cfgd.integrations.sklearn import CaputoRidge
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([3.0, 5.0, 7.0])
    >>> print(CaputoRidge(gamma=1.0).fit(X, y).coef_.round(6))
    [1.]
    >>> print(CaputoRidge().path(X, y, [0.0, 1.0, 3.0]).round(6))
    [[2. ]
     [1. ]
     [0.5]]
    """

    def __init__(
        self,
        gamma: float = 1e-3,
        *,
        fit_intercept: bool = True,
        max_iter: int = 100_000,
        tol: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CaputoRidge:
        """Fit the model to samples X, targets y and optional weights.

        Parameters
        ----------
        X : array of shape (n, d)
            The samples.
        y : array of shape (n,)
            The targets.
        sample_weight : array of shape (n,), optional
            The weight of each sample in the sum of losses, at least 0; 1 if it is left out.

        Returns
        -------
        CaputoRidge
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If X or y has NaN or infinity, their shapes do not agree, a weight is negative or all
            are 0, or `gamma` is not one number of at least 0.
        """
        gamma = self._check_gamma(self.gamma)
        if gamma.ndim != 0:
            checks.fail(type(self).__name__, "gamma", "be one number", f"shape {gamma.shape}")
        problem = self._normal_equations(X, y, sample_weight)
        zeros = np.zeros_like(problem.scale)
        solution = self._minimize(problem.objective, zeros, NonAdaptive(zeros, gamma=gamma))
        self.coef_ = solution.x / problem.scale
        self.intercept_ = float(problem.y_mean - problem.X_mean @ self.coef_)
        self._record_fit(solution)
        return self

    def path(self, X: Any, y: Any, gammas: Any, sample_weight: Any = None) -> np.ndarray:
        """Return the coefficients for many gammas, one row for each, from one `cfgd.sweep`.

        Parameters
        ----------
        X : array of shape (n, d)
            The samples.
        y : array of shape (n,)
            The targets.
        gammas : array of shape (k,)
            The penalties, each at least 0.
        sample_weight : array of shape (n,), optional
            The weight of each sample.

        Returns
        -------
        array of shape (k, d)
            The coefficients w for each penalty.

        Raises
        ------
        ValueError
            As in `fit`, or if one of `gammas` is negative.
        """
        gammas = np.atleast_1d(self._check_gamma(gammas))
        problem = self._normal_equations(X, y, sample_weight)
        zeros = np.zeros_like(problem.scale)
        solutions = sweep(
            problem.objective,
            zeros,
            NonAdaptive(zeros, gamma=gammas),
            max_iterations=self.max_iter,
            tolerance=self.tol,
        )
        return solutions.x / problem.scale

    def _check_gamma(self, gamma: Any) -> np.ndarray:
        wanted = "be a number of at least 0"
        owner = type(self).__name__
        return np.asarray(checks.number(owner, "gamma", gamma, wanted, lambda v: v >= 0))

    def _normal_equations(self, X: Any, y: Any, sample_weight: Any) -> NormalEquations:
        """Return the centred normal equations in coordinates in which D is the identity."""
        X, y = validate_data(self, X, y, dtype=DTYPES, y_numeric=True)
        weight = check_sample_weight(sample_weight, X)
        total = weight.sum()
        X_mean, y_mean = np.zeros(X.shape[1], X.dtype), X.dtype.type(0)
        if self.fit_intercept:
            X_mean, y_mean = weight @ X / total, weight @ y / total
        X, y = X - X_mean, y.astype(X.dtype) - y_mean
        if sample_weight is not None:
            X, y = X * np.sqrt(weight)[:, None], y * np.sqrt(weight)
        A, b = X.T @ X / total, -(y @ X) / total
        deviation = np.sqrt(A.diagonal())
        scale = np.where(deviation > 0, deviation, 1)
        return NormalEquations(
            Quadratic(A / scale / scale[:, None], b / scale), scale, X_mean, y_mean
        )

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted targets of the samples.

        Parameters
        ----------
        X : array of shape (n, d)
            The samples.

        Returns
        -------
        array of shape (n,)
            xw + b.
        """
        return self._validate_new(X) @ self.coef_ + self.intercept_


class NormalEquations(NamedTuple):
    """The objective in scaled coordinates, `scale * w`, and the means that were subtracted."""

    objective: Quadratic
    scale: np.ndarray
    X_mean: np.ndarray
    y_mean: Any
