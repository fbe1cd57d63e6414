"""The optax transformations against the core, formulas in NumPy and exact Hessians."""

import functools
import importlib
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import cfgd as core
from cfgd._core.extras import install_command
from cfgd.integrations.optax import (
    Exact,
    GaussNewton,
    Hutchinson,
    Quadrature,
    cfadam,
    cfadamw,
    cfgd,
    scale_by_caputo,
)
from problems import few, quick

# neither diagonal nor symmetric about 0, so that a wrong sign or index changes the iterates
A = np.array([[20.0, 3.0, -1.0], [3.0, 2.0, 0.5], [-1.0, 0.5, 7.0]])
B = np.array([1.0, -4.0, 2.0])
X0 = np.array([1.0, -10.0, 3.0])
DIAGONAL = np.diag(A)


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def quadratic(x):
    return x @ A @ x / 2 + B @ x


def iterates(optimizer, f, x, steps, *, by="value_fn"):
    """Return x_0, ..., x_steps; with `by="batch"` f depends on k, as the loss of a batch does."""

    @jax.jit
    def step(x, state, k):
        def loss(x):
            return f(x) if by == "value_fn" else f(x, k)

        updates, state = optimizer.update(jax.grad(loss)(x), state, x, value_fn=loss)
        return optax.apply_updates(x, updates), state

    x = jax.tree.map(jnp.asarray, x)
    state, points = optimizer.init(x), [x]
    for k in range(steps):
        x, state = step(x, state, k)
        points.append(x)
    return points


CORE = {
    f"{gamma}-{lag}-{name}": (gamma, lag, curvature)
    for gamma in (-0.4, 0.7)
    for lag in (1, 3)
    for name, curvature in {"exact": "exact", "quadrature": "quadrature", "given": DIAGONAL}.items()
}
QUICK = ["-0.4-1-exact", "0.7-3-quadrature", "-0.4-3-given"]


@pytest.mark.one_case
@pytest.mark.parametrize(("gamma", "lag", "curvature"), quick(CORE, QUICK))
def test_iterates_are_those_of_the_core(gamma, lag, curvature):
    method = core.AdaptiveTerminal(gamma=gamma, lag=lag, step=core.FixedStep(0.05))
    end = core.minimize(
        core.Quadratic(A, B),
        X0,
        method,
        max_iterations=40,
        tolerance=0.0,
        record={"x": lambda x: x},
    )
    ours = iterates(cfgd(0.05, gamma, lag, curvature=curvature), quadratic, X0, 40)
    np.testing.assert_allclose(np.stack(ours), end.history["x"], rtol=1e-10, atol=1e-10)
    moved = np.diff(end.history["x"][:10], axis=0)
    assert (moved > 0).any()  # both signs of x - c
    assert (moved < 0).any()


def rosenbrock(p):
    return 100 * (p["b"][0] - p["a"] ** 2) ** 2 + (1 - p["a"]) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("lag", few([2, 1]))
def test_iterates_on_a_pytree_are_those_of_the_local_model(lag):
    start = {"a": np.array(-1.2), "b": np.array([1.0])}
    method = core.AdaptiveTerminal(gamma=-0.3, lag=lag, step=core.FixedStep(5e-4))
    f = core.Local(core.Smooth(rosenbrock), "exact")
    end = core.minimize(f, start, method, max_iterations=30, tolerance=0.0)
    ours = iterates(cfgd(5e-4, -0.3, lag, curvature="exact"), rosenbrock, start, 30)
    np.testing.assert_allclose(ours[-1]["a"], end.x["a"], rtol=1e-10)
    np.testing.assert_allclose(ours[-1]["b"], end.x["b"], rtol=1e-10)


@pytest.mark.slow
def test_quadrature_equals_the_core():
    start = {"a": np.array(-1.2), "b": np.array([1.0])}
    method = core.AdaptiveTerminal(0.3, gamma=-0.3, step=core.FixedStep(5e-4))
    end = core.minimize(core.Smooth(rosenbrock), start, method, max_iterations=30, tolerance=0.0)
    rule = Quadrature(alpha=0.3)
    ours = iterates(cfgd(5e-4, -0.3, curvature=rule), rosenbrock, start, 30)
    np.testing.assert_allclose(ours[-1]["a"], end.x["a"], rtol=1e-10)
    local = iterates(cfgd(5e-4, -0.3, curvature="exact"), rosenbrock, start, 30)
    assert abs(local[-1]["a"] - end.x["a"]) > 1e-8  # not a quadratic: the two differ


