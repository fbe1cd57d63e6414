"""Linear models on scikit-learn's data sets: time to 1e-8 of the gradient norm at zero.

All solvers minimise sum_i loss(x_i'w, y_i) + |w|^2 / 2. The intercept is a column of ones in X with
the same penalty, and scikit-learn runs without an intercept. The time of cfgd includes the
construction of the objective, and that of scikit-learn the validation of the data. The solvers of
scikit-learn run with the loosest tolerance that reaches the target.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import cfgd
from cfgd.apps.bench.field.cases import TARGET
from cfgd.apps.bench.field.instance import AUTO, Instance, ShowStatus, SolverRun
from cfgd.apps.bench.field.timing import time_shortest

L2 = 1.0
MAX_ITERATIONS = 2000  # limit of the solvers of scikit-learn
TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(33))
FORMS = ("raw", "standardised")


class Dataset(NamedTuple):
    X: Any
    y: Any
    loss: str


def instances(quick: bool) -> Iterator[Instance]:
    """Yield the instances; `quick` skips the digits, the largest data set."""
    importlib.import_module("sklearn.linear_model")  # threadpoolctl limits loaded libraries only
    for name in DATASETS:
        if not (quick and name == "digits"):
            for form in FORMS:
                yield Instance("glm", f"{name}, {form}", 0, partial(run_solvers, name, form))


def load_bundled(name: str, form: str, **options: Any) -> tuple[Any, Any]:
    """Return X and y of a data set of scikit-learn, raw or standardised."""
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True, **options)
    if form == "standardised":
        deviation = X.std(0)
        X = (X - X.mean(0)) / np.where(deviation > 0, deviation, 1)
    return X, y


def _two_classes(name: str, is_positive: Callable[[Any], Any], form: str) -> Dataset:
    X, y = load_bundled(name, form)
    return Dataset(X, is_positive(y).astype(float), "logistic")


def _diabetes(form: str) -> Dataset:
    return Dataset(*load_bundled("diabetes", form, scaled=False), "poisson")


DATASETS: dict[str, Callable[[str], Dataset]] = {
    "cancer": partial(_two_classes, "breast_cancer", lambda y: y == 1),
    "digits": partial(_two_classes, "digits", lambda y: y >= 5),
    "wine": partial(_two_classes, "wine", lambda y: y == 0),
    "diabetes": _diabetes,  # disease progression, from 25 to 346, treated as a count
}


@functools.cache
def load(name: str, form: str) -> Dataset:
    """Return a data set with a column of ones, cached."""
    X, y, loss = DATASETS[name](form)
    return Dataset(np.column_stack([X, np.ones(len(X))]), y, loss)


def fit_scikit_learn(data: Dataset, solver: str, tolerance: float) -> Any:
    """Return the weights of a solver of scikit-learn, for the same objective up to a factor."""
    from sklearn.linear_model import LogisticRegression, PoissonRegressor

    common = {
        "solver": solver,
        "tol": tolerance,
        "max_iter": MAX_ITERATIONS,
        "fit_intercept": False,
    }
    if data.loss == "logistic":
        estimator = LogisticRegression(C=1 / L2, **common)
    else:
        estimator = PoissonRegressor(alpha=L2 / len(data.y), **common)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about convergence: the gradient is checked instead
        return np.ravel(estimator.fit(data.X, data.y).coef_)


def scikit_learn_solvers(data: Dataset) -> tuple[str, ...]:
    newton_cg = ("newton-cg",) if data.loss == "logistic" else ()
    return ("lbfgs", *newton_cg, "newton-cholesky")


def loosest_tolerance(meets: Callable[[float], bool]) -> float | None:
    """Return the loosest tolerance that meets the target, by bisection.

    None if the tightest one does not meet it.
    """
    low, high = 0, len(TOLERANCES) - 1
    if not meets(TOLERANCES[high]):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(TOLERANCES[middle]) else (middle + 1, high)
    return TOLERANCES[high]


def run_solvers(name: str, form: str, show_status: ShowStatus) -> list[SolverRun]:
    data, problem = load(name, form), f"{name}, {form}"
    objective, zero = linear_model(data), np.zeros(data.X.shape[1])
    target = TARGET * np.linalg.norm(objective.gradient(zero))

    def meets(w: Any) -> bool:
        return bool(np.linalg.norm(objective.gradient(w)) <= target)

    def run(solver: str, w: Any, seconds: float) -> SolverRun:
        return timed_run("glm", problem, solver, seconds, float(objective.value(w)), meets(w))

    show_status(AUTO)
    runs = [run(AUTO, *time_shortest(lambda: cfgd.minimize(linear_model(data), zero).x))]
    for solver in scikit_learn_solvers(data):
        show_status(solver)
        fit = partial(fit_scikit_learn, data, solver)
        tolerance = loosest_tolerance(lambda tolerance, fit=fit: meets(fit(tolerance)))  # type: ignore[misc]
        if tolerance is None:
            runs.append(timed_run("glm", problem, solver))
        else:
            runs.append(run(solver, *time_shortest(partial(fit, tolerance))))
    return runs


def timed_run(
    group: str,
    problem: str,
    solver: str,
    seconds: float = float("inf"),
    value: float = float("inf"),
    solved: bool = False,
) -> SolverRun:
    """Return a run whose work is its time, or infinity if it does not reach the target."""
    spent = seconds if solved else float("inf")
    return SolverRun(problem, group, "seconds", solver, 0, spent, spent, value, solved)


def linear_model(data: Dataset) -> cfgd.LinearModel:
    return cfgd.LinearModel(data.X, data.y, data.loss, l2=L2)
