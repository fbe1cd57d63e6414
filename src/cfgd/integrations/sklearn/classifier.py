"""Logistic regression with two or more classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from cfgd.integrations.sklearn.base import (
    DTYPES,
    LinearEstimator,
    check_sample_weight,
    is_auto,
    pad_samples,
)
from cfgd.integrations.sklearn.class_weights import weights_of_classes
from cfgd.integrations.sklearn.statistics import named_separation, statistics_of_model
from cfgd.methods.base import Method
from cfgd.objectives import LinearModel
from cfgd.objectives.linear.dask_rows import is_dask
from cfgd.status import Status


class CaputoClassifier(ClassifierMixin, LinearEstimator):
    """Logistic regression, multinomial for more than two classes.

    It is the same model as `LogisticRegression(C=1 / l2)`.

    Parameters
    ----------
    l2 : float or array, default 1.0
        Penalty l2 |w|^2 / 2 of the coefficients, not of the intercept.
    class_weight : dict, "balanced" or None, optional
        Weights of the classes, as in `LogisticRegression`.
    fit_intercept, positive, method, alpha, gamma, lag, max_iter, tol, warm_start, verbose
        As in `CaputoRegressor`.

    Attributes
    ----------
    classes_, coef_, intercept_
        As in `LogisticRegression`.
    n_iter_, loss_curve_, status_, solution_
        Iterations, the values of the objective, the name of the final status, and all of it. The
        status "separated" means that the classes are, so that only a penalty gives coefficients.
    standard_errors_, intercept_standard_error_
        Standard errors, in the shapes of `coef_` and `intercept_`; see `summary`.

    Examples
    --------
    >>> import numpy as np
    >>> from cfgd.integrations.sklearn import CaputoClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["no", "no", "yes", "yes"]
    >>> model = CaputoClassifier().fit(X, y)
    >>> print(model.predict([[0.5], [2.5]]), model.predict_proba([[1.5]]).round(3))
    ['no' 'yes'] [[0.5 0.5]]
    """

    def __init__(
        self,
        *,
        l2: Any = 1.0,
        fit_intercept: bool = True,
        positive: bool = False,
        class_weight: Any = None,
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
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CaputoClassifier:
        """Fit the model to samples X, labels y and optional weights.

        Dask arrays and data frames are fitted by passes over their blocks, on the cluster of the
        current client if there is one. They need `method="auto"`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or Dask array or data frame
            The samples.
        y : array of shape (n,)
            The labels of at least two classes: texts, integers or booleans.
        sample_weight : array of shape (n,), optional
            The weight of each sample in the sum of losses, at least 0; 1 if it is left out.

        Returns
        -------
        CaputoClassifier
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If X has NaN or infinity, the shapes of X and y do not agree, y has fewer than two
            classes or is not categorical, a weight is negative or all are 0, `class_weight` does
            not fit the classes, or a parameter of the estimator is invalid.
        """
        self._check_parameters()
        method = self._make_method()
        if is_dask(X):
            return self._fit_dask(X, y, sample_weight, method)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=DTYPES)
        check_classification_targets(y)
        weight = check_sample_weight(sample_weight, X)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"`{type(self).__name__}.fit(y=...)` must name at least two classes, got one "
                f"class: {self.classes_[0]}."
            )
        if self.class_weight is not None:
            by_class = weights_of_classes(self.class_weight, self.classes_, labels, weight)
            weight = weight * by_class[labels]
        dtype, d = X.dtype, X.shape[1]
        if not is_auto(method):
            X, labels, weight = pad_samples(X, labels, weight)
        loss = "logistic" if len(self.classes_) == 2 else "multinomial"
        f = LinearModel(X, labels, loss, self.l2, weight, intercept=self.fit_intercept)
        x0 = self._initial_point(f.shape).astype(dtype)
        bounds = self._bounds(x0, d)
        solution = self._minimize(f, x0, method, bounds=bounds)
        names, classes = self._feature_names(d), tuple(map(str, self.classes_))
        if solution.status is Status.separated:
            solution = named_separation(f, solution, bounds, names, classes)
        self._set_coefficients(solution.x.reshape(f.shape[0], -1).T, d)
        self._record_fit(solution)
        self._statistics = statistics_of_model(
            f, solution, names, classes, title=f"{loss} regression"
        )
        return self

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, method: Method) -> CaputoClassifier:
        """Fit the model to Dask data."""
        from cfgd.integrations.sklearn.dask_data import (
            dask_vector,
            labels_of,
            statistics_of_blocks,
            weight_by_class,
            weight_vector,
        )

        owner = f"{type(self).__name__}.fit"
        found = labels_of(owner, dask_vector(owner, "y", y, X))
        weight = weight_vector(owner, sample_weight, found.indices, X)
        if self.class_weight is not None:
            weight = weight_by_class(self.class_weight, found, weight)
        loss = "logistic" if len(found.classes) == 2 else "multinomial"
        f, rows = self._dask_objective(X, found.indices, weight, loss, method)
        self.classes_, d = found.classes, rows.shape[1]
        x0 = self._initial_point(f.shape)
        bounds = self._bounds(x0, d)
        solution = self._minimize(f, x0, method, bounds=bounds)
        names, classes = self._feature_names(d), tuple(map(str, self.classes_))
        if solution.status is Status.separated:
            solution = named_separation(f, solution, bounds, names, classes)
        self._set_coefficients(solution.x.reshape(f.shape[0], -1).T, d)
        self._record_fit(solution)
        title = f"{loss} regression"
        self._statistics = statistics_of_blocks(f, solution, names, classes, title=title)
        return self

    def _initial_point(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return zeros, or with `warm_start` the coefficients of the last fit."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return np.zeros(shape)
        parts = [self.coef_, self.intercept_[:, None]] if self.fit_intercept else [self.coef_]
        last = np.concatenate(parts, 1).T
        return last.reshape(shape) if last.size == np.prod(shape) else np.zeros(shape)

    def _set_coefficients(self, rows: np.ndarray, d: int) -> None:
        """Set the attributes from one row of coefficients and intercept per class."""
        self.coef_ = np.ascontiguousarray(rows[:, :d])
        self.intercept_ = rows[:, d].copy() if self.fit_intercept else np.zeros(len(rows))
        if len(rows) > 1:  # probabilities do not depend on the mean over the classes
            self.intercept_ -= self.intercept_.mean()

    def decision_function(self, X: Any) -> Any:
        """Return the scores: one per sample for two classes, else one per sample and class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or Dask array or data frame
            The samples.

        Returns
        -------
        array of shape (n,) or (n, classes)
            The log-odds of the second class, or the linear predictors of all classes.
        """
        if is_dask(X):
            return self._predict_dask("decision_function", X)
        scores = self._validate_new(X) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """Return the most probable class of each sample.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or Dask array or data frame
            The samples.

        Returns
        -------
        array of shape (n,)
            Labels among `classes_`.
        """
        if is_dask(X):
            return self._predict_dask("predict", X)
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, one row per sample.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or Dask array or data frame
            The samples.

        Returns
        -------
        array of shape (n, classes)
            The probabilities in the order of `classes_`; each row sums to 1.
        """
        if is_dask(X):
            return self._predict_dask("predict_proba", X)
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or Dask array or data frame
            The samples.

        Returns
        -------
        array of shape (n, classes)
            The logarithms of the probabilities, in the order of `classes_`.
        """
        if is_dask(X):
            return self._predict_dask("predict_log_proba", X)
        return np.log(self.predict_proba(X))