def adam_in_numpy(lag, gamma, eta=0.1, b1=0.8, b2=0.95, eps=1e-6, decay=0.0, steps=25):
    x, past = X0.copy(), [X0.copy()] * lag
    m, v = np.zeros(3), np.zeros(3)
    for k in range(1, steps + 1):
        d = A @ x + B + gamma * np.diag(A) * (x - past[0])
        past = [*past[1:], x]
        m, v = b1 * m + (1 - b1) * d, b2 * v + (1 - b2) * d**2
        ratio = (m / (1 - b1**k)) / (np.sqrt(v / (1 - b2**k)) + eps)
        x = x - eta * (ratio + decay * x)
    return x


@pytest.mark.parametrize("lag", few([3, 1]))
def test_cfadam_is_adam_on_the_fractional_direction(lag):
    given = {"b1": 0.8, "b2": 0.95, "eps": 1e-6, "gamma": -0.6, "lag": lag, "curvature": "exact"}
    ours = iterates(cfadam(0.1, **given), quadratic, X0, 25)[-1]
    np.testing.assert_allclose(ours, adam_in_numpy(lag, -0.6), rtol=1e-10)
    ours = iterates(cfadamw(0.1, **given, weight_decay=0.03), quadratic, X0, 25)[-1]
    np.testing.assert_allclose(ours, adam_in_numpy(lag, -0.6, decay=0.03), rtol=1e-10)


def test_cfadam_with_zero_gamma_is_optax_adam():
    ours = iterates(cfadam(0.1, gamma=0.0), quadratic, X0, 20)[-1]
    theirs = iterates(optax.with_extra_args_support(optax.adam(0.1)), quadratic, X0, 20)[-1]
    np.testing.assert_allclose(ours, theirs, rtol=1e-13)  # XLA may round two programs differently


def test_constant_curvature_is_heavy_ball():
    ours = iterates(cfgd(0.05, gamma=-0.9, curvature=1 / 0.05), quadratic, X0, 30)[-1]
    ball = optax.with_extra_args_support(optax.sgd(0.05, momentum=0.9))
    np.testing.assert_allclose(ours, iterates(ball, quadratic, X0, 30)[-1], rtol=1e-10)


def test_schedules_of_gamma_and_learning_rate():
    gamma, eta = optax.linear_schedule(-0.8, 0.4, 10), optax.exponential_decay(0.05, 5, 0.7)
    ours = iterates(cfgd(eta, gamma, curvature="exact"), quadratic, X0, 15)[-1]
    x, c = X0, X0
    for k in range(15):
        d = A @ x + B + float(gamma(k)) * np.diag(A) * (x - c)
        x, c = x - float(eta(k)) * d, x
    np.testing.assert_allclose(ours, x, rtol=1e-7)  # optax's schedules are in float32


# ---------------------------------------------------------------------------------- curvatures


def model(p, X):
    return jnp.tanh(X @ p["w"]) @ p["v"] + p["b"]


def network():
    random = np.random.default_rng(0)
    params = {"w": random.normal(size=(3, 4)), "v": random.normal(size=4), "b": np.array(0.3)}
    return jax.tree.map(jnp.asarray, params), random.normal(size=(20, 3)), random.normal(size=20)


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def diagonal_after(rule, steps=1, **functions):
    """Return the diagonal in the state after some steps at the same parameters."""
    params = network()[0]
    transform = scale_by_caputo(curvature=rule)
    zeros, state = jax.tree.map(jnp.zeros_like, params), transform.init(params)

    def step(state, _):
        return transform.update(zeros, state, params, **functions)[1], None

    return flat(jax.jit(lambda state: jax.lax.scan(step, state, length=steps)[0])(state).curvature)


@functools.cache
def losses():
    params, X, y = network()

    def value(p):
        return jnp.mean(jnp.logaddexp(0, -y * model(p, X)))

    def of_predictions(z):
        return jnp.mean(jnp.logaddexp(0, -y * z))

    vector, unravel = jax.flatten_util.ravel_pytree(params)
    H = np.asarray(jax.jit(jax.hessian(lambda u: value(unravel(u))))(vector))
    J = np.asarray(jax.jit(jax.jacobian(lambda u: model(unravel(u), X)))(vector))
    L = np.asarray(jax.jit(jax.hessian(of_predictions))(model(params, X)))
    return value, lambda p: model(p, X), of_predictions, H, J.T @ L @ J


