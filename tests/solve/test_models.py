"""Models as x0: their floating arrays are the parameters, and all else stays as it is."""

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd._core.pytrees import Structure

X = np.linspace(-1, 1, 12)[:, None]
Y = np.sin(2 * X[:, 0])


class Scaled(eqx.Module):
    """A network with a function, integers, a key, a number and a static field among its leaves."""

    layers: list
    activation: callable
    columns: jax.Array
    key: jax.Array
    rate: float
    is_trained: bool
    name: str = eqx.field(static=True)

    def __init__(self, seed=0, activation=jnp.tanh):
        keys = jax.random.split(jax.random.key(seed), 2)
        self.layers = [eqx.nn.Linear(1, 3, key=keys[0]), eqx.nn.Linear(3, 1, key=keys[1])]
        self.activation, self.columns = activation, jnp.array([0, 0])
        self.key, self.rate, self.is_trained, self.name = keys[0], 2.0, False, "small"

    def __call__(self, x):
        hidden = self.activation(self.layers[0](x[self.columns][:1]))
        return self.rate * self.layers[1](hidden)[0]


def errors(model, x, y):
    return jax.vmap(model)(x) - y


def mean_square(model, x, y):
    return jnp.mean(errors(model, x, y) ** 2)


def largest(model):
    return jnp.max(jnp.abs(errors(model, X, Y)))


def by_hand(model, **options):
    """Return the solution of the same problem with the model partitioned by Equinox."""
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)
    vector, unravel = jax.flatten_util.ravel_pytree(parameters)

    def residuals(v, x, y):
        return errors(eqx.combine(unravel(v.astype(vector.dtype)), rest), x, y)

    with jax.enable_x64(False):
        return cfgd.minimize(cfgd.Residuals(residuals, args=(F32(X), F32(Y))), vector, **options)


def F32(array):
    return np.asarray(array, np.float32)


def assert_only_parameters_changed(model, start):
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)
    assert eqx.tree_equal(rest, eqx.partition(start, eqx.is_inexact_array)[1])
    assert type(model) is type(start)
    return jax.tree.leaves(parameters)


def test_residuals_of_a_module_with_a_record_and_a_callback():
    model, seen = Scaled(), []

    def compare(so_far):
        seen.append(np.sum(errors_in_numpy(jax.tree.leaves(so_far.x.layers)) ** 2) / 2)

    f = cfgd.Residuals(errors, args=(F32(X), F32(Y)))
    record = {"validation": largest}
    found = cfgd.minimize(f, model, max_iterations=8, record=record, callback=compare)
    leaves = assert_only_parameters_changed(found.x, model)
    assert all(leaf.dtype == np.float32 for leaf in leaves)
    np.testing.assert_allclose(found.history["value"][1:-1], seen, rtol=1e-3)
    r = errors_in_numpy(leaves)
    assert found.value == pytest.approx(np.sum(r**2) / 2, rel=1e-3)
    assert found.value < 0.01 * found.history["value"][0]
    assert found.history["validation"][-1] == pytest.approx(np.max(np.abs(r)), rel=1e-3)


@pytest.mark.slow
def test_a_module_is_fitted_as_its_parameters_are():
    model = Scaled()
    f = cfgd.Residuals(errors, args=(F32(X), F32(Y)))
    found, want = cfgd.minimize(f, model, max_iterations=8), by_hand(model, max_iterations=8)
    leaves = [np.ravel(leaf) for leaf in assert_only_parameters_changed(found.x, model)]
    np.testing.assert_allclose(np.concatenate(leaves), want.x, rtol=2e-3, atol=1e-4)


def test_a_function_of_a_module_in_float64_with_args_and_a_checkpoint(tmp_path):
    model = Scaled()
    options = {"args": (X, Y), "checkpoint": tmp_path / "run"}
    cfgd.minimize(mean_square, model, max_iterations=5, **options)
    resumed = cfgd.minimize(mean_square, model, max_iterations=9, **options)
    straight = cfgd.minimize(mean_square, model, args=(X, Y), max_iterations=9)
    leaves = assert_only_parameters_changed(resumed.x, model)
    assert all(leaf.dtype == np.float64 for leaf in leaves)
    assert eqx.tree_equal(resumed.x, straight.x)
    assert resumed.value == straight.value == pytest.approx(np.mean(errors_in_numpy(leaves) ** 2))


def errors_in_numpy(leaves):
    w1, b1, w2, b2 = (np.asarray(leaf, float) for leaf in leaves)
    return 2 * (np.tanh(X @ w1.T + b1) @ w2.T + b2)[:, 0] - Y


