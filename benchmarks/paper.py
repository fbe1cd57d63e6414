"""The paper's method, on the paper's random least squares."""

import jax
import numpy as np

import cfgd
from cfgd.apps.data.random_least_squares import random_least_squares

GAMMA = -0.25  # one of the paper's


class AdaptiveTerminal:
    """A thousand iterations with the exact step."""

    params = (20, 128, 1000)
    param_names = ("d",)

    def setup(self, d):
        X, y, *_ = random_least_squares(0, d)
        self.objective = cfgd.Quadratic(X.T @ X, -X.T @ y)
        self.x0 = np.ones(d)
        self.time_thousand_iterations(d)

    def time_thousand_iterations(self, d):
        method = cfgd.AdaptiveTerminal(gamma=GAMMA)
        cfgd.minimize(self.objective, self.x0, method, max_iterations=1000, tolerance=0.0)


class Sweep:
    """A hundred iterations of 81 gammas as one batch, d = 128."""

    def setup(self):
        X, y, *_ = random_least_squares(0, 128)
        self.objective = cfgd.Quadratic(X.T @ X, -X.T @ y)
        self.method = cfgd.AdaptiveTerminal(gamma=np.linspace(-0.9, 0.9, 81))
        self.time_sweep()

    def time_sweep(self):
        runs = cfgd.sweep(
            self.objective, np.ones(128), self.method, max_iterations=100, tolerance=0.0
        )
        jax.block_until_ready(runs.x)


class Iterations:
    """Iterations of `Auto` on the paper's construction with d = 20: the median of eight seeds."""

    unit = "iterations"

    def track_to_an_error_of_1e_8(self):
        return float(np.median([self._iterations(seed) for seed in range(8)]))

    def _iterations(self, seed):
        X, y, x0, _ = random_least_squares(seed, 20)
        best = np.linalg.lstsq(X, y)[0]
        error = {"error": lambda w: jax.numpy.linalg.norm(w - best)}
        solution = cfgd.minimize(cfgd.LeastSquares(X, y), x0, tolerance=1e-13, record=error)
        return int(np.argmax(solution.history["error"] < 1e-8))
