"""Shallow networks: the layout of x, predictions, starts, and the damping of saturated units."""

import jax
import numpy as np
import pytest

import cfgd
from cfgd.apps.data.network_functions import FUNCTIONS, SAMPLES, WIDTH
from cfgd.objectives.network.model import SATURATED

N = cfgd.ShallowNetwork(np.array([0.5, -1.0]), np.zeros(2), width=2)
N3 = cfgd.ShallowNetwork(np.array([[0.5, -1.0, 2.0], [1.0, 0.0, 3.0]]), np.zeros(2), width=2)
# (network, x, hidden weights, biases, output weights)
LAYOUTS = {
    "p = 1": (N, np.arange(1.0, 7), [[1, 2]], [3, 4], [5, 6]),
    "p = 3": (N3, np.arange(1.0, 11), [[1, 2], [3, 4], [5, 6]], [7, 8], [9, 10]),
}


@pytest.mark.parametrize(("net", "x", "a_1", "a_2", "a_3"), LAYOUTS.values(), ids=LAYOUTS)
def test_x_holds_a_1_then_a_2_then_a_3(net, x, a_1, a_2, a_3):
    parameters = net.parameters(x)
    np.testing.assert_array_equal(parameters.hidden_weights, a_1)
    np.testing.assert_array_equal(parameters.biases, a_2)
    np.testing.assert_array_equal(parameters.output_weights, a_3)
    assert net.dimension == x.size
    assert net.hidden == x.size - 2


def test_predict_is_the_formula_of_the_paper():
    a = np.array([0.3, -0.7, 0.2, 1.1, 2.0, -1.5])
    z = np.array([0.9, -0.4, 0.0])
    want = 2.0 * np.tanh(0.3 * z + 0.2) - 1.5 * np.tanh(-0.7 * z + 1.1)
    np.testing.assert_allclose(N.predict(a, z), want, rtol=1e-13)
    np.testing.assert_allclose(N.predict(list(a), list(z)), want, rtol=1e-13)


def test_predict_takes_inputs_of_several_numbers():
    a = np.cos(np.arange(10.0))
    z = np.array([[0.9, -0.4, 0.1], [0.2, 0.3, -1.0], [0.0, 0.0, 1.0]])
    want = np.tanh(z @ a[:6].reshape(3, 2) + a[6:8]) @ a[8:]
    np.testing.assert_allclose(N3.predict(a, z), want, rtol=1e-13)


WIDE = cfgd.ShallowNetwork(np.zeros(3), np.zeros(3), width=20_000)
STARTS = {  # scale, deviation of the hidden layer, deviation of the output layer
    "standard normal": (1.0, 1.0, 1.0),
    "one number": (0.3, 0.3, 0.3),
    "the other documented start": ((5.0, 0.02**0.5), 5.0, 0.02**0.5),
}


@pytest.mark.parametrize(("scale", "hidden", "output"), STARTS.values(), ids=STARTS)
def test_starts_are_normal_with_the_documented_deviations(scale, hidden, output):
    x = WIDE.init(7, scale)
    for part, deviation in [(x[:20_000], hidden), (x[20_000:40_000], hidden), (x[40_000:], output)]:
        part = part / deviation
        # four standard errors of the first four moments of 20,000 standard normal numbers
        error = 4 / np.sqrt(part.size)
        assert abs(np.mean(part)) < error
        assert abs(np.mean(part**2) - 1) < np.sqrt(2) * error
        assert abs(np.mean(part**3)) < np.sqrt(15) * error
        assert abs(np.mean(part**4) - 3) < np.sqrt(96) * error


def test_a_start_is_the_one_of_its_key():
    np.testing.assert_array_equal(N.init(3), N.init(3))
    np.testing.assert_array_equal(N.init(3), N.init(jax.random.key(3)))
    drawn = [N.init(np.random.default_rng(seed)) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert np.all(drawn[0] != drawn[2])
    generator = np.random.default_rng(3)
    assert np.all(N.init(generator) != N.init(generator))  # its state has moved
    np.testing.assert_array_equal(N.init(3), N.init(np.int64(3)))
    np.testing.assert_allclose(
        N.init(3, (2.0, 0.5)), N.init(3) * [2, 2, 2, 2, 0.5, 0.5], rtol=1e-15
    )
    assert np.min(np.abs(N.init(3) - N.init(4))) > 1e-3
    assert N.init(3).dtype == np.float64


def test_a_start_does_not_depend_on_the_configuration():
    off = N.init(3)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(N.init(3), off)


@pytest.mark.parametrize("net", [N, N3])
def test_extra_damping_counts_a_saturated_unit_as_one_that_is_not(net):
    """SATURATED times sum_i (a_3j z_ik)^2 for every hidden weight, nothing for output weights."""
    x = np.cos(3.0 * np.arange(net.dimension)) * np.arange(1, net.dimension + 1)
    want = np.zeros(net.dimension)
    for k in range(net.z.shape[1]):
        for j in range(2):
            want[2 * k + j] = SATURATED * np.sum((x[net.hidden + j] * net.z[:, k]) ** 2)
    host = net.on_host()
    np.testing.assert_allclose(host.curvature(host.evaluate(x)).extra_damping(), want, rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_saturated_units_do_not_stall_the_fit(seed):
    """Regression on h3: without the extra damping the fits ended at 1e-10 and 1e-7."""
    random = np.random.default_rng(seed)
    z = random.uniform(-1, 1, size=SAMPLES)
    network = cfgd.ShallowNetwork(z, FUNCTIONS["h3"](z), WIDTH)
    x0 = network.init(seed, (5.0, 0.02**0.5))
    assert cfgd.minimize(network, x0, tolerance=0.0, max_iterations=500).value < 1e-12
