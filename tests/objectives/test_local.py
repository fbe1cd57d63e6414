"""Local quadratic models with the exact, the Gauss-Newton and the Hutchinson diagonal."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from objectives import (
    CASES,
    FAR,
    FORMATS,
    L2,
    WEIGHTS,
    A,
    B,
    X,
    Y,
    arguments,
    close,
    in_float64,
    network,
    reference,
)
from problems import few, quick

C, ALPHA, BETA = np.array([-1.5, 0.5, 2.5]), 0.3, 0.2
GAMMA = BETA - (1 - ALPHA) / (2 - ALPHA)
X3 = X[:, :3]
QUADRATICS = {  # the objective, its A
    "quadratic": (cfgd.Quadratic(A, B), A),
    "function": (lambda x: x @ A @ x / 2 + B @ x, A),
    "least squares": (cfgd.LeastSquares(X3, Y, L2, WEIGHTS), None),
    "least squares, wide": (cfgd.LeastSquares(X3[:2], Y[:2]), X3[:2].T @ X3[:2]),
    "least squares, csr": (cfgd.LeastSquares(FORMATS["csr"](X3), Y, L2, WEIGHTS), None),
    "linear model": (cfgd.LinearModel(X3, Y, "squared", L2, WEIGHTS), None),
}
WEIGHTED_A = X3.T @ (WEIGHTS[:, None] * X3) + L2 * np.eye(3)


@pytest.mark.parametrize(("f", "H"), quick(QUADRATICS, ["function", "least squares, csr"]))
def test_direction_on_a_quadratic_is_the_closed_form(f, H):
    H = WEIGHTED_A if H is None else H
    x = np.array([1.0, -2.0, 1.5])
    local = cfgd.Local(f)
    d = cfgd.fractional_gradient(local, x, C, ALPHA, BETA)
    np.testing.assert_allclose(
        d, local.gradient(x) + GAMMA * np.diag(H) * (x - C), rtol=1e-13, atol=1e-13
    )


@pytest.mark.one_case
@pytest.mark.parametrize("probes", [1, 3])
def test_probes_are_exact_where_the_hessian_is_diagonal(probes):
    f = cfgd.Quadratic(np.diag([3.0, 1.0, 0.5]), B)
    local = cfgd.Local(f, "hutchinson", probes=probes, key=4)
    x = np.array([1.0, -2.0, 1.5])
    d = cfgd.fractional_gradient(local, x, C, ALPHA, BETA)
    want = np.array([3.0, 1.0, 0.5]) * (x + GAMMA * (x - C)) + B
    np.testing.assert_allclose(d, want, rtol=1e-13)


MODELS = {
    "smooth": "smooth",
    "logistic": "logistic 0/1, dense, weights, l2",
    "network": "network, tanh, p = 3",
}


@pytest.mark.one_case
@pytest.mark.parametrize("name", quick(MODELS, ["smooth", "network"]))
def test_coordinate_slopes_are_those_of_the_quadratic_model(name):
    case = CASES[name]
    x, t, *_ = arguments(case.x)
    local = cfgd.Local(case.objective)
    g, D = reference(name)["gradient"], reference(name)["Hessian diagonal"]
    close(local.coordinate_slope(x, t[FAR]), g + D * (t[FAR] - x))
    d = cfgd.fractional_gradient(local, x, t[FAR], ALPHA, BETA)
    close(d, g + GAMMA * D * (x - t[FAR]))


def residual_free(activation, p):
    case = network(activation, p)
    f = case.objective
    y = f.predict(case.x, f.z[:, :-1])
    return cfgd.ShallowNetwork(f.z[:, :-1], y, f.width, activation), case.x


@eqx.filter_jit
def diagonals(f, x):
    """Return the exact and the Gauss-Newton diagonal, as the local models have them."""
    return [
        cfgd.Local(f, kind).coordinate_curvature(x, x + 1) for kind in ("exact", "gauss_newton")
    ]


@pytest.mark.parametrize("p", few([3, 1]))
def test_gauss_newton_is_exact_where_the_residual_vanishes(p):
    f, x = residual_free("tanh", p)
    exact, gauss_newton = in_float64(diagonals, f, x)
    close(gauss_newton, exact, 1e-13)
    exact, gauss_newton = in_float64(diagonals, f, x + 0.5)  # with residuals they differ
    assert np.max(np.abs(gauss_newton - exact)) > 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic 0/1, csr, weights, l2", "poisson, dense"])
def test_gauss_newton_is_exact_for_linear_models(name):
    exact, gauss_newton = in_float64(diagonals, CASES[name].objective, CASES[name].x)
    close(exact, reference(name)["Hessian diagonal"])
    close(gauss_newton, exact)


# Hutchinson's diagonal

PROBED = CASES["poisson, dense"]
DRAWS = 4000


@functools.cache
def probed(probes, draws=DRAWS):
    """Return the estimated diagonal for many keys."""
    local = cfgd.Local(PROBED.objective, "hutchinson", probes=probes, key=0)

    @eqx.filter_jit
    def many(local, x, seeds):
        def one(seed):
            key = jax.random.key_data(jax.random.key(seed))
            moved = eqx.tree_at(lambda f: f.key, local, key)
            return moved.coordinate_curvature(x, x)

        return jax.lax.map(one, seeds, batch_size=500)

    return in_float64(many, local, PROBED.x, np.arange(draws))


@functools.cache
def hessian():
    return in_float64(jax.jit(jax.hessian(PROBED.fn)), PROBED.x)


@pytest.mark.slow
@pytest.mark.parametrize("probes", few([5, 1]))
def test_the_mean_of_hutchinsons_diagonal_is_the_exact_one(probes):
    """Within four standard errors in every coordinate; the seeds are fixed."""
    draws = probed(probes)
    error = 4 * np.std(draws, 0) / np.sqrt(DRAWS)
    assert np.all(error > 0)
    assert np.all(np.abs(np.mean(draws, 0) - np.diag(hessian())) < error)


@pytest.mark.parametrize("probes", few([5, 1]))
def test_the_variance_of_hutchinsons_diagonal_is_the_known_one(probes):
    """The variance of entry j is sum_{k != j} H_jk^2 / probes."""
    H = hessian()
    want = (np.sum(H**2, 1) - np.diag(H) ** 2) / probes
    # a ratio of 1 within 15 %: more than four standard errors of 4000 draws
    np.testing.assert_allclose(np.var(probed(probes), 0), want, rtol=0.15)


def signs_at(x, key=0):
    """Return the drawn signs up to a common one, from the estimate for (sum_j 2^j x_j)^2 / 2."""
    powers = 2.0 ** np.arange(x.size)
    local = cfgd.Local(lambda x: jnp.sum(powers * x) ** 2 / 2, "hutchinson", key=key)
    signs = np.sign(local.coordinate_curvature(x, x))  # of v_j 2^j sum_k 2^k v_k
    return signs * signs[0]


PROBE = np.arange(24.0) ** 2 / 16 - 3  # sums of these are exact
OTHER_POINTS = {
    "a step away": PROBE + 0.125,
    "the same numbers in another order": PROBE[::-1].copy(),
    "two changes that cancel": PROBE + 0.25 * (np.arange(24) == 3) - 0.25 * (np.arange(24) == 7),
    "a step below the precision of float32": PROBE + 1e-10,
}


def test_the_draw_at_a_point_is_reproducible():
    np.testing.assert_array_equal(signs_at(PROBE, 3), signs_at(PROBE, 3))


def test_another_key_draws_other_signs():
    assert not np.array_equal(signs_at(PROBE, 3), signs_at(PROBE, 4))


@pytest.mark.parametrize("x", OTHER_POINTS.values(), ids=OTHER_POINTS)
def test_another_point_draws_other_signs(x):
    assert not np.array_equal(signs_at(PROBE), signs_at(x))


KEYS = {
    "new": lambda: jax.random.key(5),
    "old": lambda: jax.random.PRNGKey(5),
    "numpy integer": lambda: np.int64(5),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_is_a_jax_key_or_an_integer(key):
    np.testing.assert_array_equal(signs_at(PROBE, key()), signs_at(PROBE, 5))


def test_gauss_newton_of_a_probed_model_is_refused():
    """Its evaluations store the estimated diagonal, not the predictions of the model."""
    probed = cfgd.Local(cfgd.LinearModel(X, Y, "huber"), "hutchinson", key=0)
    with pytest.raises(ValueError, match="sum of losses"):
        cfgd.Local(probed, "gauss_newton")
