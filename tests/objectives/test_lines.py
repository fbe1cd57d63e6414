"""Each objective's line against the general one, which evaluates every point."""

import equinox as eqx
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import cfgd
from cfgd.objectives import Line
from cfgd.objectives.network.activation import series, tanh
from objectives import CASES, all_close, arguments, close, in_float64


@eqx.filter_jit
def along(objective, x, t, d, etas, each):
    """Return what methods ask of a line."""
    line = objective.line(objective.evaluate(x), d)
    ends = [(end.x, end.value, end.gradient) for end in (line.to(etas[0]), line.to(each[0]))]
    return line.slope, line.curvature(), line.values(etas), line.values(each), ends


def without_own_line(objective):
    """Return the same objective with the general line and Hessian products."""

    class Plain(type(objective)):
        def line(self, evaluation, d, slope=None):
            return cfgd.Objective.line(self, evaluation, d, slope)

        def hessian_times(self, evaluation, v):
            return cfgd.Objective.hessian_times(self, evaluation, v)

    plain = object.__new__(Plain)
    for name, value in vars(objective).items():
        object.__setattr__(plain, name, value)
    return plain


WITH_OWN = ["quadratic", "network, tanh, p = 3", "custom, dense, weights, l2"]


@pytest.mark.one_case
@pytest.mark.parametrize("name", WITH_OWN)
def test_a_structured_line_equals_the_general_one(name):
    case = CASES[name]
    plain = without_own_line(case.objective)
    assert type(plain) is not type(case.objective)
    ours = in_float64(along, case.objective, *arguments(case.x))
    general = in_float64(along, plain, *arguments(case.x))
    all_close(ours, general)


Z, Y = np.linspace(-1, 1, 9), np.sin(np.linspace(0, 3, 9))
NETWORK = cfgd.ShallowNetwork(Z, Y, 4)


def test_each_coordinate_of_a_network_may_have_its_own_step():
    """Regression: taking the first and the last step alone gave 2.24 instead of 0.99."""
    x = NETWORK.init(3)
    d, eta = np.cos(np.arange(12.0)), 0.3 * np.sin(np.arange(12.0) + 1)

    @jax.jit
    def values(x, d, eta):
        return NETWORK.line(NETWORK.evaluate(x), d).values(eta[None])

    got = in_float64(values, x, d, eta)
    close(got, np.array([NETWORK.value(x - eta * d)]), 1e-13)


@pytest.mark.slow
def test_layers_of_a_network_have_one_step_each():
    x, d = NETWORK.init(4), np.cos(np.arange(12.0))
    inside, outside = np.array([0.2, -0.1, 0.0]), np.array([-0.4, 0.3, 0.7])

    @jax.jit
    def values(x, d, inside, outside):
        return NETWORK.line(NETWORK.evaluate(x), d).layer_values(inside, outside)

    got = in_float64(values, x, d, inside, outside)
    steps = np.where(np.arange(12) < NETWORK.hidden, inside[:, None], outside[:, None])
    close(got, np.array([NETWORK.value(x - step * d) for step in steps]), 1e-13)


# step sizes of both signs that change the inputs of the units by less and by more than 1/64
STEPS = np.array([0.3, -1e-3, 0.1, 0.02, 5e-3, -0.06, 0.0, 1e-6, 1e-2, -2e-2, 1.0, 7e-3])


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize("batched", [False, True], ids=["one", "a batch"])
def test_many_values_along_a_line_of_a_network_equal_values_at_points(activation, batched):
    """Values of short steps come from a Taylor series, which must be exact to rounding."""
    network = cfgd.ShallowNetwork(Z, Y, 4, activation)
    x, d = np.stack([network.init(4), network.init(5)]), np.cos(np.arange(24.0)).reshape(2, 12)
    outside = np.sin(np.arange(12.0))

    def values(x, d):
        return network.line(network.evaluate(x), d).layer_values(
            jnp.asarray(STEPS), jnp.asarray(outside)
        )

    got = in_float64(
        jax.jit(jax.vmap(values) if batched else values), *((x, d) if batched else (x[0], d[0]))
    )
    for k, own in enumerate(got if batched else got[None]):
        moved = np.where(np.arange(12) < network.hidden, STEPS[:, None], outside[:, None])
        want = [network.value(x[k] - step * d[k]) for step in moved]
        np.testing.assert_allclose(own, want, rtol=3e-15)


@pytest.mark.slow
def test_short_steps_along_a_long_direction_in_float32():
    """The eighth powers of the change, 1e47, and of the step, 1e-65, leave the range of float32."""
    network = cfgd.ShallowNetwork(Z.astype(np.float32), Y.astype(np.float32), 4)
    x, d = network.init(4), np.cos(np.arange(12, dtype=np.float32))
    steps = jnp.asarray([1e-8, 5e-9, -1e-8, 2e-9, 0.0, 7e-9, -3e-9, 4e-9], jnp.float32)
    line = network.line(network.evaluate(jnp.asarray(x)), jnp.asarray(1e6 * d))
    got = line.layer_values(steps, 0 * steps)
    moved = np.outer(1e6 * np.asarray(steps), d * (np.arange(12) < network.hidden))
    np.testing.assert_allclose(got, [network.value(x - of) for of in moved], rtol=1e-5)


def test_series_of_tanh_has_the_taylor_coefficients():
    for u in (-2.5, -0.3, 0.0, 1e-3, 0.9, 4.0):
        phi, slope, _ = tanh(np.array([u]))
        got = np.ravel(series(tanh, phi, slope))
        want = [float(part) for part in mpmath.taylor(mpmath.tanh, u, 8)]
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-15)


@pytest.mark.parametrize("curvature", ["exact", "gauss_newton"])
def test_a_local_model_has_the_line_of_the_objective_unless_it_draws_probes(curvature):
    local = cfgd.Local(NETWORK, curvature)
    probed = cfgd.Local(NETWORK, "hutchinson", key=0)

    def compare(x):
        at = local.evaluate(x)
        assert type(local.line(at, at.gradient)) is type(NETWORK.line(at, at.gradient))
        assert type(probed.line(probed.evaluate(at.x), at.gradient)) is Line

    jax.eval_shape(compare, NETWORK.init(0))  # types are known without computing


def test_a_known_slope_is_not_computed_again():
    f = cfgd.Quadratic([[2.0, 0.5], [0.5, 1.0]], [1.0, 0.0])
    at = f.evaluate(jnp.array([1.0, 2.0]))
    d = jnp.array([1.0, -1.0])
    assert float(f.line(at, d).slope) == pytest.approx(float(at.gradient @ d))
    assert float(f.line(at, d, jnp.array(7.0)).slope) == 7.0


class OnlyValue(cfgd.Objective):
    def value(self, x):
        return jnp.sum((x - 1) ** 2)


def test_value_is_all_that_an_objective_must_define():
    f = OnlyValue()
    assert f.dimension is None
    np.testing.assert_allclose(f.gradient([3.0, 0.0]), [4.0, -2.0])
    np.testing.assert_allclose(f.coordinate_slope([3.0, 0.0], [0.0, 2.0]), [-2.0, 2.0])
    np.testing.assert_allclose(cfgd.minimize(f, [3.0, 0.0]).x, 1.0)
    with pytest.raises(TypeError, match="value"):
        type("Nothing", (cfgd.Objective,), {})()


class Vector(cfgd.Objective):
    def value(self, x):
        return x


def test_a_value_that_is_no_scalar_is_refused_before_the_run():
    with pytest.raises(ValueError, match=r"`minimize\(objective=...\)` must return a scalar"):
        cfgd.minimize(Vector(), np.ones(3))
