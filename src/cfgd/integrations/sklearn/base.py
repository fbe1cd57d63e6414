"""Base classes of the estimators: the method, the solve, and the attributes of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from cfgd._core import checks
from cfgd.integrations.sklearn.statistics import FitStatistics
from cfgd.methods import AdaptiveTerminal, Auto, GradientDescent
from cfgd.methods.base import Method
from cfgd.objectives import Blocks
from cfgd.objectives.base import Objective
from cfgd.objectives.linear.coefficient_table import CoefficientTable
from cfgd.solve import Solution, minimize
from cfgd.status import Status

METHODS = ("auto", "adaptive_terminal", "gradient_descent")
DTYPES = [np.float64, np.float32]
# Made once: for small data a method takes as long to make as an iteration.
AUTO, NEWTON = Auto(), Auto("levenberg_marquardt")
# Padded row counts are multiples of 1/8 of the power of two below them: at most an eighth of the
# rows is padding, and between two powers of two there are eight compiled programs.
SIZES_PER_OCTAVE = 8
AT_LEAST_0 = "be a number of at least 0"


class CaputoEstimator(BaseEstimator):
    """Base of all estimators: minimise with `max_iter`, `tol` and `verbose`, and record the fit."""

    max_iter: int
    tol: float | None
    verbose: int

    def _minimize(
        self,
        objective: Objective,
        x0: Any,
        method: Method,
        target_value: float | None = None,
        bounds: Any = None,
    ) -> Solution:
        """Return the solution; a value of at most `target_value` ends the run too."""
        name = type(self).__name__  # the names of parameters here, not those of `minimize`
        checks.integer(name, "max_iter", self.max_iter)
        if self.tol is not None:
            checks.number(name, "tol", self.tol, AT_LEAST_0, lambda v: v >= 0)
        return minimize(
            objective,
            x0,
            method,
            bounds=bounds,
            max_iterations=self.max_iter,
            tolerance=self.tol,
            progress=bool(self.verbose),
            callback=None if target_value is None else lambda run: run.value <= target_value,
        )

    def _record_fit(self, solution: Solution) -> None:
        """Set the attributes of a fit, and warn if the run did not converge."""
        if not solution.success and solution.status is not Status.callback:
            message = solution.message.replace("`max_iterations`", "`max_iter`")
            message = message.replace("`tolerance`", "`tol`")
            checks.warn(f"{type(self).__name__}: {message}", ConvergenceWarning)
        self.n_iter_ = max(1, int(solution.iterations))
        self.loss_curve_ = solution.history["value"]
        self.status_ = solution.status.name
        self.solution_ = solution

    def _validate_new(self, X: Any) -> Any:
        """Return the validated samples of a prediction."""
        check_is_fitted(self)
        sparse = "csr" if get_tags(self).input_tags.sparse else False
        return validate_data(self, X, accept_sparse=sparse, dtype=DTYPES, reset=False)


class MethodEstimator(CaputoEstimator):
    """Base of the estimators whose method is a parameter."""

    def __init__(
        self,
        *,
        method: str | Method,
        alpha: float,
        gamma: float,
        lag: int,
        max_iter: int,
        tol: float | None,
        verbose: int,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.gamma = gamma
        self.lag = lag
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _make_method(self) -> Method:
        """Return the method by its name, with `alpha`, `gamma` and `lag`, or the given method."""
        if isinstance(self.method, Method):
            return self.method
        if self.method == "auto":
            return AUTO
        if self.method == "adaptive_terminal":
            return AdaptiveTerminal(self.alpha, gamma=self.gamma, lag=self.lag)
        if self.method == "gradient_descent":
            return GradientDescent()
        wanted = f"be one of {', '.join(METHODS)} or a method of cfgd"
        checks.fail(type(self).__name__, "method", wanted, repr(self.method))


class LinearEstimator(MethodEstimator):
    """Base of the linear models, which take dense and sparse X."""

    _statistics: FitStatistics

    def __init__(
        self,
        *,
        l2: Any,
        fit_intercept: bool,
        positive: bool,
        warm_start: bool,
        method: str | Method,
        alpha: float,
        gamma: float,
        lag: int,
        max_iter: int,
        tol: float | None,
        verbose: int,
    ) -> None:
        super().__init__(
            method=method,
            alpha=alpha,
            gamma=gamma,
            lag=lag,
            max_iter=max_iter,
            tol=tol,
            verbose=verbose,
        )
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        """Refuse what the objective would refuse under another name, or take for a truth value."""
        name = type(self).__name__
        checks.number(name, "l2", self.l2, AT_LEAST_0, lambda v: v >= 0)
        for field in ("fit_intercept", "positive", "warm_start"):
            checks.flag(name, field, getattr(self, field))

    def _dask_objective(
        self, X: Any, y: Any, sample_weight: Any, loss: str, method: Method
    ) -> tuple[Blocks, np.ndarray]:
        """Return the objective of Dask data, and an array without rows that has its columns."""
        from cfgd.integrations.sklearn.dask_data import (
            blocks_of,
            check_columns,
            dask_vector,
            weight_vector,
        )

        name = type(self).__name__
        if not is_auto(method):
            checks.fail(name, "method", "be 'auto' for Dask data", repr(self.method))
        rows = check_columns(self, X, reset=True)
        owner = f"{name}.fit"
        y = dask_vector(owner, "y", y, X)
        f = blocks_of(
            owner,
            X,
            y,
            loss,
            l2=self.l2,
            sample_weight=weight_vector(owner, sample_weight, y, X),
            intercept=self.fit_intercept,
        )
        return f, rows

    def _predict_dask(self, method: str, X: Any) -> Any:
        """Return the predictions of a method for Dask data, block by block."""
        from cfgd.integrations.sklearn.dask_data import predict_blocks

        return predict_blocks(self, method, X)

    def _bounds(self, x0: np.ndarray, d: int) -> Any:
        """Return the bounds of coefficients that must be positive: the first d rows of x0."""
        if not self.positive:
            return None
        lower = np.full(x0.shape, -np.inf)
        lower[:d] = 0
        return lower, np.inf

    @property
    def standard_errors_(self) -> np.ndarray:
        """The standard errors of `coef_`, in its shape; see `summary`."""
        return self._by_coefficient(0)

    @property
    def intercept_standard_error_(self) -> Any:
        """The standard errors of `intercept_`, in its shape; 0 without an intercept."""
        return self._by_coefficient(1)

    def _by_coefficient(self, part: int) -> Any:
        check_is_fitted(self)
        errors = self._statistics.errors()
        if not self.fit_intercept:
            errors = np.concatenate([errors, np.zeros_like(errors[:1])])
        chosen = errors[:-1] if part == 0 else errors[-1]
        if np.ndim(self.intercept_) == 0:
            return chosen if part == 0 else float(chosen)
        return chosen.reshape(-1, len(self.intercept_)).T.reshape(
            np.shape(self.intercept_) if part else np.shape(self.coef_)
        )

    def summary(self) -> CoefficientTable:
        """Return a table of the coefficients, printed like that of statsmodels.

        It has estimates, standard errors, t or z, p-values and 95 % intervals, and where they exist
        R squared, log-likelihood, AIC and BIC. The losses whose dispersion is estimated ("squared",
        "gamma" and "huber") use Student's t with the degrees of freedom of the residuals, the
        others the normal distribution. "gamma" has Pearson's estimate of the dispersion, "huber"
        the sandwich errors that statsmodels' RLM calls H1. With a penalty the standard errors
        describe the variability of the shrunken coefficients and not the bias of the shrinkage, so
        there are no p-values and no intervals. Coefficients at a bound have no errors. Collinear
        columns are named below the table.

        Returns
        -------
        CoefficientTable
            The table; `print` shows it.

        Raises
        ------
        NotFittedError
            If the estimator has not been fitted.
        """
        check_is_fitted(self)
        return self._statistics.table(self.solution_)

    def _feature_names(self, d: int) -> tuple[str, ...]:
        """Return the names of the columns: x0, x1, ... where X had none."""
        names = getattr(self, "feature_names_in_", None)
        return tuple(f"x{j}" for j in range(d)) if names is None else tuple(map(str, names))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def is_auto(method: Method) -> bool:
    """Return whether the method runs on the host, so that no program is compiled for a size."""
    return isinstance(method, Auto)


def check_sample_weight(sample_weight: Any, X: Any) -> np.ndarray:
    """Return the weights of the rows of X in its dtype, with scikit-learn's rules and messages.

    Parameters
    ----------
    sample_weight : None, a number, or an array-like of shape (n,)
        None means 1 for every row, a number the same for every row.
    X
        The checked data, with n rows.

    Raises
    ------
    ValueError
        If there is not one finite number for each row, one is negative, or all are zero.
    """
    n = X.shape[0]
    if sample_weight is None or np.isscalar(sample_weight):
        weight = np.full(n, 1.0 if sample_weight is None else sample_weight, X.dtype)
    else:
        weight = check_array(
            sample_weight, ensure_2d=False, dtype=X.dtype, order="C", input_name="sample_weight"
        )
    if weight.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {weight.ndim}D array. "
            f"Expected either a scalar value or a 1D array of length {n}."
        )
    if weight.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n,)}!")
    if np.all(weight == 0):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    if np.any(weight < 0):
        raise ValueError("Negative values in data passed to `sample_weight`.")
    return weight


def pad_rows(array: Any, mode: Any = "constant") -> np.ndarray:
    """Append rows, so that cross-validation folds of similar sizes share one compiled program.

    The rows are zeros, or copies of the last one with `mode="edge"`. They must not change the
    objective: rows of weight zero, or rows whose residual is zero for all coefficients.
    """
    m = len(array)
    multiple = max(1, 2 ** int(np.log2(m)) // SIZES_PER_OCTAVE)
    return np.pad(array, [(0, -m % multiple), *[(0, 0)] * (array.ndim - 1)], mode)


def pad_samples(X: Any, y: np.ndarray, weight: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Append samples of weight zero to a dense X with `pad_rows`.

    A sparse X stays as it is: its program depends on the number of its entries. The added targets
    repeat the last one, because not every loss allows a target of zero.
    """
    if not isinstance(X, np.ndarray):
        return X, y, weight
    return pad_rows(X), pad_rows(y, "edge"), pad_rows(weight)
