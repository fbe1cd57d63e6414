"""Bad input of the theory: one sentence."""

import re

import numpy as np
import pytest

from cfgd import theory

I2 = np.eye(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.tilde_A([[1.0, 2.0, 3.0]], 0.0),
            "`tilde_A(A=...)` must be a square matrix, got shape (1, 3).",
        ),
        (
            lambda: theory.tilde_A([[1.0, 2.0], [0.0, 1.0]], 0.0),
            "`tilde_A(A=...)` must be symmetric, got a gap of 2.",
        ),
        (
            lambda: theory.tilde_A(I2, [1.0, 2.0, 3.0]),
            "`tilde_A(gamma=...)` must have shape () or (2,), got (3,).",
        ),
        (
            lambda: theory.tikhonov_solution(I2, [1.0, 2.0], [0.0], 1.0),
            "`tikhonov_solution(terminal=...)` must have shape (2,), got (1,).",
        ),
        (
            lambda: theory.non_adaptive_rate(I2, 0.0, 2.0),
            "`non_adaptive_rate(eta=...)` must lie in (0, 2), got 2.0.",
        ),
        (
            lambda: theory.non_adaptive_rate(I2, -1.5, 1.0),
            "`non_adaptive_rate(gamma=...)` must make A + gamma diag(A) positive definite, "
            "got a smallest eigenvalue of -0.5.",
        ),
        (
            lambda: theory.spectral_radius(I2, 0.0, 1.0, 0),
            "`spectral_radius(lag=...)` must be at least 1, got 0.",
        ),
        (
            lambda: theory.spectral_radius(I2, 0.0, 1.0, 1.5),
            "`spectral_radius(lag=...)` must be an integer of at least 1, got 1.5.",
        ),
        (
            lambda: theory.spectral_radius(I2, "large", 1.0, 1),
            "`spectral_radius(gamma=...)` must be a number or an array of numbers, got 'large'.",
        ),
        (
            lambda: theory.tilde_A(I2, np.nan),
            "`tilde_A(gamma=...)` must be finite, got nan.",
        ),
        (
            lambda: theory.non_adaptive_rate(I2, 0.0, [0.5, 1.0]),
            "`non_adaptive_rate(eta=...)` must be one number, got shape (2,).",
        ),
        (
            lambda: theory.adaptive_terminal_matrices(I2, 0.0, 1.0, 1, -1),
            "`adaptive_terminal_matrices(iterations=...)` must be at least 0, got -1.",
        ),
        (
            lambda: theory.adaptive_terminal_bound(I2, 0.0, 1.0, [1.0], 3),
            "`adaptive_terminal_bound(errors=...)` must hold at least two numbers, got shape (1,).",
        ),
        (
            lambda: theory.adaptive_order_bound(I2, [1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [], 1.0),
            "`adaptive_order_bound(stages=...)` must hold at least one stage, got none.",
        ),
        (
            lambda: theory.adaptive_order_bound(I2, [1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [3], 1.0),
            "`adaptive_order_bound(stages=...)` must be a list of pairs (iterations, gamma), "
            "got the entry 3.",
        ),
        (
            lambda: theory.adaptive_order_constant(I2, [1.0, 1.0], [0.0, 0.0], -2.0),
            "`adaptive_order_constant(gammas=...)` must make A + gamma diag(A) positive definite, "
            "got a smallest eigenvalue of -1.",
        ),
        (
            lambda: theory.best_constants([1.0, -2.0]),
            "`best_constants(A=...)` must have positive eigenvalues, got -2.0.",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_message(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
