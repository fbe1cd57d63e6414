"""Variable projection: the output weights of a network are the best for its hidden ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfgd.objectives.network.model import ShallowNetwork

RANK = 1e-12  # of the largest singular value, below which a feature is a sum of others


class Projected:
    """What is left of the misfit, as a function of the hidden weights alone."""

    def __init__(self, network: ShallowNetwork) -> None:
        self.z, self.y, self.width = np.asarray(network.z), np.asarray(network.y), network.width

    def features(self, w: Any) -> Any:
        return np.tanh(self.z @ w.reshape(-1, self.width))

    def best(self, phi: Any) -> tuple[Any, Any]:
        """The output weights, and an orthogonal basis of what the features span."""
        U, sigma, V = np.linalg.svd(phi, full_matrices=False)
        kept = sigma > RANK * sigma[0]
        U, sigma, V = U[:, kept], sigma[kept], V[kept]
        return V.T @ (U.T @ self.y / sigma), U

    def whole(self, w: Any) -> Any:
        """All weights of the network."""
        return np.concatenate([w, self.best(self.features(w))[0]])

    def residuals(self, w: Any) -> Any:
        phi = self.features(w)
        return phi @ self.best(phi)[0] - self.y

    def jacobian(self, w: Any) -> Any:
        """Kaufman's: the change of the features at fixed output weights, off their span."""
        phi = self.features(w)
        output, U = self.best(phi)
        slope = (1 - phi**2) * output
        change = (self.z[:, :, None] * slope[:, None]).reshape(len(self.z), -1)
        return change - U @ (U.T @ change)

    def value(self, w: Any) -> tuple[float, Any]:
        """Half the sum of squares, and its gradient, which Kaufman's Jacobian gives exactly."""
        r = self.residuals(w)
        return float(r @ r) / 2, self.jacobian(w).T @ r
