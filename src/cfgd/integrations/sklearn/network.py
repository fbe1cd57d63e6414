"""The paper's network as a regressor."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from cfgd._core import checks
from cfgd.integrations.sklearn.fitting import is_auto, method_of, minimised, rows_to_add, told
from cfgd.objectives import ShallowNetwork


class CaputoNetwork(RegressorMixin, BaseEstimator):
    """The two-layer network of the paper (section 4.3), of standardised inputs and targets.

    `width` units with an `activation`; hidden weights start with the deviation `scale[0]`, output
    weights with `scale[1]`. A fit ends where residuals are `tol` of the targets' deviation. Of
    several `restarts` the best is kept. `method` as in `CaputoRegressor`.

    >>> import numpy as np
    >>> from cfgd.integrations.sklearn import CaputoNetwork
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> model = CaputoNetwork(width=10, max_iter=100, tol=1e-3, random_state=0)
    >>> print(round(model.fit(X, np.sin(3 * X[:, 0])).score(X, np.sin(3 * X[:, 0])), 3))
    1.0
    """

    def __init__(
        self,
        width: int = 20,
        *,
        activation: Any = "tanh",
        scale: Any = (2.0, 0.2),
        restarts: int = 1,
        method: Any = "auto",
        alpha: float = 0.7,
        gamma: float = 20.0,
        lag: int = 1,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.width = width
        self.activation = activation
        self.scale = scale
        self.restarts = restarts
        self.method = method
        self.alpha = alpha
        self.gamma = gamma
        self.lag = lag
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> CaputoNetwork:
        owner = type(self).__name__
        restarts = checks.integer(owner, "restarts", self.restarts)
        method = method_of(owner, self.method, self.alpha, self.gamma, self.lag)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True)
        y = y.astype(X.dtype)
        self.mean_, self.deviation_ = X.mean(0), _size(X.std(0))
        self.target_mean_, self.target_deviation_ = y.mean(), _size(y.std())[()]
        targets = (y - self.target_mean_) / self.target_deviation_
        f = ShallowNetwork(self._inputs(X), targets, self.width, self.activation)
        starts = self._starts(f, restarts).astype(X.dtype)
        options = self.max_iter, self.tol, self.verbose, self.tol**2 * len(y) / 2
        rows = f if is_auto(method) else _padded(f)
        many = [minimised(rows, start, method, *options) for start in starts]
        ends = told(owner, min(many, key=lambda one: one.value))
        self.network_, self.weights_ = f, ends.x
        self.n_iter_ = max(1, int(ends.iterations))
        self.loss_curve_ = ends.history["value"]
        self.status_ = ends.status.name
        return self

    def _starts(self, f: ShallowNetwork, restarts: int) -> np.ndarray:
        hidden, output = np.broadcast_to(self.scale, (2,))
        deviation = np.where(np.arange(f.dimension) < f.hidden, hidden, output)
        draw = check_random_state(self.random_state).normal(size=(restarts, f.dimension))
        return deviation * draw

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean_) / self.deviation_

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        inside = self.network_.predict(self.weights_, self._inputs(X))
        return np.asarray(inside) * self.target_deviation_ + self.target_mean_


def _padded(f: ShallowNetwork) -> ShallowNetwork:
    """With rows that change nothing, so that folds of nearly the same size share a program.

    Inputs of zero, that of the bias too, and a target of zero: nothing comes out of units whose
    activation is zero at zero, as tanh and sin are.
    """
    if float(f.activation(np.zeros(1))[0][0]) != 0:
        return f
    more = rows_to_add(len(f.y))
    z, y = np.pad(f.z, ((0, more), (0, 0))), np.pad(f.y, (0, more))
    return eqx.tree_at(lambda f: (f.z, f.y), f, (z, y))


def _size(deviation: Any) -> Any:
    """What is constant is not divided."""
    return np.where(deviation > 0, deviation, 1).astype(np.asarray(deviation).dtype)
