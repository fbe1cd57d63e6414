"""Networks: Levenberg-Marquardt on the hidden weights, with the best output weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd.methods.auto import variable_projection
from cfgd.methods.auto.damped_system import damped_system
from cfgd.methods.auto.variable_projection import ReducedOracle, ReducedState, VariableProjection
from cfgd.objectives.host import host_objective

RNG = np.random.default_rng(5)
Z = np.sort(RNG.uniform(-1, 1.5, 23))
TARGET = np.sin(4 * Z) + 0.3 * Z
UNITS = 9  # more weights than samples
NETWORK = cfgd.ShallowNetwork(Z, TARGET, UNITS)
NARROW = cfgd.ShallowNetwork(Z, TARGET, 5)
HOST = host_objective(NETWORK)
X0 = NETWORK.init(2)
GAMMA = np.float64(0.03)


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


def features(w):
    return jnp.tanh(jnp.asarray(np.c_[Z, np.ones_like(Z)]) @ w.reshape(2, UNITS))


def reduced(w, gamma=GAMMA):
    """Return the least |Phi a - y|^2 / 2 + gamma/2 |a|^2, by the normal equations in JAX."""
    phi = features(w)
    a = jnp.linalg.solve(phi.T @ phi + gamma * jnp.eye(UNITS), phi.T @ TARGET)
    return jnp.sum((phi @ a - TARGET) ** 2) / 2 + gamma / 2 * a @ a


def evaluation_at_start(gamma=GAMMA):
    """Return the oracle of the reduced problem, and the evaluation at the start."""
    w = X0[: NETWORK.hidden]
    oracle = ReducedOracle(HOST, gamma, np.inf, w)
    return oracle, oracle.evaluate(w)


# ---------------------------------------------------------------- the reduced problem


def test_the_output_weights_are_those_of_least_squares():
    _, at = evaluation_at_start()
    phi = np.asarray(features(at.x))
    stacked = np.r_[phi, np.sqrt(GAMMA) * np.eye(UNITS)]
    a, *_ = np.linalg.lstsq(stacked, np.r_[TARGET, np.zeros(UNITS)])
    np.testing.assert_allclose(at.aux.output, a, rtol=1e-10)
    np.testing.assert_allclose(at.value, reduced(at.x), rtol=1e-12)
    np.testing.assert_allclose(at.aux.value, NETWORK.value(np.r_[at.x, a]), rtol=1e-10)


def test_the_gradient_is_that_of_the_reduced_function():
    _, at = evaluation_at_start()
    np.testing.assert_allclose(at.gradient, jax.grad(reduced)(jnp.asarray(at.x)), rtol=1e-8)


def test_the_jacobian_is_kaufmans():
    """That of the network in w at fixed a, projected off the span of the features."""
    oracle, at = evaluation_at_start()
    J, r = oracle.curvature(at).rows()
    phi = np.asarray(features(at.x))
    stacked = np.r_[phi, np.sqrt(GAMMA) * np.eye(UNITS)]
    np.testing.assert_allclose(stacked.T @ J, 0, atol=1e-12)
    change = jax.jacobian(lambda w: features(w) @ at.aux.output)(jnp.asarray(at.x))
    change = np.r_[change, np.zeros((UNITS, at.x.size))]
    off = change - stacked @ np.linalg.solve(stacked.T @ stacked, stacked.T @ change)
    np.testing.assert_allclose(J, off, atol=1e-12)
    np.testing.assert_allclose(r[: len(Z)], phi @ at.aux.output - TARGET, atol=1e-13)


def test_the_jacobian_is_that_of_the_residuals_where_these_are_small():
    """By finite differences: what Kaufman leaves out is the residual times a derivative of Phi."""
    small = cfgd.ShallowNetwork(Z, TARGET, 3)
    w, a = np.array([2.0, -1.0, 3.0, 0.3, 1.0, -2.0]), np.array([1.0, -2.0, 0.5])
    fitted = host_objective(cfgd.ShallowNetwork(Z, small.predict(np.r_[w, a], Z), 3))
    oracle = ReducedOracle(fitted, np.float64(1e-12), np.inf, w)
    at = oracle.evaluate(w)
    np.testing.assert_allclose(at.aux.output, a, rtol=1e-6)
    curvature = oracle.curvature(at)
    J = curvature.rows().jacobian
    h = 1e-6
    differences = [
        (curvature.residuals_at(w + h * e) - curvature.residuals_at(w - h * e)) / (2 * h)
        for e in np.eye(w.size)
    ]
    np.testing.assert_allclose(J, np.transpose(differences), atol=1e-5 * abs(J).max())


@pytest.mark.slow
def test_the_smaller_of_the_two_matrices_is_factorised():
    z = RNG.uniform(-1, 1, (6, 5))
    wide = cfgd.ShallowNetwork(z, z.sum(1), 4)
    w = wide.init(0)[: wide.hidden]
    oracle = ReducedOracle(host_objective(wide), GAMMA, np.inf, w)
    at = oracle.evaluate(w)
    curvature = oracle.curvature(at)
    assert curvature.shape == (6 + 4, 6 * 4)
    system = damped_system(oracle, curvature, at, 0 * w, np.float64(1))
    J = curvature.rows().jacobian
    matrix = J.T @ J + 0.1 * np.diag(system.scaling)
    np.testing.assert_allclose(system.solve(0.1).p, np.linalg.solve(matrix, at.gradient), rtol=1e-9)
    assert cfgd.minimize(wide, wide.init(0)).value < 1e-20


def test_a_trial_that_does_not_lower_f_itself_has_an_infinite_value():
    w = X0[: NETWORK.hidden]
    f = ReducedOracle(HOST, GAMMA, np.inf, w).evaluate(w).aux.value
    assert ReducedOracle(HOST, GAMMA, f, w).value(w) == np.inf
    assert ReducedOracle(HOST, GAMMA, f * (1 + 1e-12), w).value(w) < np.inf


# ---------------------------------------------------------------- runs


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, (5.0, 0.1)])
def test_f_falls_in_every_step_and_much_further_than_by_steps_on_all_weights(scale):
    z = np.linspace(-1, 1, 60)
    network = cfgd.ShallowNetwork(z, np.sin(2 * np.pi * z) * np.exp(-(z**2)), 25)
    x0 = network.init(0, scale)
    ends = cfgd.minimize(network, x0, tolerance=0.0, max_iterations=60, record={"gamma": "gamma"})
    assert np.all(np.diff(ends.history["value"]) < 0)
    assert np.all(ends.history["gamma"][1:] > 0)
    all_weights = cfgd.minimize(
        network, x0, cfgd.Auto("levenberg_marquardt"), tolerance=0.0, max_iterations=60
    )
    assert ends.value < all_weights.value / 100
    np.testing.assert_allclose(network.value(ends.x), ends.value, rtol=1e-3, atol=1e-20)
    np.testing.assert_allclose(ends.history["gradient_norm"][-1], ends.gradient_norm)
    gradient = np.linalg.norm(jax.grad(network.value)(jnp.asarray(ends.x)))
    # large output weights with sums near zero: a residual is known to eps |Phi| |a|
    J = np.asarray(jax.jacobian(lambda x: network.predict(x, z))(jnp.asarray(ends.x)))
    terms = abs(J[:, network.hidden :]) @ abs(ends.x[network.hidden :])
    rounding = np.finfo(float).eps * np.linalg.norm(abs(J).T @ terms)
    np.testing.assert_allclose(ends.gradient_norm, gradient, rtol=1e-3, atol=rounding)


@pytest.mark.slow
def test_the_end_is_a_minimiser_without_the_penalty(unchecked):
    z = np.linspace(-1, 1, 80)
    noise = 0.05 * np.random.default_rng(1).normal(size=80)
    network = cfgd.ShallowNetwork(z, np.tanh(3 * z - 1) - 0.5 * np.tanh(5 * z + 2) + noise, 2)
    ends = cfgd.minimize(network, network.init(1))
    assert ends.success
    hessian = jax.hessian(network.value)(jnp.asarray(ends.x))
    assert np.linalg.eigvalsh(hessian)[0] > 0
    newton = np.linalg.solve(hessian, jax.grad(network.value)(jnp.asarray(ends.x)))
    assert np.abs(newton).max() < 1e-6 * np.abs(ends.x).max()


@pytest.mark.slow
def test_a_good_start_is_not_made_worse():
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
def test_starts_with_dependent_or_saturated_features(x0):
    ends = cfgd.minimize(NETWORK, x0, max_iterations=100)
    assert np.isfinite(ends.x).all()
    assert ends.value <= NETWORK.value(x0)
    assert np.all(np.diff(ends.history["value"]) <= 0)


@pytest.mark.slow
def test_targets_that_are_zero():
    network = cfgd.ShallowNetwork(Z, 0 * Z, UNITS)
    ends = cfgd.minimize(network, X0)
    assert ends.success
    assert ends.value < 1e-25


@pytest.mark.slow
def test_an_activation_of_the_user_takes_steps_on_all_weights(monkeypatch):
    network = cfgd.ShallowNetwork(Z, TARGET, UNITS, lambda u: u / (1 + u * u) ** 0.5)

    def refuse(*args):
        pytest.fail("a step was taken on the hidden weights alone")

    monkeypatch.setattr(variable_projection, "reduced_step", refuse)
    assert cfgd.minimize(network, X0, max_iterations=20).value < network.value(X0) / 100
    lm = cfgd.Auto("levenberg_marquardt")
    assert cfgd.minimize(NETWORK, X0, lm, max_iterations=20).iterations == 20


@pytest.mark.slow
def test_a_sweep_is_its_runs():
    starts = np.stack([X0, -X0])
    swept = cfgd.sweep(NETWORK, starts, cfgd.Auto(), max_iterations=20)
    for x0, x in zip(starts, swept.x, strict=True):
        np.testing.assert_array_equal(x, cfgd.minimize(NETWORK, x0, max_iterations=20).x)


@pytest.mark.slow
def test_float32_stays_float32():
    network = cfgd.ShallowNetwork(Z.astype(np.float32), TARGET.astype(np.float32), UNITS)
    ends = cfgd.minimize(network, X0.astype(np.float32))
    assert ends.x.dtype == np.float32
    assert ends.value < 1e-5
    assert np.all(np.diff(ends.history["value"]) <= 0)


def run_and_kinds(monkeypatch, network):
    """Return a run, and of each step whether it began with the hidden weights."""
    seen, step = [], VariableProjection.step

    def record(self, oracle, state, goal):
        seen.append(isinstance(state, ReducedState))
        return step(self, oracle, state, goal)

    with monkeypatch.context() as patch:
        patch.setattr(VariableProjection, "step", record)
        x0 = network.init(2)
        return cfgd.minimize(network, x0, tolerance=0.0, max_iterations=60), seen


@pytest.mark.slow
def test_steps_on_all_weights_go_on_where_progress_is_slow(monkeypatch):
    """The iteration count of the history has no gap."""
    monkeypatch.setattr(variable_projection, "SLOW", 0.5)
    ends, seen = run_and_kinds(monkeypatch, NETWORK)
    hidden = np.flatnonzero(seen)
    assert hidden[0] == 0
    assert 5 <= len(hidden) < 60
    assert np.all(np.diff(hidden) == 1)
    assert not seen[-1]
    assert np.array_equal(ends.history["iteration"], np.arange(ends.iterations + 1))


@pytest.mark.slow
def test_with_fewer_weights_than_samples_steps_on_all_weights_go_first(monkeypatch):
    ends, seen = run_and_kinds(monkeypatch, NARROW)
    values = ends.history["value"]
    first = int(np.flatnonzero(values <= variable_projection.LOW * values[0])[0])
    assert 1 < first < 50
    assert not any(seen[:first])
    assert all(seen[first : first + 5])
    monkeypatch.setattr(variable_projection, "AFTER", 3)
    _, seen = run_and_kinds(monkeypatch, NARROW)
    assert not any(seen[:3])
    assert seen[3]


@pytest.mark.slow
def test_a_small_network_ends_as_low_as_by_steps_on_all_weights(unchecked):
    """From every start; by steps on the hidden weights alone some end a thousand times higher."""
    z = np.linspace(-1, 1, 60)
    network = cfgd.ShallowNetwork(z, np.sin(8 * z), 6)
    for seed in range(6):
        x0 = network.init(seed)
        both = cfgd.minimize(network, x0, max_iterations=150)
        whole = cfgd.minimize(network, x0, cfgd.Auto("levenberg_marquardt"), max_iterations=150)
        assert both.value <= 10 * whole.value


@pytest.mark.slow
def test_a_run_from_a_checkpoint_is_the_run_without_one(tmp_path, unchecked):
    settings = {"tolerance": 0.0, "record": {"gamma": "gamma"}}
    whole = cfgd.minimize(NETWORK, X0, max_iterations=30, **settings)
    path = tmp_path / "run.npz"
    cfgd.minimize(NETWORK, X0, max_iterations=11, checkpoint=path, **settings)
    ends = cfgd.minimize(NETWORK, X0, max_iterations=30, checkpoint=path, **settings)
    assert ends.x.tobytes() == whole.x.tobytes()
    np.testing.assert_array_equal(ends.history["gamma"], whole.history["gamma"])


def test_a_rescaled_network_has_the_solver_of_every_other_network():
    """The gradient at the start is beyond 1e60, so that a multiple of f is minimised."""
    huge = cfgd.ShallowNetwork(Z, 1e70 * TARGET, UNITS)
    ends = cfgd.minimize(huge, X0, max_iterations=1)
    assert ends.how == cfgd.minimize(NETWORK, X0, max_iterations=1).how
    assert "variable projection" in ends.how


def test_the_summary_names_variable_projection():
    own = cfgd.ShallowNetwork(Z, TARGET, UNITS, lambda u: u / (1 + u * u) ** 0.5)
    assert "output weights" not in str(cfgd.minimize(own, X0, max_iterations=1))
    assert "variable projection of the output weights" in str(
        cfgd.minimize(NETWORK, X0, max_iterations=1)
    )
