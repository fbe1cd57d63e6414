"""Objectives inside jax.jit, jax.vmap and jax.grad."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from objectives import (
    CASES,
    COUNTS,
    FORMATS,
    L2,
    LABELS,
    SIGNS,
    W0,
    WEIGHTS,
    X,
    Y,
    all_close,
    close,
    reference,
    rounded,
    wave,
)
from problems import quick

KINDS = {
    "quadratic": "quadratic",
    "smooth": "smooth",
    "least squares": "least squares, weights, l2",
    "least squares, csr": "least squares, csr, weights, l2",
    "logistic": "logistic 0/1, dense, weights, l2",
    "poisson, csr": "poisson, csr, weights, l2",
    "custom": "custom, dense, weights, l2",
    "network": "network, tanh, p = 3",
}


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


PLAIN = {name: (CASES[name].objective, jax.jit) for name in KINDS.values()} | {
    # objectives that hold a function of the user have a leaf that only filter_jit accepts
    "smooth": (CASES["smooth"].objective, eqx.filter_jit),
    KINDS["custom"]: (CASES[KINDS["custom"]].objective, eqx.filter_jit),
}
TRANSFORMED = {kind: (name, *PLAIN[name]) for kind, name in KINDS.items()} | {
    "local, smooth": ("smooth", cfgd.Local(wave), eqx.filter_jit),
    "local, network": (KINDS["network"], cfgd.Local(CASES[KINDS["network"]].objective), jax.jit),
}


JITTED = ["quadratic", "least squares, csr", "logistic", "custom", "network", "local, smooth"]


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("name", "f", "jit"), quick(TRANSFORMED, JITTED))
def test_objectives_are_pytrees_whose_values_have_grad_and_vmap_under_jit(name, f, jit):
    case = CASES[name]
    xs = jnp.stack([case.x - 0.4, case.x])

    def of(f, xs):
        return jax.vmap(jax.value_and_grad(f.value))(xs), jax.vmap(f.gradient)(xs)

    (values, by_grad), gradients = jit(of)(f, xs)
    assert isinstance(values, jax.Array)
    close(values[1], reference(name)["value"])
    close(by_grad[1], reference(name)["gradient"])
    close(gradients[1], reference(name)["gradient"])
    close(values[0], case.fn(xs[0]))
    close(gradients[0], by_grad[0])
    close(f.value(xs[1]), values[1])


TARGET_ROWS = {
    "least squares": (lambda y: cfgd.LeastSquares(X, y, L2), Y, None),
    "least squares, csr": (lambda y: cfgd.LeastSquares(FORMATS["csr"](X), y), Y, None),
    "squared": (lambda y: cfgd.LinearModel(X, y, "squared"), Y, None),
    "poisson": (lambda y: cfgd.LinearModel(X, y, "poisson", L2), COUNTS, COUNTS + 1),
    "huber, csr": (lambda y: cfgd.LinearModel(FORMATS["csr"](X), y, "huber"), Y, None),
    "custom": (lambda y: cfgd.LinearModel(X, y, rounded), Y, None),
    "logistic -1/1": (lambda y: cfgd.LinearModel(X, y), SIGNS, -SIGNS),
    "logistic 0/1": (lambda y: cfgd.LinearModel(X, y), LABELS, 1 - LABELS),
    "network": (lambda y: cfgd.ShallowNetwork(X, y, 2), Y, None),
}


MAPPED = ["least squares, csr", "poisson", "logistic -1/1", "logistic 0/1", "network"]


@pytest.mark.one_case
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("make", "y", "other"), quick(TARGET_ROWS, MAPPED))
def test_vmap_over_targets(make, y, other):
    """Objectives constructed inside vmap, with traced targets, equal those made outside."""
    ys = np.stack([y, y[::-1] - 0.5 if other is None else other])
    x = np.cos(1.0 + np.arange(make(y).dimension))

    def both(y):
        f = make(y)
        return f.value(x), f.gradient(x)

    got = jax.jit(jax.vmap(both))(ys)
    outside = eqx.filter_jit(lambda f, x: (f.value(x), f.gradient(x)))
    for row in (0, 1):
        all_close(jax.tree.map(lambda leaf, row=row: leaf[row], got), outside(make(ys[row]), x))


@pytest.mark.usefixtures("x64")
def test_vmap_over_an_objective():
    f = cfgd.LinearModel(X, COUNTS, "poisson", L2, WEIGHTS)
    ys = jnp.stack([COUNTS, COUNTS + 1, 2 * COUNTS])
    many = eqx.tree_at(lambda f: f.y, f, ys)
    axes = eqx.tree_at(lambda f: f.y, jax.tree.map(lambda _: False, f), True)
    axes = jax.tree.map(lambda batched: 0 if batched else None, axes)
    got = jax.vmap(lambda f: f.gradient(jnp.asarray(W0)), in_axes=(axes,))(many)
    for row in range(3):
        close(got[row], cfgd.LinearModel(X, ys[row], "poisson", L2, WEIGHTS).gradient(W0))


@pytest.mark.usefixtures("x64")
def test_values_have_derivatives_in_the_data_too():
    def value(y, X, l2, weights):
        return cfgd.LinearModel(X, y, "squared", l2, weights).value(jnp.asarray(W0))

    y, design, l2, weights = jax.jit(jax.grad(value, argnums=(0, 1, 2, 3)))(Y, X, L2, WEIGHTS)
    residual = X @ W0 - Y
    close(y, -WEIGHTS * residual)
    close(design, np.outer(WEIGHTS * residual, W0))
    close(l2, W0 @ W0 / 2)
    close(weights, residual**2 / 2)
