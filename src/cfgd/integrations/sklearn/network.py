"""The paper's two-layer network as a regressor."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from cfgd._core import checks
from cfgd.integrations.sklearn.base import DTYPES, MethodEstimator, is_auto, pad_rows
from cfgd.methods.base import Method
from cfgd.objectives import ShallowNetwork


class CaputoNetwork(RegressorMixin, MethodEstimator):
    """The two-layer network of the paper (section 4.3), of standardised inputs and targets.

    Parameters
    ----------
    width : int, default 20
        Number of hidden units.
    activation : str or callable, default "tanh"
        As in `cfgd.ShallowNetwork`.
    scale : (float, float) or float, default (2.0, 0.2)
        Standard deviations of the initial hidden and output weights.
    restarts : int, default 1
        Number of random initial points, each of which is fitted; the fit of the lowest loss is
        kept.
    method, alpha, gamma, lag, max_iter, verbose
        As in `CaputoRegressor`.
    tol : float, default 0.0001
        A fit ends when the root mean square of the residuals is `tol` times the standard deviation
        of the targets, or at this relative tolerance of the gradient.
    random_state : int, RandomState or None, optional
        Seed of the initial weights.

    Attributes
    ----------
    network_, weights_
        The objective `cfgd.ShallowNetwork` and its fitted weights.
    n_iter_, loss_curve_, status_
        Iterations, the values of the objective, and the name of the final status.

    Examples
    --------
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
        method: str | Method = "auto",
        alpha: float = 0.7,
        gamma: float = 20.0,
        lag: int = 1,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
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
        self.width = width
        self.activation = activation
        self.scale = scale
        self.restarts = restarts
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> CaputoNetwork:
        """Fit the network to samples X and targets y.

        Parameters
        ----------
        X : array of shape (n, d)
            The samples.
        y : array of shape (n,)
            The targets.

        Returns
        -------
        CaputoNetwork
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If X or y has NaN or infinity, their shapes do not agree, `width` or `restarts` is less
            than 1, `activation` is unknown, or another parameter of the estimator is invalid.
        """
        restarts = checks.integer(type(self).__name__, "restarts", self.restarts)
        method = self._make_method()
        X, y = validate_data(self, X, y, dtype=DTYPES, y_numeric=True)
        y = y.astype(X.dtype)
        self.mean_, self.deviation_ = X.mean(0), _nonzero(X.std(0))
        self.target_mean_, self.target_deviation_ = y.mean(), _nonzero(y.std())[()]
        targets = (y - self.target_mean_) / self.target_deviation_
        network = ShallowNetwork(self._standardize(X), targets, self.width, self.activation)
        objective = network if is_auto(method) else _pad_network(network)
        assert self.tol is not None
        target_value = self.tol**2 * len(y) / 2
        solutions = [
            self._minimize(objective, x0, method, target_value)
            for x0 in self._initial_points(network, restarts).astype(X.dtype)
        ]
        best = min(solutions, key=lambda solution: solution.value)
        self.network_, self.weights_ = network, best.x
        self._record_fit(best)
        return self

    def _initial_points(self, network: ShallowNetwork, restarts: int) -> np.ndarray:
        """Return one row of random weights per restart."""
        hidden, output = np.broadcast_to(self.scale, (2,))
        deviation = np.where(np.arange(network.dimension) < network.hidden, hidden, output)
        shape = restarts, network.dimension
        return deviation * check_random_state(self.random_state).normal(size=shape)

    def _standardize(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean_) / self.deviation_

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted targets of the samples.

        Parameters
        ----------
        X : array of shape (n, d)
            The samples.

        Returns
        -------
        array of shape (n,)
            The outputs of the network, in the units of the targets.
        """
        X = self._validate_new(X)
        outputs = self.network_.predict(self.weights_, self._standardize(X))
        return np.asarray(outputs) * self.target_deviation_ + self.target_mean_


def _pad_network(network: ShallowNetwork) -> ShallowNetwork:
    """Return the network with padded samples where they do not change the objective.

    Their inputs, that of the bias too, and their targets are zero: the residuals are zero for an
    activation that is zero at zero, such as tanh and sin.
    """
    if float(network.activation(np.zeros(1))[0][0]) != 0:
        return network
    padded = pad_rows(network.z), pad_rows(network.y)
    return eqx.tree_at(lambda network: (network.z, network.y), network, padded)


def _nonzero(deviation: Any) -> Any:
    """Replace zeros, the deviations of constant columns, by one."""
    return np.where(deviation > 0, deviation, 1).astype(np.asarray(deviation).dtype)
