"""Shardings: optax's tests of them on ours, and probes, which those do not ask for.

Run by test_optax_own.py in a process with eight devices.
"""

import unittest

import jax
import jax.numpy as jnp
import numpy as np
import optax
from optax_tests import with_ours

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


def shardings_stay(kind):
    """Of either kind: what JAX decides, and what is written in the types."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(kind,))
    specs = {"a": jax.P("x"), "b": jax.P()}
    with jax.set_mesh(mesh):
        places = {name: jax.NamedSharding(mesh, spec) for name, spec in specs.items()}
        params, state = trained(jax.device_put(START, places))
        for tree in (params, *state[0].past, state[0].curvature, state[1].mu, state[1].nu):
            for name, place in places.items():
                assert tree[name].sharding.is_equivalent_to(place, 1), tree[name].sharding
    return jax.device_get(params)


if __name__ == "__main__":
    theirs = with_ours("sharding_test", "OPTIMIZERS", LIST)
    suite = unittest.defaultTestLoader.loadTestsFromModule(theirs)
    assert suite.countTestCases() >= 6
    assert unittest.TextTestRunner().run(suite).wasSuccessful()
    assert len(jax.devices()) == 8
    alone, _ = trained(jax.tree.map(jnp.asarray, START))
    for kind in (jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit):
        params = shardings_stay(kind)
        np.testing.assert_allclose(params["a"], alone["a"], rtol=1e-5)
        np.testing.assert_allclose(params["b"], alone["b"], rtol=1e-5)