def test_models_that_differ_in_parameters_alone_share_a_structure():
    first, second = Structure.of(Scaled(0)), Structure.of(Scaled(0))
    assert first == second
    assert hash(first) == hash(second)
    assert first != Structure.of(Scaled(0, activation=jnp.sin))
    assert first != Structure.of(eqx.tree_at(lambda m: m.columns, Scaled(0), jnp.array([0, 1])))
    assert first != Structure.of(eqx.tree_at(lambda m: m.rate, Scaled(0), 3.0))


def test_numbers_beside_a_module_are_parameters_and_functions_are_not():
    bowl = eqx.nn.Linear(1, 1, key=jax.random.key(0))
    x0 = {"net": bowl, "nu": 0.1, "square": jnp.square}

    def f(p):
        w, b = p["net"].weight[0, 0], p["net"].bias[0]
        return p["square"](w - 1) + p["square"](b + 2) + p["square"](p["nu"] - 0.5)

    found = cfgd.minimize(f, x0, bounds={"nu": (0, 0.3)})
    assert found.x["nu"] == np.float32(0.3)
    assert found.active_mask["nu"] == 1
    assert found.active_mask["square"] is None
    assert found.x["square"] is jnp.square
    assert float(found.x["net"].bias[0]) == pytest.approx(-2, rel=1e-5)
    gradient = cfgd.Smooth(f).gradient(x0)
    assert gradient["square"] is None
    assert gradient["nu"] == pytest.approx(-0.8)


class Pair(eqx.Module):
    a: float
    b: float


def test_a_module_of_numbers_is_fitted_whole():
    found = cfgd.minimize(lambda p: (p.a - 1) ** 2 + (p.b - 2) ** 2, Pair(0.0, 0.0))
    assert (float(found.x.a), float(found.x.b)) == pytest.approx((1, 2))


def test_a_module_without_numbers_is_refused():
    with pytest.raises(ValueError, match=r"`minimize\(x0=...\)` must hold at least one number"):
        cfgd.minimize(lambda p: 0.0, eqx.nn.Lambda(jnp.tanh))


def test_a_number_that_is_not_finite_is_named():
    model = eqx.tree_at(lambda m: m.layers[0].bias, Scaled(), jnp.array([0.0, jnp.nan, 0.0]))
    with pytest.raises(ValueError, match=r"`minimize\(x0.layers\[0\].bias=...\)` must be finite"):
        cfgd.minimize(mean_square, model, args=(X, Y))


@pytest.mark.slow
def test_a_sweep_bounds_and_a_gradient_check_of_a_module():
    model = Scaled()
    steps = cfgd.GradientDescent(cfgd.FixedStep([0.01, 0.1]))
    ends = cfgd.sweep(mean_square, model, steps, args=(X, Y), max_iterations=20)
    assert_only_parameters_changed(ends[1].x, model)
    assert float(mean_square(ends[1].x, X, Y)) == pytest.approx(ends.value[1], rel=1e-5)
    with pytest.raises(ValueError, match="must be given for numbers, arrays, dicts"):
        cfgd.minimize(mean_square, model, args=(X, Y), bounds=[(0, 1)])
    check = cfgd.check_gradient(mean_square, model, args=(X, Y))
    assert check
    assert "x.layers[0].weight[0][0]" in str(check)
    at = cfgd.argmin(mean_square, model, (F32(X), F32(Y)), tolerance=1e-2)
    assert_only_parameters_changed(at, model)


@pytest.mark.slow
def test_a_flax_module_keeps_its_running_means_counters_and_keys():
    nnx = pytest.importorskip("flax.nnx")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(1, 4, rngs=rngs)
            self.norm = nnx.BatchNorm(4, use_running_average=True, rngs=rngs)
            self.drop = nnx.Dropout(0.5, deterministic=True, rngs=rngs)
            self.last = nnx.Linear(4, 1, rngs=rngs)
            self.count = nnx.Variable(jnp.array(3))

        def __call__(self, x):
            return self.last(self.drop(self.norm(jnp.tanh(self.first(x)))))[..., 0]

    model = Net(nnx.Rngs(0))
    model.norm.mean.set_value(jnp.full(4, 0.25))
    f = cfgd.Residuals(lambda m, x, y: m(x) - y, args=(F32(X), F32(Y)))
    found = cfgd.minimize(f, model, max_iterations=10)
    assert isinstance(found.x, Net)
    np.testing.assert_array_equal(found.x.norm.mean.get_value(), np.full(4, 0.25))
    assert int(found.x.count.get_value()) == 3
    assert found.value == pytest.approx(float(jnp.sum((found.x(X) - Y) ** 2) / 2), rel=1e-3)
    assert found.value < 0.1 * found.history["value"][0]
