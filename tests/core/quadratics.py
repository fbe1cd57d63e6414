"""Quadratics for tests of the theorems, and the iterations as plain loops in NumPy.

Nothing of the solver is used: both sides of an inequality must be independent of it.
"""

from typing import NamedTuple

import numpy as np
import pytest

from problems import few

SEEDS = range(24)
seeds = pytest.mark.parametrize("seed", few(SEEDS, 4))
lags = pytest.mark.parametrize("lag", [1, 2, 3, 4])


class QuadraticProblem(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    A: np.ndarray
    b: np.ndarray
    terminal: np.ndarray
    x0: np.ndarray
    gamma: float  # even seeds: positive; odd seeds: negative, with A + gamma D positive definite
    eta: float  # in (0, 2)

    @property
    def x_star(self):
        return np.linalg.lstsq(self.X, self.y)[0]


def problem(seed):
    """Return least squares with columns of different norms: diag(A) is no multiple of I."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    X = rng.normal(size=(d + 6, d)) * rng.permutation(np.linspace(0.5, 3, d)) + 0.3
    y = rng.normal(size=d + 6)
    A = X.T @ X
    root = np.sqrt(np.diag(A))
    lowest = -np.linalg.eigvalsh(A / np.outer(root, root))[0]  # there A + gamma D is singular
    gamma = rng.uniform(0.05, 3) if seed % 2 == 0 else rng.uniform(0.1, 0.8) * lowest
    terminal, x0 = rng.normal(size=(2, d)) * 3
    return QuadraticProblem(X, y, A, -X.T @ y, terminal, x0, gamma, rng.uniform(0.05, 1.95))


def standardised(seed, d=5):
    """Return a correlation matrix: D = I."""
    X = np.random.default_rng(seed).normal(size=(d + 3, d)) + 0.8
    A = X.T @ X
    root = np.sqrt(np.diag(A))
    A = A / np.outer(root, root)
    np.fill_diagonal(A, 1.0)
    return A


def non_adaptive(A, b, terminal, gamma, step, x, iterations):
    """Return x_0, ..., x_iterations of the non-adaptive method."""
    points = [x]
    for _ in range(iterations):
        x = x - step * (A @ x + b + gamma * np.diag(A) * (x - terminal))
        points.append(x)
    return np.array(points)


def adaptive_terminal(A, b, gamma, eta, past, iterations):
    """Return x_0, ... of the adaptive terminal from past[j] = x_{-j}, j = 0, ..., lag."""
    points = list(past[::-1])
    lag = len(points) - 1
    for _ in range(iterations):
        x, terminal = points[-1], points[-1 - lag]
        points.append(x - eta * (A @ x + b + gamma * np.diag(A) * (x - terminal)))
    return np.array(points[lag:])


def companion(A, gamma, eta, lag):
    """Return the matrix M in the proof of Theorem 4, block by block."""
    d = len(A)
    G = gamma * np.diag(np.diag(A))
    M = np.zeros((lag + 1, d, lag + 1, d))
    M[0, :, 0] = np.eye(d) - eta * (A + G)
    M[0, :, lag] += eta * G
    for j in range(lag):
        M[j + 1, :, j] = np.eye(d)
    return M.reshape((lag + 1) * d, (lag + 1) * d)


def norms(errors):
    return np.linalg.norm(errors, axis=-1)


def assert_below(observed, bound, scale):
    """Assert observed <= bound at every k, up to rounding of numbers of size `scale`."""
    observed, bound = np.asarray(observed), np.asarray(bound)
    assert observed.shape == bound.shape
    np.testing.assert_array_less(observed, bound * (1 + 1e-12) + 1e-12 * scale)


def lagged(seed, lag):
    """Return a problem, gamma, a stable or unstable step, and lag + 1 starting points."""
    p = problem(seed)
    rng = np.random.default_rng(1000 + 10 * seed + lag)
    gamma = p.gamma if seed % 2 == 0 else -rng.uniform(0.02, 0.9)
    eta = rng.uniform(0.1, 2.6) / np.linalg.norm(p.A + abs(gamma) * np.diag(np.diag(p.A)), 2)
    return p, gamma, eta, p.x_star + rng.normal(size=(lag + 1, len(p.A)))
