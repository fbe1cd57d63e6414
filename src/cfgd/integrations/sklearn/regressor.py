"""Linear regression with several losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from cfgd._core import checks
from cfgd.integrations.sklearn.base import (
    DTYPES,
    NEWTON,
    LinearEstimator,
    check_sample_weight,
    is_auto,
    pad_samples,
)
from cfgd.integrations.sklearn.statistics import statistics_of_huber, statistics_of_model
from cfgd.methods.base import Method
from cfgd.objectives import LinearModel
from cfgd.objectives.linear.dask_rows import is_dask
from cfgd.objectives.linear.huber_scale import HuberScale

LOSSES = ("squared", "huber", "poisson", "gamma")
# means of the losses with a logarithmic link
INVERSE_LINKS = {"poisson": np.exp, "gamma": np.exp}


class CaputoRegressor(RegressorMixin, LinearEstimator):
    """Linear model that minimises sum_i s_i loss(x_i w + b, y_i) + l2 |w|^2 / 2.

    For n samples it is the same model as `LinearRegression` (l2=0), `Ridge(alpha=l2)`,
    `HuberRegressor(alpha=l2 / 2)`, `PoissonRegressor(alpha=l2 / n)` and
    `GammaRegressor(alpha=l2 / n)`.

    Parameters
    ----------
    loss : {"squared", "huber", "poisson", "gamma"}, default "squared"
        "huber" also estimates a scale, as `HuberRegressor` does. "poisson" and "gamma" have the
        mean exp(xw + b).
    l2 : float or array, default 0.0
        Penalty of the coefficients, not of the intercept.
    epsilon : float, default 1.35
        Number of scales beyond which the Huber loss is linear.
    fit_intercept : bool, default True
        Whether to fit b.
    positive : bool, default False
        Whether the coefficients must not be negative, as in `LinearRegression`.
    method : {"auto", "adaptive_terminal", "gradient_descent"} or a method of cfgd, default "auto"
        The method that minimises the loss.
    alpha, gamma, lag : float, float, int
        Settings of "adaptive_terminal", as in `cfgd.AdaptiveTerminal`.
    max_iter : int, default 10000
        Maximum number of iterations.
    tol : float or None, optional
        Relative tolerance of the gradient; None means 1e-8 for float64 data and 1e-4 for float32.
    warm_start : bool, default False
        Whether to start at the coefficients of the last fit instead of zero.
    verbose : int, default 0
        Whether to print progress.

    Attributes
    ----------
    coef_, intercept_
        w and b.
    scale_ : float
        The scale of the residuals, for "huber".
    n_iter_, loss_curve_, status_, solution_
        Iterations, the values of the objective, the name of the final status, and all of it.
    standard_errors_, intercept_standard_error_
        Standard errors, in the shapes of `coef_` and `intercept_`; see `summary`.

    Examples
    --------
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
        positive: bool = False,
        method: str | Method = "auto",
        alpha: float = 0.5,
        gamma: float = -0.25,
        lag: int = 1,
        max_iter: int = 10_000,
        tol: float | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            l2=l2,
            fit_intercept=fit_intercept,
            positive=positive,
            warm_start=warm_start,
            method=method,
            alpha=alpha,
            gamma=gamma,
            lag=lag,
            max_iter=max_iter,
            tol=tol,
            verbose=verbose,
        )
        self.loss = loss
        self.epsilon = epsilon

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CaputoRegressor:
        """Fit the model to samples X, targets y and optional weights s.

        Dask arrays and data frames are fitted by passes over their blocks, on the cluster of the
        current client if there is one. They need `method="auto"` and another loss than "huber".

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or Dask array or data frame
            The samples.
        y : array of shape (n,)
            The targets: not negative for "poisson", positive for "gamma".
        sample_weight : array of shape (n,), optional
            The weight of each sample in the sum of losses, at least 0; 1 if it is left out.

        Returns
        -------
        CaputoRegressor
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If X or y has NaN or infinity, their shapes do not agree, y is outside of the domain of
            the loss, a weight is negative or all are 0, or a parameter of the estimator is invalid.
        """
        if self.loss not in LOSSES:
            wanted = f"be one of {', '.join(LOSSES)}"
            checks.fail(type(self).__name__, "loss", wanted, repr(self.loss))
        if self.loss == "huber":
            wanted = "be a number of at least 1"
            checks.number(type(self).__name__, "epsilon", self.epsilon, wanted, lambda v: v >= 1)
        self._check_parameters()
        method = self._make_method()
        if is_dask(X):
            return self._fit_dask(X, y, sample_weight, method)
        if self.method == "auto" and self.loss == "squared":
            # a Newton step solves the normal equations at once, as LinearRegression and Ridge do
            method = NEWTON
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=DTYPES, y_numeric=True)
        weight = check_sample_weight(sample_weight, X)
        y = y.astype(X.dtype, copy=False)
        x0, d = self._initial_point(X), X.shape[1]
        if not is_auto(method) or self.loss == "huber":
            X, y, weight = pad_samples(X, y, weight)
        f = self._make_objective(X, y, weight)
        solution = self._minimize(f, x0, method, bounds=self._bounds(x0, d))
        self._set_coefficients(solution.x, d)
        self._record_fit(solution)
        names, title = self._feature_names(d), f"{self.loss} loss"
        if isinstance(f, HuberScale):
            self._statistics = statistics_of_huber(f, solution, names, title=title)
        else:
            self._statistics = statistics_of_model(f, solution, names, title=title)
        return self

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, method: Method) -> CaputoRegressor:
        """Fit the model to Dask data."""
        from cfgd.integrations.sklearn.dask_data import statistics_of_blocks

        if self.loss == "huber":
            wanted = "be squared, poisson or gamma for Dask data"
            checks.fail(type(self).__name__, "loss", wanted, repr(self.loss))
        f, rows = self._dask_objective(X, y, sample_weight, self.loss, method)
        d = rows.shape[1]
        if self.method == "auto" and self.loss == "squared" and f.stream.model.has_matrix:
            method = NEWTON
        x0 = self._initial_point(rows)
        solution = self._minimize(f, x0, method, bounds=self._bounds(x0, d))
        self._set_coefficients(solution.x, d)
        self._record_fit(solution)
        names, title = self._feature_names(d), f"{self.loss} loss"
        self._statistics = statistics_of_blocks(f, solution, names, title=title)
        return self

    def _make_objective(
        self, X: Any, y: np.ndarray, weight: np.ndarray
    ) -> HuberScale | LinearModel:
        if self.loss == "huber":
            return HuberScale(X, y, self.epsilon, self.l2, weight, intercept=self.fit_intercept)
        return LinearModel(X, y, self.loss, self.l2, weight, intercept=self.fit_intercept)

    def _initial_point(self, X: Any) -> np.ndarray:
        """Return zeros, or with `warm_start` the coefficients of the last fit."""
        d, has_scale = X.shape[1], self.loss == "huber"
        coef, intercept, log_scale = np.zeros(d), np.zeros(1), np.zeros(1)
        if self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (d,):
            coef, intercept = self.coef_, np.atleast_1d(self.intercept_)
            log_scale = np.log([getattr(self, "scale_", 1.0)])
        parts = coef, intercept[: int(self.fit_intercept)], log_scale[: int(has_scale)]
        return np.concatenate(parts).astype(X.dtype)

    def _set_coefficients(self, x: np.ndarray, d: int) -> None:
        self.coef_ = x[:d]
        self.intercept_ = float(x[d]) if self.fit_intercept else 0.0
        if self.loss == "huber":
            self.scale_ = float(np.exp(x[-1]))

    def predict(self, X: Any) -> Any:
        """Return the predicted means of the samples, of Dask data as a Dask array.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or Dask array or data frame
            The samples.

        Returns
        -------
        array of shape (n,)
            xw + b for "squared" and "huber", exp(xw + b) for "poisson" and "gamma".
        """
        if is_dask(X):
            return self._predict_dask("predict", X)
        linear = self._validate_new(X) @ self.coef_ + self.intercept_
        return INVERSE_LINKS[self.loss](linear) if self.loss in INVERSE_LINKS else linear
