"""What all estimators share: the method by its name, the solve, and what is said of its end."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cfgd._core import checks
from cfgd.methods import AdaptiveTerminal, Auto, GradientDescent
from cfgd.methods.base import Method
from cfgd.objectives.base import Objective
from cfgd.solve import Solution, minimize
from cfgd.status import Status

METHODS = ("auto", "adaptive_terminal", "gradient_descent")
# steps by which the number of rows of a compiled fit grows, of the power of two below it
SIZES = 8


def method_of(owner: str, given: Any, alpha: float, gamma: float, lag: int) -> Method:
    """A method by its name, with the numbers of an adaptive terminal, or the method itself."""
    if isinstance(given, Method):
        return given
    if given == "auto":
        return Auto()
    if given == "adaptive_terminal":
        return AdaptiveTerminal(alpha, gamma=gamma, lag=lag)
    if given == "gradient_descent":
        return GradientDescent()
    wanted = f"be one of {', '.join(METHODS)} or a method of cfgd"
    checks.fail(owner, "method", wanted, repr(given))


def is_auto(method: Method) -> bool:
    return isinstance(method, Auto)


def solved(
    owner: str,
    objective: Objective,
    x0: Any,
    method: Method,
    max_iter: int,
    tol: float,
    verbose: int,
) -> Solution:
    """The solution, with scikit-learn's warning where it did not converge."""
    return told(owner, minimised(objective, x0, method, max_iter, tol, verbose))


def minimised(
    objective: Objective,
    x0: Any,
    method: Method,
    max_iter: int,
    tol: float,
    verbose: int,
    enough: float | None = None,
) -> Solution:
    """A value of at most `enough` ends the run, too."""
    if is_auto(method) and objective.is_quadratic and objective.has_model:
        method = Auto("tikhonov")  # from Python: other sizes of folds compile nothing
    return minimize(
        objective,
        x0,
        method,
        max_iterations=max_iter,
        tolerance=tol,
        progress=bool(verbose),
        callback=None if enough is None else lambda so_far: so_far.value <= enough,
    )


def told(owner: str, ends: Solution) -> Solution:
    if not ends.success and ends.status is not Status.callback:
        message = ends.message.replace("`max_iterations`", "`max_iter`")
        message = message.replace("`tolerance`", "`tol`")
        checks.warn(f"{owner}: {message}", ConvergenceWarning)
    return ends


def rows_to_add(m: int) -> int:
    """So that the number of rows is one of a few."""
    return -m % max(1, 2 ** int(np.log2(m)) // SIZES)


def padded(X: Any, y: np.ndarray, weight: np.ndarray, compiles: bool) -> tuple[Any, Any, Any]:
    """With rows of weight zero, so that folds of nearly the same size share a compiled program.

    Where nothing compiles they stay as they are, as does a sparse X, whose sizes are its entries.
    """
    more = rows_to_add(len(y))
    if not compiles or not isinstance(X, np.ndarray) or more == 0:
        return X, y, weight
    return (
        np.concatenate([X, np.zeros((more, X.shape[1]), X.dtype)]),
        np.concatenate([y, np.repeat(y[-1:], more, 0)]),
        np.concatenate([weight, np.zeros(more, weight.dtype)]),
    )
