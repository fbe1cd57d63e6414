"""Networks: Tikhonov steps on the hidden weights, with the output weights that are the best."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cfgd._core.either import Unbound
from cfgd.methods.auto.projected import Projected, ProjectedState
from cfgd.objectives.network.projection import Projection

import cfgd
from cfgd._core.arrays import to_numpy
from cfgd.methods.auto import projected

RNG = np.random.default_rng(5)
Z = np.sort(RNG.uniform(-1, 1.5, 23))
TARGET = np.sin(4 * Z) + 0.3 * Z
UNITS = 9  # more weights than samples
NETWORK = cfgd.ShallowNetwork(Z, TARGET, UNITS)
NARROW = cfgd.ShallowNetwork(Z, TARGET, 5)
HOST = Unbound(to_numpy(NETWORK))
X0 = NETWORK.init(2)
GAMMA = np.float64(0.03)
INF = np.float64(np.inf)


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


def features(w):
    return jnp.tanh(jnp.asarray(np.c_[Z, np.ones_like(Z)]) @ w.reshape(2, UNITS))


def by_hand(w, gamma=GAMMA):
    """min over a of |Phi a - y|^2 / 2 + gamma/2 |a|^2, by the normal equations in JAX."""
    phi = features(w)
    a = jnp.linalg.solve(phi.T @ phi + gamma * jnp.eye(UNITS), phi.T @ TARGET)
    return jnp.sum((phi @ a - TARGET) ** 2) / 2 + gamma / 2 * a @ a


def standing(gamma=GAMMA):
    """The projection and its point at the hidden weights of the start."""
    projection = Projection(HOST, gamma, INF)
    w = X0[: NETWORK.hidden]
    return projection, projection.ready(projection.evaluate(w), 0 * w)


def test_its_value_is_the_least_over_the_output_weights():
    _, point = standing()
    phi = np.asarray(features(point.x))
    stacked = np.r_[phi, np.sqrt(GAMMA) * np.eye(UNITS)]
    a, *_ = np.linalg.lstsq(stacked, np.r_[TARGET, np.zeros(UNITS)])
    np.testing.assert_allclose(point.aux.output, a, rtol=1e-10)
    np.testing.assert_allclose(point.value, by_hand(point.x), rtol=1e-12)
    whole = np.r_[point.x, a]
    np.testing.assert_allclose(point.aux.value, NETWORK.value(whole), rtol=1e-10)


def test_its_gradient_is_that_of_the_least_value():
    _, point = standing()
    np.testing.assert_allclose(point.gradient, jax.grad(by_hand)(jnp.asarray(point.x)), rtol=1e-8)


def test_its_rows_are_off_the_span_of_the_features_and_those_of_gauss_and_newton_there():
    projection, point = standing()
    D, matrix, rows, r = projection.normal(point, 0 * point.x)
    J = rows * np.sqrt(D)
    phi = np.asarray(features(point.x))
    stacked = np.r_[phi, np.sqrt(GAMMA) * np.eye(UNITS)]
    np.testing.assert_allclose(stacked.T @ J, 0, atol=1e-12)
    # Kaufman's rows: the change of N with w at fixed a, projected
    change = jax.jacobian(lambda w: features(w) @ point.aux.output)(jnp.asarray(point.x))
    change = np.r_[change, np.zeros((UNITS, point.x.size))]
    off = change - stacked @ np.linalg.solve(stacked.T @ stacked, stacked.T @ change)
    np.testing.assert_allclose(J, off, atol=1e-12)
    np.testing.assert_allclose(
        matrix, rows.T @ rows if len(rows) >= rows.shape[1] else rows @ rows.T
    )
    np.testing.assert_allclose(r[: len(Z)], phi @ point.aux.output - TARGET, atol=1e-13)


def test_the_smaller_of_the_two_matrices_is_factored():
    z = RNG.uniform(-1, 1, (6, 5))
    wide = cfgd.ShallowNetwork(z, z.sum(1), 4)
    projection = Projection(Unbound(to_numpy(wide)), GAMMA, INF)
    w = wide.init(0)[: wide.hidden]
    point = projection.ready(projection.evaluate(w), 0 * w)
    assert projection.normal(point, 0 * w).matrix.shape == (6 + 4, 6 + 4)
    assert cfgd.minimize(wide, wide.init(0)).value < 1e-20


def test_where_f_itself_does_not_fall_a_value_is_infinite():
    w = X0[: NETWORK.hidden]
    f = Projection(HOST, GAMMA, INF).evaluate(w).aux.value
    assert Projection(HOST, GAMMA, f).value(w) == np.inf
    assert Projection(HOST, GAMMA, f * (1 + 1e-12)).value(w) < np.inf


@pytest.mark.parametrize("scale", [1.0, (5.0, 0.1)])
def test_the_loss_falls_in_every_step_and_much_further_than_with_all_weights_at_once(scale):
    z = np.linspace(-1, 1, 60)
    network = cfgd.ShallowNetwork(z, np.sin(2 * np.pi * z) * np.exp(-(z**2)), 25)
    x0 = network.init(0, scale)
    ends = cfgd.minimize(network, x0, tolerance=0.0, max_iterations=60, record={"gamma": "gamma"})
    assert np.all(np.diff(ends.history["value"]) < 0)
    assert np.all(ends.history["gamma"][1:] > 0)
    all_at_once = cfgd.minimize(
        network, x0, cfgd.Auto("tikhonov"), tolerance=0.0, max_iterations=60
    )
    assert ends.value < all_at_once.value / 100
    np.testing.assert_allclose(network.value(ends.x), ends.value, rtol=1e-3, atol=1e-20)
    np.testing.assert_allclose(ends.history["gradient_norm"][-1], ends.gradient_norm)
    gradient = jax.grad(network.value)(jnp.asarray(ends.x))
    np.testing.assert_allclose(ends.gradient_norm, np.linalg.norm(gradient), rtol=0.5, atol=1e-12)


def test_with_noise_it_ends_at_a_minimiser_of_the_loss_without_gamma(unchecked):
    z = np.linspace(-1, 1, 80)
    noise = 0.05 * np.random.default_rng(1).normal(size=80)
    network = cfgd.ShallowNetwork(z, np.tanh(3 * z - 1) - 0.5 * np.tanh(5 * z + 2) + noise, 2)
    ends = cfgd.minimize(network, network.init(1))
    assert ends.success
    hessian = jax.hessian(network.value)(jnp.asarray(ends.x))
    assert np.linalg.eigvalsh(hessian)[0] > 0
    newton = np.linalg.solve(hessian, jax.grad(network.value)(jnp.asarray(ends.x)))
    assert np.abs(newton).max() < 1e-6 * np.abs(ends.x).max()


def test_a_start_that_is_good_already_is_kept():
    first = cfgd.minimize(NETWORK, X0, max_iterations=40)
    again = cfgd.minimize(NETWORK, first.x, max_iterations=5)
    assert again.value <= first.value
    assert again.history["value"][0] == first.value


STARTS = {
    "no output": np.r_[X0[: NETWORK.hidden], np.zeros(UNITS)],
    "no hidden": np.r_[np.zeros(NETWORK.hidden), X0[NETWORK.hidden :]],
    "nothing": np.zeros(NETWORK.dimension),
    "saturated": 1e4 * X0,
    "equal units": np.repeat([0.5, -0.2, 0.7], UNITS),
}


@pytest.mark.parametrize("x0", STARTS.values(), ids=STARTS)
def test_starts_at_which_features_say_little_or_depend_on_each_other(x0):
    ends = cfgd.minimize(NETWORK, x0, max_iterations=100)
    assert np.isfinite(ends.x).all()
    assert ends.value <= NETWORK.value(x0)
    assert np.all(np.diff(ends.history["value"]) <= 0)


def test_targets_that_are_zero_are_met_at_once():
    network = cfgd.ShallowNetwork(Z, 0 * Z, UNITS)
    ends = cfgd.minimize(network, X0)
    assert ends.success
    assert ends.value < 1e-25


def test_what_numpy_cannot_see_takes_all_weights_at_once(monkeypatch):
    network = cfgd.ShallowNetwork(Z, TARGET, UNITS, lambda u: u / (1 + u * u) ** 0.5)

    def refuse(*args):
        pytest.fail("hidden weights were taken alone")

    monkeypatch.setattr(projected, "_walked", refuse)
    assert cfgd.minimize(network, X0, max_iterations=20).value < network.value(X0) / 100
    swept = cfgd.sweep(NETWORK, np.stack([X0, -X0]), cfgd.Auto(), max_iterations=20)
    assert (swept.value < NETWORK.value(X0) / 100).all()
    assert cfgd.minimize(NETWORK, X0, cfgd.Auto("tikhonov"), max_iterations=20).iterations == 20


def test_in_single_precision_too():
    network = cfgd.ShallowNetwork(Z.astype(np.float32), TARGET.astype(np.float32), UNITS)
    ends = cfgd.minimize(network, X0.astype(np.float32))
    assert ends.x.dtype == np.float32
    assert ends.value < 1e-5
    assert np.all(np.diff(ends.history["value"]) <= 0)


def walked(monkeypatch, network, **settings):
    """A run, and of each of its steps whether it was one on the hidden weights."""
    seen, step = [], Projected.step

    def told(self, objective, state, *more):
        seen.append(isinstance(state, ProjectedState))
        return step(self, objective, state, *more)

    with monkeypatch.context() as patch:
        patch.setattr(Projected, "step", told)
        x0 = network.init(2)
        return cfgd.minimize(network, x0, tolerance=0.0, max_iterations=60, **settings), seen


def test_where_no_more_comes_of_it_all_weights_go_on(monkeypatch):
    """And the count of iterations with them: the history shows no break."""
    monkeypatch.setattr(projected, "SLOW", 0.5)
    ends, seen = walked(monkeypatch, NETWORK)
    hidden = np.flatnonzero(seen)
    assert hidden[0] == 1  # after the look at the start
    assert 5 <= len(hidden) < 60
    assert np.all(np.diff(hidden) == 1)
    assert not seen[-1]
    assert np.array_equal(ends.history["iteration"], np.arange(ends.iterations + 1))


def test_with_fewer_weights_than_samples_all_of_them_find_a_good_valley_first(monkeypatch):
    ends, seen = walked(monkeypatch, NARROW)
    values = ends.history["value"]
    first = int(np.flatnonzero(values <= projected.LOW * values[0])[0])
    assert 1 < first < 50
    assert not any(seen[: first + 1])
    assert all(seen[first + 1 : first + 6])
    monkeypatch.setattr(projected, "AFTER", 3)
    _, seen = walked(monkeypatch, NARROW)
    assert not any(seen[:4])
    assert seen[4]


@pytest.mark.slow
def test_a_network_with_as_few_units_as_do_ends_as_low_as_with_all_weights(unchecked):
    """From every start; with the hidden weights alone some end a thousand times higher."""
    z = np.linspace(-1, 1, 60)
    network = cfgd.ShallowNetwork(z, np.sin(8 * z), 6)
    for seed in range(6):
        x0 = network.init(seed)
        both = cfgd.minimize(network, x0, max_iterations=150)
        whole = cfgd.minimize(network, x0, cfgd.Auto("tikhonov"), max_iterations=150)
        assert both.value <= 10 * whole.value


def test_a_run_that_is_continued_is_the_run_that_went_on(tmp_path):
    settings = {"tolerance": 0.0, "record": {"gamma": "gamma"}}
    whole = cfgd.minimize(NETWORK, X0, max_iterations=30, **settings)
    path = tmp_path / "run.npz"
    cfgd.minimize(NETWORK, X0, max_iterations=11, checkpoint=path, **settings)
    ends = cfgd.minimize(NETWORK, X0, max_iterations=30, checkpoint=path, **settings)
    assert ends.x.tobytes() == whole.x.tobytes()
    np.testing.assert_array_equal(ends.history["gamma"], whole.history["gamma"])


def test_it_says_what_it_does():
    own = cfgd.ShallowNetwork(Z, TARGET, UNITS, lambda u: u / (1 + u * u) ** 0.5)
    assert "output weights" not in str(cfgd.minimize(own, X0, max_iterations=1))
    assert "output weights that are the best" in str(cfgd.minimize(NETWORK, X0, max_iterations=1))
