"""Variable projection for networks: the output weights are optimal for the hidden weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfgd.objectives.network.model import ShallowNetwork

# Singular values below this part of the largest one count as zero: a feature is then a linear
# combination of others.
RANK_TOLERANCE = 1e-12


class ProjectedNetwork:
    """The least-squares loss of a network as a function of its hidden weights `w` alone."""

    def __init__(self, network: ShallowNetwork) -> None:
        self.z, self.y, self.width = np.asarray(network.z), np.asarray(network.y), network.width

    def features(self, w: Any) -> Any:
        return np.tanh(self.z @ w.reshape(-1, self.width))

    def output_weights(self, phi: Any) -> tuple[Any, Any]:
        """Return the optimal output weights and an orthonormal basis of the span of features."""
        U, sigma, V = np.linalg.svd(phi, full_matrices=False)
        nonzero = sigma > RANK_TOLERANCE * sigma[0]
        U, sigma, V = U[:, nonzero], sigma[nonzero], V[nonzero]
        return V.T @ (U.T @ self.y / sigma), U

    def all_weights(self, w: Any) -> Any:
        """Return the weights of the network: `w` and the optimal output weights."""
        return np.concatenate([w, self.output_weights(self.features(w))[0]])

    def residuals(self, w: Any) -> Any:
        phi = self.features(w)
        return phi @ self.output_weights(phi)[0] - self.y

    def jacobian(self, w: Any) -> Any:
        """Return Kaufman's Jacobian: the derivative at fixed output weights, projected.

        The projection removes the span of the features.
        """
        phi = self.features(w)
        output, U = self.output_weights(phi)
        slope = (1 - phi**2) * output
        change = (self.z[:, :, None] * slope[:, None]).reshape(len(self.z), -1)
        return change - U @ (U.T @ change)

    def value_and_gradient(self, w: Any) -> tuple[float, Any]:
        """Return half the sum of squares and its gradient.

        Kaufman's approximation of the Jacobian gives the exact gradient.
        """
        r = self.residuals(w)
        return float(r @ r) / 2, self.jacobian(w).T @ r