@pytest.mark.slow
def test_exact_diagonals():
    value, predict, of_predictions, H, G = losses()
    np.testing.assert_allclose(diagonal_after(Exact(), value_fn=value), np.diag(H), rtol=1e-10)
    rule, functions = GaussNewton(probes=None), {"model_fn": predict, "loss_fn": of_predictions}
    np.testing.assert_allclose(diagonal_after(rule, **functions), np.diag(G), rtol=1e-10)
    assert np.abs(np.diag(H) - np.diag(G)).max() > 0.01


def off_diagonal(M):
    """Return the standard deviation of v * Mv for random signs v."""
    return np.sqrt((M**2).sum(1) - np.diag(M) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["hutchinson", "gauss_newton"])
def test_probes_are_unbiased(which):
    value, predict, of_predictions, H, G = losses()
    kind, M = {"hutchinson": (Hutchinson, H), "gauss_newton": (GaussNewton, G)}[which]
    functions = {"value_fn": value, "model_fn": predict, "loss_fn": of_predictions}
    n = 4000
    for rule in (kind(every=1, decay=1.0), kind(every=1, decay=1.0, probes=4, seed=7)):
        mean = diagonal_after(rule, n // rule.probes, **functions)
        z = (mean - np.diag(M)) / (off_diagonal(M) / np.sqrt(n) + 1e-12)
        assert np.abs(z).max() < 4
        assert np.abs(z).max() > 0.3  # a mean of random probes, not the exact diagonal


def test_running_mean_is_updated_every_few_steps():
    """The Hessian is (k + 1) I, so that each measurement is exactly k + 1."""
    transform = scale_by_caputo(curvature=Hutchinson(every=3, decay=0.5))
    x = jnp.arange(3.0)
    state, means = transform.init(x), []

    @jax.jit
    def step(state, k):
        return transform.update(x, state, x, value_fn=lambda x: (k + 1) * x @ x / 2)[1]

    for k in range(13):
        state = step(state, k)
        means.append(float(state.curvature[0]))
    mean, expected = 0.0, []
    for k in range(13):
        if k % 3 == 0:
            mean += max(1 / (k // 3 + 1), 0.5) * (k + 1 - mean)
        expected.append(mean)
    np.testing.assert_allclose(means, expected, rtol=1e-14)


def test_measurements_that_are_not_finite_are_left_out():
    transform = scale_by_caputo(curvature=Hutchinson(every=1))
    x = jnp.array([1.0, 2.0])
    _, state = transform.update(x, transform.init(x), x, value_fn=lambda x: x @ x)
    _, state = transform.update(x, state, x, value_fn=lambda x: x[0] ** 2 + jnp.inf * x[1] ** 2)
    np.testing.assert_array_equal(state.curvature, [2.0, 2.0])


def test_gradient_and_curvature_belong_to_the_current_batch():
    random = np.random.default_rng(1)
    Xs, ys = random.normal(size=(9, 5, 3)), random.normal(size=(9, 5))

    def loss(w, k):
        return jnp.sum((jnp.asarray(Xs)[k] @ w - jnp.asarray(ys)[k]) ** 2) / 2

    ours = iterates(cfgd(0.02, -0.7, 2, curvature="exact"), loss, X0, 9, by="batch")[-1]
    w, past = X0, [X0, X0]
    for X, y in zip(Xs, ys, strict=True):
        d = X.T @ (X @ w - y) - 0.7 * (X**2).sum(0) * (w - past[0])
        past, w = [past[1], w], w - 0.02 * d
    np.testing.assert_allclose(ours, w, rtol=1e-10)


def test_complex_parameters_count_as_pairs_of_real_ones():
    def f(z):
        return 3 * z[0].real ** 2 + z[0].imag ** 2 * z[0].real + 5 * jnp.abs(z[1]) ** 2 + z[1].imag

    def of_pairs(u):
        return f(u[:2] + 1j * u[2:])

    @jax.jit
    def step(z, state):
        grads = jax.grad(f)(z).conj()  # optax's convention
        updates, state = optimizer.update(grads, state, z, value_fn=f)
        return optax.apply_updates(z, updates), state

    for curvature in ("exact", 2.0):
        optimizer = cfgd(0.03, -0.5, curvature=curvature)
        z = jnp.array([1.0 - 2.0j, 0.5 + 1.0j])
        u = iterates(optimizer, of_pairs, np.concatenate([z.real, z.imag]), 12)[-1]
        state = optimizer.init(z)
        for _ in range(12):
            z, state = step(z, state)
        np.testing.assert_allclose(z, u[:2] + 1j * u[2:], rtol=1e-12)
        step.clear_cache()


@pytest.mark.slow
def test_probes_of_complex_parameters():
    def f(z):
        return jnp.sum(jnp.array([1.0, 4.0]) * z.real**2 + jnp.array([3.0, 0.5]) * z.imag**2)

    transform, z = scale_by_caputo(curvature=Hutchinson(every=1)), jnp.array([1.0 + 2j, 3.0 - 1j])
    _, state = transform.update(z, transform.init(z), z, value_fn=f)
    np.testing.assert_allclose(state.curvature, [2.0 + 6j, 8.0 + 1j])


# -------------------------------------------------------------------------------------- errors


def updated(optimizer, params=X0, **extra):
    params = jax.tree.map(jnp.asarray, params)
    optimizer.update(params, optimizer.init(params), params, **extra)


INVALID = {
    "lag": (
        lambda: cfadam(0.1, lag=0),
        "`cfadam(lag=...)` must be an integer of at least 1, got 0.",
    ),
    "traced lag": (
        lambda: jax.jit(optax.inject_hyperparams(cfadam)(0.1, lag=2).init)(X0),
        '`cfadam(lag=...)` must be known: inject_hyperparams(cfadam, static_args="lag"), '
        "got a traced value.",
    ),
    "gamma": (
        lambda: cfgd(0.1, np.zeros(2)),
        "`cfgd(gamma=...)` must be a number or a schedule, got shape (2,).",
    ),
    "curvature": (
        lambda: cfgd(0.1, curvature="fisher"),
        "`cfgd(curvature=...)` must be one of hutchinson, gauss_newton, exact, quadrature, a rule, "
        "a number or a pytree of numbers, got 'fisher'.",
    ),
    "diagonal": (
        lambda: updated(cfgd(0.1, curvature=np.ones(2))),
        "`cfgd(curvature=...)` must be a number or have the structure and the shapes of the "
        "parameters, got (2,).",
    ),
    "every": (
        lambda: Hutchinson(every=0),
        "`Hutchinson(every=...)` must be an integer of at least 1, got 0.",
    ),
    "decay": (
        lambda: GaussNewton(decay=1.5),
        "`GaussNewton(decay=...)` must lie in [0, 1], got 1.5.",
    ),
    "alpha": (
        lambda: Quadrature(alpha=1.0),
        "`Quadrature(alpha=...)` must lie in (0, 1), got 1.0.",
    ),
    "params": (
        lambda: cfgd(0.1).update(X0, cfgd(0.1).init(X0)),
        "`cfgd.update(params=...)` must be given: the direction needs earlier parameters, got "
        "None.",
    ),
    "value_fn": (
        lambda: updated(cfadamw(0.1)),
        "`cfadamw.update(value_fn=...)` must be a function of the parameters, the loss of the "
        "batch; the curvature needs it, got None.",
    ),
    "loss_fn": (
        lambda: updated(cfadamw(0.1, curvature="gauss_newton"), model_fn=jnp.sin),
        "`cfadamw.update(loss_fn=...)` must be a function of the predictions, the loss of the "
        "batch; the curvature needs it, got None.",
    ),
    "value": (
        lambda: updated(cfgd(0.1), value_fn=jnp.sin),
        "`cfgd.update(value_fn=...)` must return one real number, got shape (3,) and dtype "
        "float64.",
    ),
    "complex": (
        lambda: updated(cfgd(0.1, curvature="quadrature"), X0 + 1j, value_fn=jnp.sum),
        "`cfgd.update(params=...)` must be real for the curvature quadrature, got complex numbers.",
    ),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("make", "message"), INVALID.values(), ids=INVALID)
def test_invalid_arguments_raise(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as raised:
        make()
    assert raised.value.args == (message,)  # JAX may add notes


def test_missing_optax_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    monkeypatch.delitem(sys.modules, "cfgd.integrations.optax")
    message = f"`cfgd.integrations.optax` needs optax: {install_command('optax')}."
    with pytest.raises(ModuleNotFoundError, match=f"^{re.escape(message)}$"):
        importlib.import_module("cfgd.integrations.optax")
