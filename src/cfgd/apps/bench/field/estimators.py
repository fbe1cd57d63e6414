"""The estimators: over the core that they call, and beside scikit-learn's at an equal gradient.

Over the core: the same fit by hand, from the same arrays. Beside scikit-learn: seconds to a
gradient of 1e-8 of that at zero, intercept and all, as users call both. A solver of scikit-learn
has the loosest tolerance that leads there; which of its solvers is the best, the table shows.
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
from cfgd.apps.bench.field.clock import timed, timed_together
from cfgd.apps.bench.field.glm import MOST, loosest
from cfgd.apps.bench.field.instance import Instance, Say
from cfgd.apps.bench.field.standing import OURS, Run

GROUP = "estimators"
CORE = "the core, by hand"
L2 = 1.0
ROWS, COLUMNS = 10_000, 100
MANY = 1_000_000, 50
SOLVERS = {
    "squared": ("cholesky", "svd", "lsqr"),
    "logistic": ("lbfgs", "newton-cg", "newton-cholesky"),
    "multinomial": ("lbfgs", "newton-cg", "newton-cholesky"),
}


def instances(quick: bool) -> Iterator[Instance]:
    """`quick` leaves out the digits and the million rows."""
    importlib.import_module("sklearn.linear_model")  # threads can be limited once they are there
    for name in BY_HAND:
        yield Instance(GROUP, name, 0, partial(over_the_core, name))
    for name in SETS:
        if not (quick and name in ("digits", "1,000,000 x 50")):
            yield Instance(GROUP, f"fit: {name}", 0, partial(beside_scikit_learn, name))


# ---------------------------------------------------------------------- over the core


class Pair(NamedTuple):
    """A fit by an estimator, and what it is of the core."""

    fitted: Callable[[], Any]
    by_hand: Callable[[], cfgd.Solution]


def made_up(rows: int, columns: int, classes: bool) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, columns))
    X *= np.geomspace(0.1, 1, columns)
    y = X @ random.normal(size=columns) + random.normal(size=rows)
    return X, (y > 0).astype(float) if classes else y


def _regressor() -> Pair:
    from cfgd.integrations.sklearn import CaputoRegressor

    X, y = made_up(ROWS, COLUMNS, False)

    def by_hand() -> cfgd.Solution:
        f = cfgd.LinearModel(X, y, "squared", L2, intercept=True)
        return cfgd.minimize(f, np.zeros(COLUMNS + 1), cfgd.Auto("tikhonov"))

    return Pair(lambda: CaputoRegressor(l2=L2).fit(X, y), by_hand)


def _classifier() -> Pair:
    from cfgd.integrations.sklearn import CaputoClassifier

    X, y = made_up(ROWS, COLUMNS, True)

    def by_hand() -> cfgd.Solution:
        f = cfgd.LinearModel(X, y, "logistic", L2, intercept=True)
        return cfgd.minimize(f, np.zeros(COLUMNS + 1))

    return Pair(lambda: CaputoClassifier(l2=L2).fit(X, y), by_hand)


def _ridge() -> Pair:
    from cfgd.integrations.sklearn import CaputoRidge

    X, y = made_up(ROWS, COLUMNS, False)
    zero = np.zeros(COLUMNS)

    def by_hand() -> cfgd.Solution:
        Z = X - X.mean(0)
        A = Z.T @ Z / ROWS
        size = np.sqrt(A.diagonal())
        f = cfgd.Quadratic(A / size / size[:, None], -((y - y.mean()) @ Z) / ROWS / size)
        return cfgd.minimize(f, zero, cfgd.NonAdaptive(zero, gamma=0.1), max_iterations=100_000)

    return Pair(lambda: CaputoRidge(0.1).fit(X, y), by_hand)


BY_HAND: dict[str, Callable[[], Pair]] = {
    "CaputoRegressor": _regressor,
    "CaputoClassifier": _classifier,
    "CaputoRidge": _ridge,
}


def over_the_core(name: str, say: Say) -> list[Run]:
    say("the estimator and the core in turns")
    pair = BY_HAND[name]()
    (model, ours), (solution, core) = timed_together(pair.fitted, pair.by_hand)

    def run(solver: str, value: Any, seconds: float) -> Run:
        return Run(name, GROUP, "seconds", solver, 0, seconds, seconds, float(value), True)

    return [run(OURS, model.loss_curve_[-1], ours), run(CORE, solution.value, core)]


# ---------------------------------------------------------------------- beside scikit-learn


class Set(NamedTuple):
    X: Any
    y: Any
    loss: str


def _bundled(name: str, loss: str, form: str, **given: Any) -> Set:
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True, **given)
    if form == "standardised":
        X = (X - X.mean(0)) / X.std(0)
    return Set(X, y, loss)


SETS: dict[str, Callable[[], Set]] = {
    "digits": partial(_bundled, "digits", "multinomial", "raw"),
    "cancer, raw": partial(_bundled, "breast_cancer", "logistic", "raw"),
    "cancer, standardised": partial(_bundled, "breast_cancer", "logistic", "standardised"),
    "diabetes": partial(_bundled, "diabetes", "squared", "raw", scaled=False),
    "1,000,000 x 50": lambda: Set(*made_up(*MANY, True), "logistic"),
}


@functools.lru_cache(maxsize=1)
def read(name: str) -> Set:
    return SETS[name]()


def seen(given: Set, W: Any) -> tuple[float, float]:
    """f and the norm of its gradient at coefficients with the intercept below, in NumPy alone."""
    X, y, loss = given
    scores = X @ W[:-1] + W[-1]
    if loss == "squared":
        values, slopes = (scores[:, 0] - y) ** 2 / 2, scores - y[:, None]
    elif loss == "logistic":
        sign = 2 * y - 1
        values = np.logaddexp(0, -sign * scores[:, 0])
        slopes = expit(scores) - y[:, None]
    else:
        own = y[:, None] == np.unique(y)
        values, slopes = logsumexp(scores, axis=1) - scores[own], softmax(scores, axis=1) - own
    gradient = np.concatenate([X.T @ slopes + L2 * W[:-1], slopes.sum(0)[None]])
    return float(values.sum() + L2 * np.sum(W[:-1] ** 2) / 2), float(np.linalg.norm(gradient))


def weights(model: Any) -> Any:
    return np.concatenate([np.atleast_2d(model.coef_), np.reshape(model.intercept_, (-1, 1))], 1).T


def by_cfgd(given: Set) -> Any:
    from cfgd.integrations.sklearn import CaputoClassifier, CaputoRegressor

    kind = CaputoRegressor if given.loss == "squared" else CaputoClassifier
    return kind(l2=L2).fit(given.X, given.y)


def by_scikit_learn(given: Set, solver: str, tolerance: float) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    common = {"solver": solver, "tol": tolerance, "max_iter": MOST}
    tool = (
        Ridge(L2, **common) if given.loss == "squared" else LogisticRegression(C=1 / L2, **common)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of not converging: the gradient is looked at
        return tool.fit(given.X, given.y)


def beside_scikit_learn(name: str, say: Say) -> list[Run]:
    given, problem = read(name), f"fit: {name}"
    say(OURS)
    ours, seconds = timed(partial(by_cfgd, given))
    target = TARGET * seen(given, 0 * weights(ours))[1]

    def run(solver: str, model: Any, seconds: float) -> Run:
        value, norm = seen(given, weights(model))
        spent = seconds if norm <= target else float("inf")
        return Run(problem, GROUP, "seconds", solver, 0, spent, spent, value, norm <= target)

    found = [run(OURS, ours, seconds)]
    for solver in SOLVERS[given.loss]:
        say(solver)
        fit = partial(by_scikit_learn, given, solver)
        tolerance = loosest(lambda tol, fit=fit: seen(given, weights(fit(tol)))[1] <= target)  # type: ignore[misc]
        if tolerance is None:
            never = float("inf")
            found.append(Run(problem, GROUP, "seconds", solver, 0, never, never, never, False))
        else:
            found.append(run(solver, *timed(partial(fit, tolerance))))
    return found
