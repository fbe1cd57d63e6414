"""The compiled Levenberg-Marquardt against the one in NumPy, SciPy and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import cfgd
from cfgd._core.arrays import in_precision
from cfgd._core.box import Box
from cfgd.apps.data.nist import regressions
from cfgd.methods.compiled import batch, levenberg_marquardt as lm
from cfgd.methods.compiled.problem import least_squares, smooth
from cfgd.status import STATUSES

DOUBLE = np.dtype(float)
T = np.array([0.0, 0.3, 0.9, 1.4, 2.2, 3.1, 3.3, 4.6])
RATES = np.linspace(0.3, 1.9, 11)
CURVES = 2.5 * np.exp(-RATES[:, None] * T) + 0.1 * np.cos(5 * T + RATES[:, None])


def decay(z):
    return z[0] * jnp.exp(-z[1] * T)


def names(state):
    return [STATUSES[code].name for code in np.atleast_1d(state.status)]


def solve(problem, starts, max_iterations=1000):
    with in_precision(DOUBLE):
        solve_all = jax.jit(jax.vmap(lambda z: lm.solve(problem, z, 1e-8, max_iterations)))
        return jax.tree.map(np.asarray, solve_all(jnp.asarray(starts, float)))


def regression(name):
    one = regressions()[name]
    return one, solve(least_squares(one.residuals), one.starts, 2000)


@pytest.mark.parametrize("name", ["Misra1a", "Chwirut2", "Eckerle4"])
def test_certified_regressions(name):
    one, state = regression(name)
    assert names(state) == ["converged"] * 2
    for z, start in zip(state.z, one.starts, strict=True):
        assert one.digits(z) > 10  # of 11 that are certified: the last step is one of Newton
        x = cfgd.minimize(cfgd.Residuals(one.residuals), start).x
        np.testing.assert_allclose(z, x, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(regressions()))
def test_all_certified_regressions(name):
    """All but the far start of one regression, as docs/guides/many.md says."""
    one, state = regression(name)
    digits = [one.digits(z) for z in state.z]
    reached = [name != "MGH10", True]
    assert [count > 10 for count in digits] == reached
    assert names(state)[1] == "converged"


def test_hessian_of_least_squares():
    z = np.array([1.3, 0.7])
    problem = least_squares(lambda z: decay(z) - CURVES[3])
    with in_precision(DOUBLE):
        found = problem.hessian(z)
        expected = jax.hessian(lambda z: ((decay(z) - CURVES[3]) ** 2).sum() / 2)(z)
        model = problem.model(z)
        J, r = np.asarray(jax.jacfwd(decay)(z)), np.asarray(decay(z)) - CURVES[3]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(model.matrix, J.T @ J, rtol=1e-12)
    np.testing.assert_allclose(model.gradient, r @ J, rtol=1e-12)


@pytest.mark.parametrize(
    ("lower", "upper"), [([0.5, 1.2], [9.0, 9.0]), ([-9.0, 0.1], [1.5, 9.0]), ([3, 0], [3, 9])]
)
def test_bounds(lower, upper):
    lower, upper = np.array(lower, float), np.array(upper, float)
    data = CURVES[2]
    problem = least_squares(lambda z: decay(z) - data, Box(lower, upper))
    state = solve(problem, [[1.0, 1.0], [4.0, 3.0]])
    assert names(state) == ["converged"] * 2
    free = lower < upper

    def residuals(z):
        z = np.where(free, np.insert(z, 0, 0)[-2:] if free.sum() == 1 else z, lower)
        return z[0] * np.exp(-z[1] * T) - data

    inside = np.clip(1.5, lower, upper)[free]
    expected = scipy.optimize.least_squares(
        residuals, inside, bounds=(lower[free], upper[free]), xtol=1e-15, ftol=1e-15
    )
    for i in range(2):
        np.testing.assert_allclose(state.z[i][free], expected.x, rtol=1e-6)
        np.testing.assert_allclose(state.model.value[i], expected.cost, rtol=1e-10)
        assert np.all((state.z[i] >= lower) & (state.z[i] <= upper))


def test_bounds_that_are_not_met_change_nothing():
    free = solve(least_squares(lambda z: decay(z) - CURVES[2]), [[1.0, 1.0]])
    box = Box(np.array([-50.0, -np.inf]), np.array([np.inf, 50.0]))
    bounded = solve(least_squares(lambda z: decay(z) - CURVES[2], box), [[1.0, 1.0]])
    np.testing.assert_allclose(bounded.z, free.z, rtol=1e-12)
    np.testing.assert_array_equal(bounded.iteration, free.iteration)


def test_statuses():
    def residuals(z):
        # a saddle at z = 0, not finite from 3 on, minima at 1 and -1
        return jnp.array([z[0] ** 2 - 1, z[1], jnp.sqrt(3 - z[0]) * 0])

    state = solve(least_squares(residuals), [[0.0, 0.0], [0.5, 1.0], [4.0, 1.0], [-2.0, 1.0]])
    assert names(state) == ["saddle", "converged", "nonfinite", "converged"]
    np.testing.assert_allclose(state.z[[1, 3], 0], [1.0, -1.0], rtol=1e-9)
    short = solve(least_squares(lambda z: decay(z) - CURVES[2]), [[50.0, 7.0]], 2)
    assert names(short) == ["max_iterations"]
    assert short.iteration == 2


def test_functions_with_their_hessian():
    """Rosenbrock's valley, and a Hessian that is indefinite at the start."""
    rosenbrock = solve(
        smooth(lambda z: (1 - z[0]) ** 2 + 100 * (z[1] - z[0] ** 2) ** 2), [[-1.2, 1.0]]
    )
    np.testing.assert_allclose(rosenbrock.z, [[1.0, 1.0]], rtol=1e-8)
    wells = solve(smooth(lambda z: (z[0] ** 2 - 1) ** 2 + z[0] / 4), [[0.1], [0.0]])
    assert names(wells) == ["converged"] * 2
    expected = np.roots([4, 0, -4, 0.25]).real
    assert np.all(np.min(abs(wells.z - expected), 1) < 1e-9)


