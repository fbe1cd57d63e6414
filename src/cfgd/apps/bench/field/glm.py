"""Linear models on scikit-learn's bundled data: seconds to a gradient of 1e-8 of that at zero.

Everyone solves sum_i loss(x_i'w, y_i) + |w|^2 / 2. The intercept is a column of ones in X, whose
weight has its part in the penalty, and scikit-learn is told to add none. Our time has making the
objective in it, as its time has checking the data. A solver of scikit-learn has the loosest
tolerance that leads to the gradient.
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
from cfgd.apps.bench.field.clock import timed
from cfgd.apps.bench.field.instance import Instance, Say
from cfgd.apps.bench.field.standing import OURS, Run

L2 = 1.0
MOST = 2000  # iterations
TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(33))
FORMS = ("raw", "standardised")


class Set(NamedTuple):
    X: Any  # with a column of ones
    y: Any
    loss: str


def instances(quick: bool) -> Iterator[Instance]:
    """`quick` leaves out the digits, the largest of them."""
    importlib.import_module("sklearn.linear_model")  # threads can be limited once they are there
    for name in SETS:
        if not (quick and name == "digits"):
            for form in FORMS:
                yield Instance("glm", f"{name}, {form}", 0, partial(measured, name, form))


def _two(name: str, is_one: Callable[[Any], Any]) -> tuple[Any, Any, str]:
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return X, is_one(y).astype(float), "logistic"


def _diabetes() -> tuple[Any, Any, str]:
    import sklearn.datasets

    X, y = sklearn.datasets.load_diabetes(return_X_y=True, scaled=False)
    return X, y, "poisson"


SETS: dict[str, Callable[[], tuple[Any, Any, str]]] = {
    "cancer": partial(_two, "breast_cancer", lambda y: y == 1),
    "digits": partial(_two, "digits", lambda y: y >= 5),
    "wine": partial(_two, "wine", lambda y: y == 0),
    "diabetes": _diabetes,  # a measure of disease from 25 to 346, as if it were a count
}


@functools.cache
def read(name: str, form: str) -> Set:
    X, y, loss = SETS[name]()
    if form == "standardised":
        spread = X.std(0)
        X = (X - X.mean(0)) / np.where(spread > 0, spread, 1)
    return Set(np.column_stack([X, np.ones(len(X))]), y, loss)


def fitted(given: Set, solver: str, tolerance: float) -> Any:
    """The weights by a solver of scikit-learn, its objective scaled to be ours."""
    from sklearn.linear_model import LogisticRegression, PoissonRegressor

    common = {"solver": solver, "tol": tolerance, "max_iter": MOST, "fit_intercept": False}
    if given.loss == "logistic":
        tool = LogisticRegression(C=1 / L2, **common)
    else:
        tool = PoissonRegressor(alpha=L2 / len(given.y), **common)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of not converging: the gradient is looked at
        return np.ravel(tool.fit(given.X, given.y).coef_)


def solvers(given: Set) -> tuple[str, ...]:
    newton_cg = ("newton-cg",) if given.loss == "logistic" else ()
    return ("lbfgs", *newton_cg, "newton-cholesky")


def loosest(meets: Callable[[float], bool]) -> float | None:
    """By halving: the loosest tolerance that meets the target, if the tightest does."""
    low, high = 0, len(TOLERANCES) - 1
    if not meets(TOLERANCES[high]):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(TOLERANCES[middle]) else (middle + 1, high)
    return TOLERANCES[high]


def measured(name: str, form: str, say: Say) -> list[Run]:
    given, problem = read(name, form), f"{name}, {form}"
    objective, zero = model(given), np.zeros(given.X.shape[1])
    target = TARGET * np.linalg.norm(objective.gradient(zero))

    def meets(w: Any) -> bool:
        return bool(np.linalg.norm(objective.gradient(w)) <= target)

    def run(solver: str, w: Any, seconds: float) -> Run:
        met = meets(w)
        spent = seconds if met else float("inf")
        value = float(objective.value(w))
        return Run(problem, "glm", "seconds", solver, 0, spent, spent, value, met)

    say(OURS)
    w, seconds = timed(lambda: cfgd.minimize(model(given), zero).x)
    found = [run(OURS, w, seconds)]
    for solver in solvers(given):
        say(solver)
        tolerance = loosest(lambda tol, by=solver: meets(fitted(given, by, tol)))  # type: ignore[misc]
        if tolerance is None:
            never = float("inf")
            found.append(Run(problem, "glm", "seconds", solver, 0, never, never, never, False))
        else:
            found.append(run(solver, *timed(partial(fitted, given, solver, tolerance))))
    return found


def model(given: Set) -> cfgd.LinearModel:
    return cfgd.LinearModel(given.X, given.y, given.loss, l2=L2)
