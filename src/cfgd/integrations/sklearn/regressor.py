"""Linear regression with any of cfgd's losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from cfgd._core import checks
from cfgd.integrations.sklearn.fitting import is_auto, method_of, padded, solved
from cfgd.objectives import LinearModel
from cfgd.objectives.base import Objective
from cfgd.objectives.linear.huber_scale import HuberScale

LOSSES = ("squared", "huber", "poisson", "gamma")
MEANS = {"poisson": np.exp, "gamma": np.exp}


class CaputoRegressor(RegressorMixin, BaseEstimator):
    """sum_i s_i loss(x_i w + b, y_i) + l2 |w|^2 / 2, minimised by a method of cfgd.

    `loss` is "squared", "huber" (with `epsilon`, and a scale that is estimated as `HuberRegressor`
    does), "poisson" or "gamma" (means exp(xw + b)). `method` is "auto", "adaptive_terminal" (with
    `alpha`, `gamma` and `lag`), "gradient_descent" or any method of cfgd. The same as
    `LinearRegression` (l2=0), `Ridge(alpha=l2)`, `HuberRegressor(alpha=l2 / 2)`,
    `PoissonRegressor(alpha=l2 / n)` and `GammaRegressor(alpha=l2 / n)` for n samples.

    >>> import numpy as np
    >>> from cfgd.integrations.sklearn import CaputoRegressor
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([3.0, 5.0, 7.0])
    >>> model = CaputoRegressor().fit(X, y)
    >>> print(model.coef_.round(6), round(model.intercept_, 6), model.predict([[4.0]]).round(6))
    [2.] 1.0 [9.]
    """

    def __init__(
        self,
        loss: str = "squared",
        *,
        l2: Any = 0.0,
        epsilon: float = 1.35,
        fit_intercept: bool = True,
        method: Any = "auto",
        alpha: float = 0.5,
        gamma: float = -0.25,
        lag: int = 1,
        max_iter: int = 10_000,
        tol: float = 1e-8,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.l2 = l2
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.method = method
        self.alpha = alpha
        self.gamma = gamma
        self.lag = lag
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CaputoRegressor:
        owner = type(self).__name__
        if self.loss not in LOSSES:
            checks.fail(owner, "loss", f"be one of {', '.join(LOSSES)}", repr(self.loss))
        method = method_of(owner, self.method, self.alpha, self.gamma, self.lag)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], y_numeric=True
        )
        weight = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
        y = y.astype(X.dtype, copy=False)
        compiles = not is_auto(method) or self.loss == "huber"
        f = self._objective(*padded(X, y, weight, compiles))
        ends = solved(owner, f, self._start(X), method, self.max_iter, self.tol, self.verbose)
        self._take(ends.x, X.shape[1])
        self.n_iter_ = max(1, int(ends.iterations))
        self.loss_curve_ = ends.history["value"]
        self.status_ = ends.status.name
        return self

    def _objective(self, X: Any, y: np.ndarray, weight: np.ndarray) -> Objective:
        if self.loss == "huber":
            return HuberScale(X, y, self.epsilon, self.l2, weight, intercept=self.fit_intercept)
        return LinearModel(X, y, self.loss, self.l2, weight, intercept=self.fit_intercept)

    def _start(self, X: Any) -> np.ndarray:
        """Zeros, or where the last fit ended."""
        d = X.shape[1]
        last = [np.zeros(d), np.zeros(int(self.fit_intercept)), np.zeros(int(self.loss == "huber"))]
        if self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (d,):
            last[0] = self.coef_
            last[1] = np.atleast_1d(self.intercept_)[: int(self.fit_intercept)]
            if self.loss == "huber":
                last[2] = np.log([getattr(self, "scale_", 1.0)])
        return np.concatenate(last).astype(X.dtype)

    def _take(self, x: np.ndarray, d: int) -> None:
        self.coef_ = x[:d]
        self.intercept_ = float(x[d]) if self.fit_intercept else 0.0
        if self.loss == "huber":
            self.scale_ = float(np.exp(x[-1]))

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores = X @ self.coef_ + self.intercept_
        return MEANS[self.loss](scores) if self.loss in MEANS else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
