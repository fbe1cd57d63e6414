"""Shardings of the state: optax's tests, and one with random probes, which optax's do not use.

Run by test_optax_test_suite.py in a process with eight devices.
"""

import unittest

import jax
import jax.numpy as jnp
import numpy as np
import optax
from optax_test_modules import with_optimizers

from cfgd.integrations.optax import Hutchinson, cfadam

LIST = "dict(cfgd=cfgd(1.0, lag=2, curvature=1.0), cfadam=cfadam(1.0, curvature=1.0))"
OPTIMIZER = cfadam(0.1, lag=2, curvature=Hutchinson(every=2))
START = {"a": np.arange(16.0, dtype=np.float32), "b": np.ones(8, np.float32)}


def loss(p):
    return jnp.sum(jnp.cos(p["a"]) * p["a"]) + jnp.sum(p["b"] ** 2)


def trained(params):
    @jax.jit
    def step(params, state):
        grads = jax.grad(loss)(params)
        updates, state = OPTIMIZER.update(grads, state, params, value_fn=loss)
        return optax.apply_updates(params, updates), state

    state = OPTIMIZER.init(params)
    for _ in range(3):
        params, state = step(params, state)
    return params, state


def train_sharded(kind):
    """Train with automatic or explicit sharding, and require that the shardings do not change."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(kind,))
    specs = {"a": jax.P("x"), "b": jax.P()}
    with jax.set_mesh(mesh):
        shardings = {name: jax.NamedSharding(mesh, spec) for name, spec in specs.items()}
        params, state = trained(jax.device_put(START, shardings))
        for tree in (params, *state[0].past, state[0].curvature, state[1].mu, state[1].nu):
            for name, sharding in shardings.items():
                assert tree[name].sharding.is_equivalent_to(sharding, 1), tree[name].sharding
    return jax.device_get(params)


if __name__ == "__main__":
    module = with_optimizers("sharding_test", "OPTIMIZERS", LIST)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    assert suite.countTestCases() >= 6
    assert unittest.TextTestRunner().run(suite).wasSuccessful()
    assert len(jax.devices()) == 8
    unsharded, _ = trained(jax.tree.map(jnp.asarray, START))
    for kind in (jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit):
        params = train_sharded(kind)
        np.testing.assert_allclose(params["a"], unsharded["a"], rtol=1e-5)
        np.testing.assert_allclose(params["b"], unsharded["b"], rtol=1e-5)
