"""Evaluations that are updated by recurrence are computed again before a run may converge."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from fake_clock import fake_clock

import cfgd
from problems import BOWL, X0, A, B, few, identity, quick

MINIMISER = -np.linalg.solve(A, B)


class UserQuadratic(cfgd.Objective):
    """A quadratic that defines its value alone: iterations in blocks, without recurrences."""

    A: np.ndarray

    def value(self, x):
        return x @ self.A @ x / 2 + B @ x

    @property
    def traits(self):
        return dataclasses.replace(super().traits, structure="quadratic")


PROBED = cfgd.Local(BOWL.objective, "hutchinson", key=0)
ENDING = {
    "hutchinson": (PROBED, cfgd.AdaptiveTerminal(gamma=-0.25)),
    "hutchinson, gradient descent": (PROBED, cfgd.GradientDescent()),
    "hutchinson, auto": (PROBED, cfgd.Auto()),
    "a user's own": (UserQuadratic(A), cfgd.AdaptiveTerminal(gamma=-0.25)),
    "a user's own, auto": (UserQuadratic(A), cfgd.Auto()),
}


@pytest.mark.slow
@pytest.mark.parametrize(("f", "method"), quick(ENDING, ["hutchinson", "a user's own, auto"]))
@pytest.mark.parametrize("every", few([1, 5]))
def test_a_quadratic_without_recurrences_converges(f, method, every):
    """A run that converges in the middle of a block must not wait for a recomputation."""
    with fake_clock(tick=0.01):  # so that a run that waits ends
        end = cfgd.minimize(f, X0, method, every=every, time_limit=100.0)
    assert end.success
    np.testing.assert_allclose(end.x, MINIMISER, rtol=1e-6)


@pytest.mark.slow
def test_sweeps_of_a_quadratic_without_recurrences_converge():
    methods = cfgd.AdaptiveTerminal(gamma=[-0.3, -0.1, 0.2])
    with fake_clock(tick=0.01):
        ends = cfgd.sweep(UserQuadratic(A), X0, methods, time_limit=100.0)
    assert ends.success.all()
    assert len(set(ends.iterations)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("key", few(range(4)))
def test_conjugate_gradients_keep_their_preconditioner(key):
    """With another random diagonal at every point directions would not be conjugate."""
    random = np.random.default_rng(key)
    M = random.normal(size=(8, 8))
    f = cfgd.Quadratic(M @ M.T + np.eye(8), random.normal(size=8))
    end = cfgd.minimize(cfgd.Local(f, "hutchinson", probes=2, key=key), np.zeros(8))
    assert end.success
    assert end.iterations <= 9


def test_iterations_after_an_end_in_the_middle_of_a_block_are_ignored():
    """The matrix is indefinite, and has no negative 2 x 2 minor by which it would be refused."""
    A = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    _, V = np.linalg.eigh(A)
    method = cfgd.AdaptiveTerminal(gamma=-0.5, past=[V[:, 1] - 20 * V[:, 0]])
    end = cfgd.minimize(cfgd.Quadratic(A, np.zeros(3)), V[:, 1], method, record={"x": identity})
    assert end.status is cfgd.Status.indefinite
    assert len(end.history["x"]) == end.iterations + 1
    assert any(np.array_equal(end.x, x) for x in end.history["x"])


def test_the_returned_value_is_computed_and_not_updated():
    """On a function without a minimum, updated values stay finite where true ones overflow."""
    f = cfgd.Quadratic(np.diag([1.0, 2.0, 0.0]), [1.0, 1.0, 1e-3])
    end = cfgd.minimize(f, np.ones(3), record={"x": identity})
    assert not end.success
    assert f.value(end.x) == end.value < f.value(np.ones(3))


def test_converged_means_by_the_computed_gradient():
    """At a tolerance beyond rounding, updated gradients meet it again and again."""
    random = np.random.default_rng(3)
    Q = np.linalg.qr(random.normal(size=(12, 12)))[0]
    H = (Q * np.geomspace(1e-6, 1, 12)) @ Q.T
    f = cfgd.Quadratic((H + H.T) / 2, 1e3 * random.normal(size=12))
    end = cfgd.minimize(f, np.ones(12), tolerance=1e-15, max_iterations=300)
    g = np.linalg.norm(f.gradient(end.x))
    assert end.success == (g <= 1e-15 * np.linalg.norm(f.gradient(np.ones(12))))


@pytest.mark.slow
def test_the_best_point_of_a_diverging_run_is_its_start():
    end = cfgd.minimize(
        lambda x: jnp.sum(x**2),
        np.array([1.0]),
        cfgd.GradientDescent(cfgd.FixedStep(1.2)),
        max_iterations=9,
    )
    np.testing.assert_array_equal(end.x, [1.0])