class TestBlock:
    """Blocks in which problems that are done make room for the next ones."""

    def run(self, n_slots, count, n_left=0, curves=CURVES, max_iterations=1000):
        def problem_of(y):
            return least_squares(lambda z: decay(z) - y)

        @jax.jit
        def run(curves, starts, count, n_left):
            states = batch.pack(jax.vmap(lm.init)(starts))
            block = batch.Block(curves, states)
            found = batch.solve_block(
                problem_of, block, 2, count, 1e-8, max_iterations, n_slots, n_left
            )
            return batch.unpack(found, 2)

        with in_precision(DOUBLE):
            starts = jnp.ones((len(curves), 2))
            found = run(jnp.asarray(curves), starts, jnp.int32(count), jnp.int32(n_left))
        return jax.tree.map(np.asarray, found)

    def test_every_problem_is_solved_as_if_it_were_alone(self):
        found = self.run(n_slots=3, count=len(CURVES))
        assert names(found) == ["converged"] * len(CURVES)
        for i in (0, 4, 10):
            alone = solve(least_squares(lambda z, y=CURVES[i]: decay(z) - y), [[1.0, 1.0]])
            np.testing.assert_allclose(found.z[i], alone.z[0], rtol=1e-7)
            assert found.iteration[i] == alone.iteration[0]

    def test_a_bad_problem_touches_no_other(self):
        spoilt = CURVES.copy()
        spoilt[1], spoilt[5] = np.nan, np.inf
        good, found = self.run(3, 11), self.run(3, 11, curves=spoilt)
        assert [i for i, name in enumerate(names(found)) if name == "nonfinite"] == [1, 5]
        others = np.setdiff1d(np.arange(11), [1, 5])
        np.testing.assert_array_equal(found.z[others], good.z[others])

    def test_only_the_first_ones_count(self):
        found = self.run(n_slots=4, count=6)
        assert names(found) == ["converged"] * 6 + ["running"] * 5
        np.testing.assert_array_equal(found.z[6:], np.ones((5, 2)))

    def test_some_may_be_left(self):
        found = self.run(n_slots=8, count=11, n_left=3)
        assert 0 < names(found).count("running") <= 3
