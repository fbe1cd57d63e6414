"""The scikit-learn estimators of cfgd: their overhead, and their time compared with scikit-learn.

Overhead: time compared with the same fit by `cfgd.minimize`. Compared with scikit-learn: time to
1e-8 of the gradient norm at zero, with an intercept. Each solver of scikit-learn runs with the
loosest tolerance that reaches this target; all of its solvers are shown.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

import cfgd
from cfgd.apps.bench.field.cases import TARGET
from cfgd.apps.bench.field.glm import (
    MAX_ITERATIONS,
    Dataset,
    load_bundled,
    loosest_tolerance,
    timed_run,
)
from cfgd.apps.bench.field.instance import AUTO, Instance, ShowStatus, SolverRun
from cfgd.apps.bench.field.timing import time_shortest, time_shortest_interleaved

GROUP = "estimators"
CORE = "cfgd.minimize"
L2 = 1.0
ROWS, COLUMNS = 10_000, 100  # of the data for the overhead
LARGE_SHAPE = 1_000_000, 50
SOLVERS = {
    "squared": ("cholesky", "svd", "lsqr"),
    "logistic": ("lbfgs", "newton-cg", "newton-cholesky"),
    "multinomial": ("lbfgs", "newton-cg", "newton-cholesky"),
}


def instances(quick: bool) -> Iterator[Instance]:
    """Yield the instances; `quick` skips the digits and the table of 1,000,000 rows."""
    importlib.import_module("sklearn.linear_model")  # threadpoolctl limits loaded libraries only
    for name in ESTIMATORS:
        yield Instance(GROUP, name, 0, partial(run_overhead, name))
    for name in DATASETS:
        if not (quick and name in ("digits", "1,000,000 x 50")):
            yield Instance(GROUP, f"fit: {name}", 0, partial(run_against_scikit_learn, name))


# ---------------------------------------------------------------------- overhead


class FitPair(NamedTuple):
    """The same fit by an estimator and by `cfgd.minimize`."""

    estimator: Callable[[], Any]
    core: Callable[[], cfgd.Solution]


def random_data(rows: int, columns: int, classes: bool) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, columns))
    X *= np.geomspace(0.1, 1, columns)
    y = X @ random.normal(size=columns) + random.normal(size=rows)
    return X, (y > 0).astype(float) if classes else y


def _regressor() -> FitPair:
    from cfgd.integrations.sklearn import CaputoRegressor

    X, y = random_data(ROWS, COLUMNS, False)

    def core() -> cfgd.Solution:
        f = cfgd.LinearModel(X, y, "squared", L2, intercept=True)
        return cfgd.minimize(f, np.zeros(COLUMNS + 1), cfgd.Auto("levenberg_marquardt"))

    return FitPair(lambda: CaputoRegressor(l2=L2).fit(X, y), core)


def _classifier() -> FitPair:
    from cfgd.integrations.sklearn import CaputoClassifier

    X, y = random_data(ROWS, COLUMNS, True)

    def core() -> cfgd.Solution:
        f = cfgd.LinearModel(X, y, "logistic", L2, intercept=True)
        return cfgd.minimize(f, np.zeros(COLUMNS + 1))

    return FitPair(lambda: CaputoClassifier(l2=L2).fit(X, y), core)


def _ridge() -> FitPair:
    from cfgd.integrations.sklearn import CaputoRidge

    X, y = random_data(ROWS, COLUMNS, False)
    zero = np.zeros(COLUMNS)

    def core() -> cfgd.Solution:
        Z = X - X.mean(0)
        A = Z.T @ Z / ROWS
        size = np.sqrt(A.diagonal())
        f = cfgd.Quadratic(A / size / size[:, None], -((y - y.mean()) @ Z) / ROWS / size)
        return cfgd.minimize(f, zero, cfgd.NonAdaptive(zero, gamma=0.1), max_iterations=100_000)

    return FitPair(lambda: CaputoRidge(0.1).fit(X, y), core)


ESTIMATORS: dict[str, Callable[[], FitPair]] = {
    "CaputoRegressor": _regressor,
    "CaputoClassifier": _classifier,
    "CaputoRidge": _ridge,
}


def run_overhead(name: str, show_status: ShowStatus) -> list[SolverRun]:
    """Time the estimator and the same fit by `cfgd.minimize`, in turns."""
    show_status("the estimator and cfgd.minimize in turns")
    (model, seconds), (solution, core_seconds) = time_shortest_interleaved(*ESTIMATORS[name]())
    return [
        timed_run(GROUP, name, AUTO, seconds, float(model.loss_curve_[-1]), True),
        timed_run(GROUP, name, CORE, core_seconds, float(solution.value), True),
    ]


# ---------------------------------------------------------------------- compared with scikit-learn


def _bundled(name: str, loss: str, form: str, **options: Any) -> Dataset:
    return Dataset(*load_bundled(name, form, **options), loss)


DATASETS: dict[str, Callable[[], Dataset]] = {
    "digits": partial(_bundled, "digits", "multinomial", "raw"),
    "cancer, raw": partial(_bundled, "breast_cancer", "logistic", "raw"),
    "cancer, standardised": partial(_bundled, "breast_cancer", "logistic", "standardised"),
    "diabetes": partial(_bundled, "diabetes", "squared", "raw", scaled=False),
    "1,000,000 x 50": lambda: Dataset(*random_data(*LARGE_SHAPE, True), "logistic"),
}


@functools.lru_cache(maxsize=1)
def load(name: str) -> Dataset:
    return DATASETS[name]()


def loss_and_gradient_norm(data: Dataset, W: Any) -> tuple[float, float]:
    """Return the penalised loss and the norm of its gradient at W, by NumPy alone.

    The last row of W is the intercept.
    """
    X, y, loss = data
    scores = X @ W[:-1] + W[-1]
    if loss == "squared":
        values, slopes = (scores[:, 0] - y) ** 2 / 2, scores - y[:, None]
    elif loss == "logistic":
        sign = 2 * y - 1
        values = np.logaddexp(0, -sign * scores[:, 0])
        slopes = expit(scores) - y[:, None]
    else:
        is_class = y[:, None] == np.unique(y)
        values = logsumexp(scores, axis=1) - scores[is_class]
        slopes = softmax(scores, axis=1) - is_class
    gradient = np.concatenate([X.T @ slopes + L2 * W[:-1], slopes.sum(0)[None]])
    return float(values.sum() + L2 * np.sum(W[:-1] ** 2) / 2), float(np.linalg.norm(gradient))


def weights(model: Any) -> Any:
    """Return coefficients and, in the last row, intercepts of a fitted estimator."""
    return np.concatenate([np.atleast_2d(model.coef_), np.reshape(model.intercept_, (-1, 1))], 1).T


def fit_cfgd(data: Dataset) -> Any:
    from cfgd.integrations.sklearn import CaputoClassifier, CaputoRegressor

    kind = CaputoRegressor if data.loss == "squared" else CaputoClassifier
    return kind(l2=L2).fit(data.X, data.y)


def fit_scikit_learn(data: Dataset, solver: str, tolerance: float) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    common = {"solver": solver, "tol": tolerance, "max_iter": MAX_ITERATIONS}
    if data.loss == "squared":
        estimator = Ridge(L2, **common)
    else:
        estimator = LogisticRegression(C=1 / L2, **common)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about convergence: the gradient is checked instead
        return estimator.fit(data.X, data.y)


def run_against_scikit_learn(name: str, show_status: ShowStatus) -> list[SolverRun]:
    """Time the estimator of cfgd and each solver of scikit-learn to the same gradient."""
    data, problem = load(name), f"fit: {name}"
    show_status(AUTO)
    ours, seconds = time_shortest(partial(fit_cfgd, data))
    target = TARGET * loss_and_gradient_norm(data, 0 * weights(ours))[1]

    def meets(model: Any) -> bool:
        return loss_and_gradient_norm(data, weights(model))[1] <= target

    def run(solver: str, model: Any, seconds: float) -> SolverRun:
        value = loss_and_gradient_norm(data, weights(model))[0]
        return timed_run(GROUP, problem, solver, seconds, value, meets(model))

    runs = [run(AUTO, ours, seconds)]
    for solver in SOLVERS[data.loss]:
        show_status(solver)
        fit = partial(fit_scikit_learn, data, solver)
        tolerance = loosest_tolerance(lambda tolerance, fit=fit: meets(fit(tolerance)))  # type: ignore[misc]
        if tolerance is None:
            runs.append(timed_run(GROUP, problem, solver))
        else:
            runs.append(run(solver, *time_shortest(partial(fit, tolerance))))
    return runs
