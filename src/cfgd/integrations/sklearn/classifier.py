"""Logistic regression of two classes and of more."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from cfgd.integrations.sklearn.fitting import is_auto, method_of, padded, solved
from cfgd.objectives import LinearModel


class CaputoClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression, multinomial for more than two classes, by a method of cfgd.

    The same as `LogisticRegression(C=1 / l2)`; settings of the method as in `CaputoRegressor`.

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
        class_weight: Any = None,
        method: Any = "auto",
        alpha: float = 0.5,
        gamma: float = -0.25,
        lag: int = 1,
        max_iter: int = 10_000,
        tol: float = 1e-8,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.method = method
        self.alpha = alpha
        self.gamma = gamma
        self.lag = lag
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CaputoClassifier:
        owner = type(self).__name__
        method = method_of(owner, self.method, self.alpha, self.gamma, self.lag)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"`{owner}.fit(y=...)` must name at least two classes, got one class: "
                f"{self.classes_[0]}."
            )
        if self.class_weight is not None:
            by_class = compute_class_weight(
                self.class_weight, classes=self.classes_, y=y, sample_weight=sample_weight
            )
            weight = weight * by_class[labels]
        loss = "logistic" if len(self.classes_) == 2 else "multinomial"
        rows = padded(X, labels, weight, not is_auto(method))
        f = LinearModel(*rows[:2], loss, self.l2, rows[2], intercept=self.fit_intercept)
        start = self._start(f.shape).astype(X.dtype)
        ends = solved(owner, f, start, method, self.max_iter, self.tol, self.verbose)
        self._take(ends.x.reshape(f.shape[0], -1).T, X.shape[1])
        self.n_iter_ = max(1, int(ends.iterations))
        self.loss_curve_ = ends.history["value"]
        self.status_ = ends.status.name
        return self

    def _start(self, shape: tuple[int, ...]) -> np.ndarray:
        """Zeros, or where the last fit ended."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return np.zeros(shape)
        parts = [self.coef_, self.intercept_[:, None]] if self.fit_intercept else [self.coef_]
        last = np.concatenate(parts, 1).T
        return last.reshape(shape) if last.size == np.prod(shape) else np.zeros(shape)

    def _take(self, rows: np.ndarray, d: int) -> None:
        self.coef_ = np.ascontiguousarray(rows[:, :d])
        self.intercept_ = rows[:, d].copy() if self.fit_intercept else np.zeros(len(rows))
        if len(rows) > 1:  # what is common to all classes changes nothing
            self.intercept_ -= self.intercept_.mean()

    def decision_function(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores = X @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray:
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
