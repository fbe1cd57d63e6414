"""Networks: the step of a shallow one against NumPy, and a deep one that trains."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from networks import STARTS, TARGET, UNITS, Z

import cfgd
from problems import few, identity, quick

NODES, ALPHA = 4, 0.3


CANDIDATES = [t * 10.0**-k for k in range(1, 9) for t in (1, 0.75, 0.5, 0.25)]


def layers(x):
    a_1, a_2, a_3 = np.split(x, 3)
    inside = np.outer(Z, a_1) + a_2
    phi = np.tanh(inside)
    return a_3, phi, phi @ a_3 - TARGET


def network_value(x):
    return np.sum(layers(x)[2] ** 2) / 2


def network_slopes(x):
    """Return the gradient and the diagonal of the Hessian."""
    a_3, phi, r = layers(x)
    slope, bend = 1 - phi**2, -2 * phi * (1 - phi**2)
    by = np.stack([slope * Z[:, None], slope, phi / np.where(a_3 == 0, 1, a_3)]) * a_3
    twice = np.stack([bend * Z[:, None] ** 2, bend, 0 * phi]) * a_3
    first = np.einsum("i,kij->kj", r, by)
    return first.ravel(), (np.sum(by**2, 1) + np.einsum("i,kij->kj", r, twice)).ravel()


def fractional(x, c, alpha, gamma):
    """Return the direction, with SciPy's nodes and one coordinate at a time."""
    u, w = scipy.special.roots_jacobi(NODES, -alpha, 0.0)
    beta = gamma + (1 - alpha) / (2 - alpha)
    d = np.zeros(x.size)
    for j in range(x.size):
        for node, weight in zip((1 + u) / 2, w / w.sum(), strict=True):
            t = x.copy()
            t[j] = c[j] + node * (x[j] - c[j])
            first, second = network_slopes(t)
            d[j] += weight * (first[j] + beta * (x[j] - c[j]) * second[j])
    return d


def network_step(x, d):
    """Return the best candidate for the hidden layer and <g, d>/(d'Ad) of the output layer.

    See erratum 8.
    """
    hidden = np.arange(x.size) < 2 * UNITS
    g, (_, phi, _) = network_slopes(x)[0], layers(x)
    out = d[~hidden]
    output = g[~hidden] @ out / (out @ (phi.T @ phi) @ out)
    tried = [network_value(x - np.where(hidden, eta, output) * d) for eta in CANDIDATES]
    first, second = np.sort(tried)[:2]
    assert second - first > 1e-6  # no tie: the best candidate is known
    return CANDIDATES[int(np.argmin(tried))], output


PAST = np.random.default_rng(99).normal(size=3 * UNITS)
STEPPED = {  # method, gamma of the direction; None is gradient descent
    "gradient descent": (cfgd.GradientDescent(cfgd.NetworkStep()), None),
    "adaptive terminal": (
        cfgd.AdaptiveTerminal(ALPHA, gamma=0.3, past=PAST, nodes=NODES, step=cfgd.NetworkStep()),
        0.3,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(STARTS))
@pytest.mark.parametrize(("method", "gamma"), STEPPED.values(), ids=STEPPED)
def test_a_network_step_has_the_numbers_of_both_layers(method, gamma, seed):
    network = cfgd.ShallowNetwork(Z, TARGET, UNITS)
    end = cfgd.minimize(
        network, STARTS[seed], method, max_iterations=3, tolerance=0, record={"x": identity}
    )
    x, c = STARTS[seed], PAST
    for got in end.history["x"][1:]:
        g, _ = network_slopes(x)
        d = g if gamma is None else fractional(x, c, ALPHA, gamma)
        if gamma is not None:  # else the run would have taken the gradient
            assert g[: 2 * UNITS] @ d[: 2 * UNITS] > 0
        inside, output = network_step(x, d)
        eta = np.where(np.arange(x.size) < 2 * UNITS, inside, output)
        np.testing.assert_allclose((x - got) / d, eta, rtol=1e-6)
        x, c = x - eta * d, x
        np.testing.assert_allclose(got, x, rtol=1e-10, atol=1e-10)


def test_the_best_of_32_depends_on_the_start():
    best = {network_step(x, network_slopes(x)[0])[0] for x in STARTS.values()}
    assert len(best) > 1
    assert max(best) < 0.1


@pytest.mark.one_case
@pytest.mark.parametrize(("method", "gamma"), STEPPED.values(), ids=STEPPED)
def test_a_shallow_network_trains(method, gamma):
    network = cfgd.ShallowNetwork(Z, TARGET, UNITS)
    end = cfgd.minimize(
        network, STARTS[0], method, max_iterations=500, tolerance=0, record={"x": identity}
    )
    values = end.history["value"]
    assert np.all(np.diff(values) <= 1e-12 * values[:-1])
    assert end.value < 0.02 * values[0]
    error = network.predict(end.x, Z) - TARGET
    np.testing.assert_allclose(end.value, error @ error / 2, rtol=1e-10)


# ---------------------------------------------------------------------------- a deep network

SHAPES = [(2, 8), (8, 8), (8, 6), (6, 1)]  # three hidden layers
POINTS = np.random.default_rng(1).uniform(-1, 1, (40, 2))
HILLS = np.sin(3 * POINTS[:, 0]) * POINTS[:, 1] + 0.3


def deep_start():
    rng = np.random.default_rng(2)
    return [
        {"W": rng.normal(size=shape) / np.sqrt(shape[0]), "b": np.zeros(shape[1])}
        for shape in SHAPES
    ]


def deep_loss(layers):
    h = POINTS
    for layer in layers[:-1]:
        h = jnp.tanh(h @ layer["W"] + layer["b"])
    return jnp.mean((h @ layers[-1]["W"] + layers[-1]["b"] - HILLS[:, None]) ** 2) / 2


DEEP = {  # gradients of an iteration: one, two for a probe, and half of one for each try
    "fixed": (cfgd.FixedStep(0.2), 3.0),
    "armijo": (cfgd.ArmijoStep(), 4.0),
}


@pytest.mark.parametrize(("step", "cost"), quick(DEEP, []))
def test_a_deep_network_trains_with_a_local_model_at_four_gradients_an_iteration(step, cost):
    f = cfgd.Local(deep_loss, "hutchinson", key=0)
    method = cfgd.AdaptiveTerminal(gamma=-0.1, step=step)
    x0 = deep_start()
    end = cfgd.minimize(f, x0, method, max_iterations=300)
    assert end.value < 0.3 * end.history["value"][0]
    assert 3 * end.iterations <= end.evaluations <= cost * end.iterations + 3  # and the start
    assert jax.tree.structure(end.x) == jax.tree.structure(x0)
    assert all(
        got.shape == start.shape and got.dtype == np.float64
        for got, start in zip(jax.tree.leaves(end.x), jax.tree.leaves(x0), strict=True)
    )
