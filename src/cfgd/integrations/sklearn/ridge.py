"""Tikhonov regression by the non-adaptive method: where its iterations lead is the solution."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from cfgd._core import checks
from cfgd.integrations.sklearn.fitting import solved
from cfgd.methods import NonAdaptive
from cfgd.objectives import Quadratic
from cfgd.solve import sweep


class CaputoRidge(RegressorMixin, BaseEstimator):
    """argmin |Xw + b - y|^2 / 2 + gamma/2 |w|_D^2, D being the diagonal of X'X, X centred.

    This is what the non-adaptive method with terminal 0 and a gamma > 0 converges to (Theorem 3 of
    the paper). Its penalty follows the scale of every feature, as ridge regression of standardised
    ones does: with n samples it is `Ridge(alpha=n * gamma)` after `StandardScaler`.

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
        tol: float = 1e-8,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CaputoRidge:
        owner = type(self).__name__
        gamma = self._gammas(self.gamma)
        if gamma.ndim != 0:
            checks.fail(owner, "gamma", "be one number", f"shape {gamma.shape}")
        f, scale, means = self._posed(X, y, sample_weight)
        start = np.zeros(len(scale), scale.dtype)
        method = NonAdaptive(0 * scale, gamma=gamma)
        ends = solved(owner, f, start, method, self.max_iter, self.tol, self.verbose)
        self.coef_ = ends.x / scale
        self.intercept_ = float(means[1] - means[0] @ self.coef_)
        self.n_iter_ = max(1, int(ends.iterations))
        self.loss_curve_ = ends.history["value"]
        self.status_ = ends.status.name
        return self

    def path(self, X: Any, y: Any, gammas: Any, sample_weight: Any = None) -> np.ndarray:
        """The coefficients for many gammas, a row for each: one sweep."""
        gammas = np.atleast_1d(self._gammas(gammas))
        f, scale, _ = self._posed(X, y, sample_weight)
        method = NonAdaptive(0 * scale, gamma=gammas)
        start = np.zeros(len(scale), scale.dtype)
        ends = sweep(f, start, method, max_iterations=self.max_iter, tolerance=self.tol)
        return ends.x / scale

    def _gammas(self, gamma: Any) -> np.ndarray:
        wanted = "be a number of at least 0"
        owner = type(self).__name__
        return np.asarray(checks.number(owner, "gamma", gamma, wanted, lambda v: v >= 0))

    def _posed(self, X: Any, y: Any, sample_weight: Any) -> tuple[Quadratic, Any, Any]:
        """The normal equations in coordinates in which D is one, their scale, and the means."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True)
        weight = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
        total = weight.sum()
        means = np.zeros(X.shape[1], X.dtype), X.dtype.type(0)
        if self.fit_intercept:
            means = weight @ X / total, weight @ y / total
        rows, y = X - means[0], y.astype(X.dtype) - means[1]
        if sample_weight is not None:
            rows, y = rows * np.sqrt(weight)[:, None], y * np.sqrt(weight)
        A = rows.T @ rows / total  # what is scaled is this, not its many rows
        size = np.sqrt(A.diagonal())
        scale = np.where(size > 0, size, 1)
        return Quadratic(A / scale / scale[:, None], -(y @ rows) / total / scale), scale, means

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return X @ self.coef_ + self.intercept_
