"""The rows of the history and the iterations that label them."""

import jax.numpy as jnp
import numpy as np
import pytest
from bowls import FLAT, RECORD, X0, bowl, fixed

import cfgd
from cfgd import FixedStep, GradientDescent
from problems import TREE, A, pytree_bowl


@pytest.mark.one_case
@pytest.mark.parametrize("iterations", [1, 5, 8, 9, 20, 128, 140])
@pytest.mark.parametrize("every", [1, 3, 8])
def test_labels_of_the_history(iterations, every):
    solution = fixed(0.1, FLAT, every=every, max_iterations=iterations, tolerance=0)
    labels = [*range(0, iterations, every), iterations]
    np.testing.assert_array_equal(solution.history["iteration"], labels)
    assert set(solution.history) == {"iteration", "value", "gradient_norm", "x"}
    assert solution.history["value"].shape == (len(labels),)
    assert solution.history["x"].shape == (len(labels), 3)
    each = np.array([X0 * (1 - 0.1 * np.diag(FLAT.A)) ** k for k in labels])
    np.testing.assert_allclose(solution.history["x"], each, rtol=1e-10)
    values = np.sum(np.diag(FLAT.A) * each**2, axis=1) / 2
    np.testing.assert_allclose(solution.history["value"], values, rtol=1e-9, atol=1e-14)


def test_labels_of_a_run_that_converges():
    """The last iteration has one row, also where it is a multiple of `every`."""
    full, counts = bowl(tolerance=1e-9), set()
    for tolerance in 10.0 ** -np.arange(1, 9):
        solution = bowl(tolerance=tolerance, every=3)
        n = solution.iterations
        counts.add(n % 3)
        labels = [*range(0, n, 3), n]
        np.testing.assert_array_equal(solution.history["iteration"], labels)
        np.testing.assert_allclose(solution.history["x"], full.history["x"][labels], rtol=1e-9)
    assert counts == {0, 1, 2}


@pytest.mark.slow
def test_labels_of_a_start_at_the_minimiser():
    f = cfgd.Quadratic(A, np.zeros(3))
    solution = cfgd.minimize(f, np.zeros(3), GradientDescent(), record=RECORD, every=3)
    np.testing.assert_array_equal(solution.history["iteration"], [0])


def test_a_record_gets_the_x_of_the_user():
    record = {"a": lambda p: p["a"], "total": lambda p: jnp.sum(p["a"]) + p["b"], "seven": len}
    solution = cfgd.minimize(
        pytree_bowl,
        TREE,
        GradientDescent(FixedStep(0.1)),
        max_iterations=4,
        tolerance=0,
        record=record,
    )
    history = solution.history
    assert history["a"].shape == (5, 2)
    assert history["a"].dtype == np.float64
    np.testing.assert_array_equal(history["a"][0], TREE["a"])
    np.testing.assert_allclose(history["total"][0], 1.3)
    np.testing.assert_array_equal(history["seven"], np.full(5, 2))
    np.testing.assert_allclose(history["a"][-1], solution.x["a"], rtol=1e-13)


@pytest.mark.slow
def test_a_history_longer_than_a_chunk_may_write():
    """A chunk may write 2^17 numbers: with 301 numbers an iteration, 435 rows."""
    solution = fixed_long(record={"x": lambda x: jnp.tile(x, 100)})
    np.testing.assert_array_equal(solution.history["iteration"], np.arange(8001))
    want = X0[0] * 0.9 ** np.arange(8001)
    np.testing.assert_allclose(solution.history["x"][:200, 0], want[:200], rtol=1e-10, atol=1e-17)
    np.testing.assert_allclose(solution.history["x"][:, 2], X0[2], rtol=1e-8)


def fixed_long(record):
    return cfgd.minimize(
        FLAT,
        X0,
        GradientDescent(FixedStep(0.1)),
        max_iterations=8000,
        tolerance=0,
        record=record,
    )


EXACT = np.random.default_rng(5).normal(size=(12, 3)), np.array([0.5, -2.0, 1.5])
OBJECTIVES = {
    "Quadratic": cfgd.Quadratic([[20.0, 1.0, 0.0], [1.0, 2.0, 0.3], [0.0, 0.3, 5.0]], [0.0] * 3),
    "LeastSquares": cfgd.LeastSquares(EXACT[0], EXACT[0] @ EXACT[1]),
}


@pytest.mark.every_case
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_recorded_values_keep_their_digits_where_the_minimum_is_zero(name, every):
    """A value that is updated from step to step keeps the rounding errors of the first one."""
    f = OBJECTIVES[name]
    method, start = cfgd.AdaptiveTerminal(gamma=-0.25), np.array([4.0, 1.0, -3.0])
    record = {"x": lambda x: x}
    options = {"tolerance": 1e-11, "record": record, "every": every}
    history = cfgd.minimize(f, start, method, **options).history
    both = cfgd.sweep(f, start, [method, cfgd.AdaptiveTerminal(gamma=-0.5)], **options)
    for rows in (history, both[0].history, both[1].history):
        values = np.array([f.value(x) for x in rows["x"]])
        assert values.min() < 1e-15 * values[0]
        # residuals have some rounding units of y as an error, which is that of sqrt(f)
        allowed = 1e-10 * values + 1e-14 * np.sqrt(values)
        assert (abs(rows["value"] - values) <= allowed).all()
