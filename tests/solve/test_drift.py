"""Carried values are looked at again; what does not drift needs no second look to be believed."""

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from problems import BOWL, X0, A, B, few, identity, quick

MINIMISER = -np.linalg.solve(A, B)


class Own(cfgd.Objective):
    """A quadratic that says so and defines nothing else: blocks of eight, and no drift."""

    A: np.ndarray

    def value(self, x):
        return x @ self.A @ x / 2 + B @ x

    @property
    def is_quadratic(self):
        return True


PROBED = cfgd.Local(BOWL.objective, "hutchinson", key=0)
ENDING = {
    "hutchinson": (PROBED, cfgd.AdaptiveTerminal(gamma=-0.25)),
    "hutchinson, gradient descent": (PROBED, cfgd.GradientDescent()),
    "hutchinson, auto": (PROBED, cfgd.Auto()),
    "own": (Own(A), cfgd.AdaptiveTerminal(gamma=-0.25)),
    "own, auto": (Own(A), cfgd.Auto()),
}


@pytest.mark.parametrize(("f", "method"), quick(ENDING, ["hutchinson", "own, auto"]))
@pytest.mark.parametrize("every", few([1, 5]))
def test_a_quadratic_that_does_not_drift_ends(f, method, every):
    """In the middle of a block it used to wait for a look that never came."""
    end = cfgd.minimize(f, X0, method, every=every, time_limit=60.0)
    assert end.success
    np.testing.assert_allclose(end.x, MINIMISER, rtol=1e-6)


def test_sweeps_of_what_does_not_drift_end():
    ends = cfgd.sweep(Own(A), X0, cfgd.AdaptiveTerminal(gamma=[-0.3, -0.1, 0.2]), time_limit=60.0)
    assert ends.success.all()
    assert len(set(ends.iterations)) > 1


@pytest.mark.parametrize("key", few(range(4)))
def test_conjugate_directions_keep_their_diagonal(key):
    """With another random diagonal at every point they would not be conjugate to each other."""
    random = np.random.default_rng(key)
    M = random.normal(size=(8, 8))
    f = cfgd.Quadratic(M @ M.T + np.eye(8), random.normal(size=8))
    end = cfgd.minimize(cfgd.Local(f, "hutchinson", probes=2, key=key), np.zeros(8))
    assert end.success
    assert end.iterations <= 9


def test_an_end_in_the_middle_of_a_block_is_the_end():
    """Of an indefinite A: what the block computes after it counts for nothing."""
    A = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    _, V = np.linalg.eigh(A)
    method = cfgd.AdaptiveTerminal(gamma=-0.5, past=[V[:, 1] - 20 * V[:, 0]])
    end = cfgd.minimize(cfgd.Quadratic(A, np.zeros(3)), V[:, 1], method, record={"x": identity})
    assert end.status is cfgd.Status.indefinite
    assert len(end.history["x"]) == end.iterations + 1
    assert any(np.array_equal(end.x, x) for x in end.history["x"])


def test_a_value_that_only_the_recurrence_found_is_not_returned():
    """Unbounded below: the carried value goes on where the true one has overflown."""
    f = cfgd.Quadratic(np.diag([1.0, 2.0, 0.0]), [1.0, 1.0, 1e-3])
    end = cfgd.minimize(f, np.ones(3), record={"x": identity})
    assert not end.success
    assert f.value(end.x) == end.value < f.value(np.ones(3))


def test_waiting_runs_start_anew():
    """A run that seemed to be over forgot its memory: its next step is a gradient step."""
    random = np.random.default_rng(3)
    Q = np.linalg.qr(random.normal(size=(12, 12)))[0]
    H = (Q * np.geomspace(1e-6, 1, 12)) @ Q.T
    f = cfgd.Quadratic((H + H.T) / 2, 1e3 * random.normal(size=12))
    end = cfgd.minimize(f, np.ones(12), tolerance=1e-15, max_iterations=300)
    g = np.linalg.norm(f.gradient(end.x))
    assert end.success == (g <= 1e-15 * np.linalg.norm(f.gradient(np.ones(12))))


def test_the_best_of_a_diverging_run_is_its_first_points():
    end = cfgd.minimize(
        lambda x: jnp.sum(x**2),
        np.array([1.0]),
        cfgd.GradientDescent(cfgd.FixedStep(1.2)),
        max_iterations=9,
    )
    np.testing.assert_array_equal(end.x, [1.0])
