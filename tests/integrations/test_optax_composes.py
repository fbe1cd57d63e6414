"""The transformations with optax's wrappers, masks, saved states, donation and dtypes."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import cfgd as core
from cfgd.integrations.optax import Hutchinson, cfadam, cfadamw, cfgd, scale_by_caputo
from problems import few

PARAMS = {
    "w": np.array([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]], np.float32),
    "b": np.array([0.2, -0.4, 1.0], np.float32),
}
DATA = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)


def loss(p):
    return jnp.sum(jnp.tanh(DATA @ p["w"] + p["b"]) ** 2) + 0.1 * jnp.sum(p["w"] ** 4)


def copied(tree):
    return jax.tree.map(jnp.asarray, tree)


def trained(optimizer, steps=12, params=None, loss=loss, state=None, **extra):
    """Return parameters, state, and the number of times the step was traced."""
    if isinstance(optimizer, optax.GradientTransformation):
        optimizer = optax.with_extra_args_support(optimizer)
    traces = []

    @jax.jit
    def step(params, state):
        traces.append(1)
        grads = jax.grad(loss)(params)
        more = {"all_params": params} if "all_params" in extra else {}
        updates, state = optimizer.update(grads, state, params, value_fn=loss, **more)
        return optax.apply_updates(params, updates), state

    params = copied(PARAMS if params is None else params)
    state = optimizer.init(params) if state is None else state
    for _ in range(steps):
        params, state = step(params, state)
    return params, state, len(traces)


def assert_trees_equal(one, other, rtol=0.0):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


OPTIMIZERS = {
    "cfgd": lambda **given: cfgd(0.02, **given),
    "cfadam": lambda **given: cfadam(0.02, **given),
    "cfadamw": lambda **given: cfadamw(0.02, **given),
}
CURVATURE = Hutchinson(every=4)


@pytest.mark.slow
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_training_traces_once_and_decreases_the_loss(make):
    params, _, traces = trained(make(curvature=CURVATURE), 60)
    assert traces == 1
    assert loss(params) < 0.5 * loss(PARAMS)


COPIES = {
    "cfgd, given": (cfgd(0.1, lag=3, curvature=1.0), 3),
    "cfgd": (cfgd(0.1, lag=3), 3 + 1),
    "cfadam": (cfadam(0.1), 1 + 3),
    "cfadam, lag 4": (cfadam(0.1, lag=4), 4 + 3),
    "cfadamw": (cfadamw(0.1, lag=2), 2 + 3),
}


@pytest.mark.parametrize(("optimizer", "copies"), COPIES.values(), ids=COPIES)
def test_state_size_in_copies_of_the_parameters(optimizer, copies):
    state = optimizer.init({"w": jnp.zeros((100, 100))})
    assert sum(leaf.size for leaf in jax.tree.leaves(state)) // 100**2 == copies


def test_chain():
    ours = optax.chain(
        optax.clip_by_global_norm(1e6),
        scale_by_caputo(-0.3, 2, curvature=CURVATURE),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(0.02),
    )
    assert_trees_equal(
        trained(ours)[0], trained(cfadam(0.02, gamma=-0.3, lag=2, curvature=CURVATURE))[0], 1e-6
    )


def loss_with_constant_bias(p):
    return loss({"w": p["w"], "b": PARAMS["b"]})


@pytest.mark.one_case
@pytest.mark.parametrize("curvature", few(["hutchinson", "given", "exact", "quadrature"], 2))
def test_masked_parameters_are_constants_of_the_loss(curvature):
    """They are not probed: signs and diagonal are those of a loss of the other parameters."""
    given = curvature == "given"
    rule = jax.tree.map(lambda p: 1 + jnp.abs(p), PARAMS) if given else curvature
    alone = {"w": rule["w"]} if given else rule
    ours = optax.chain(
        optax.masked(cfgd(0.02, curvature=rule), {"w": True, "b": False}),
        optax.masked(optax.set_to_zero(), {"w": False, "b": True}),
    )
    params, state, _ = trained(ours, 5, all_params=True)
    np.testing.assert_array_equal(params["b"], PARAMS["b"])
    wanted, _, _ = trained(
        cfgd(0.02, curvature=alone), 5, {"w": PARAMS["w"]}, loss_with_constant_bias
    )
    np.testing.assert_allclose(params["w"], wanted["w"], rtol=1e-5)
    caputo = state[0].inner_state[0]
    assert len(jax.tree.leaves(caputo.past)) == 1


def test_masked_requires_all_params():
    with pytest.raises(ValueError, match=r"`cfgd.update\(all_params=...\)` must be given, all"):
        trained(optax.masked(cfgd(0.02), {"w": True, "b": False}), 1)


@pytest.mark.slow
def test_multi_transform():
    labels = {"w": "fractional", "b": "plain"}
    groups = {"fractional": cfadam(0.02, curvature=CURVATURE), "plain": optax.adam(0.02)}
    params, _, traces = trained(optax.multi_transform(groups, labels), all_params=True)
    assert traces == 1
    same = {"fractional": cfadam(0.02, gamma=0.0, curvature=CURVATURE), "plain": optax.adam(0.02)}
    without, _, _ = trained(optax.multi_transform(same, labels), all_params=True)
    assert_trees_equal(without, trained(optax.adam(0.02))[0], 1e-6)
    assert np.abs(params["w"] - without["w"]).max() > 1e-4


@pytest.mark.slow
def test_inject_hyperparams_does_not_retrace():
    injected = optax.inject_hyperparams(cfadam, static_args="lag")
    optimizer = injected(0.02, gamma=optax.linear_schedule(-0.5, 0.0, 6), lag=2)
    params, state, traces = trained(optimizer)
    schedule = cfadam(0.02, gamma=optax.linear_schedule(-0.5, 0.0, 6), lag=2)
    assert_trees_equal(params, trained(schedule)[0], 1e-5)
    assert traces == 1
    unchanged, _, _ = trained(optimizer, state=state)
    state.hyperparams["b1"] = jnp.float32(0.5)
    changed, _, _ = trained(optimizer, state=state)
    assert np.abs(changed["w"] - unchanged["w"]).max() > 0
    # lag at its default is not injected
    assert_trees_equal(
        trained(optax.inject_hyperparams(cfadam)(0.02))[0], trained(cfadam(0.02))[0], 1e-5
    )


@pytest.mark.slow
def test_multi_steps():
    """Accumulated batches do not change the terminal."""
    several = optax.MultiSteps(cfgd(0.02, lag=2, curvature="exact"), 3)
    params, state, traces = trained(several, 15)
    assert traces == 1
    assert int(state.inner_opt_state[0].count) == 5
    assert_trees_equal(params, trained(cfgd(0.02, lag=2, curvature="exact"), 5)[0], 1e-5)


@pytest.mark.slow
def test_apply_if_finite_skips_a_step():
    optimizer = optax.apply_if_finite(cfadam(0.02, lag=2, curvature=CURVATURE), 5)

    @jax.jit
    def step(params, state, factor):
        grads = jax.tree.map(lambda g: factor * g, jax.grad(loss)(params))
        updates, state = optimizer.update(grads, state, params, value_fn=loss)
        return optax.apply_updates(params, updates), state

    params = copied(PARAMS)
    state = optimizer.init(params)
    for factor in (1.0, np.nan, 1.0, np.inf, 1.0, 1.0, 1.0):
        params, state = step(params, state, factor)
    plain, inner, _ = trained(cfadam(0.02, lag=2, curvature=CURVATURE), 5)
    assert_trees_equal(params, plain, 1e-6)
    assert_trees_equal(state.inner_state, inner, 1e-6)


def saved_by_flax(state, like, path):
    import flax.serialization  # of cfgd[slow]

    path.write_bytes(flax.serialization.to_bytes(state))
    return flax.serialization.from_bytes(like, path.read_bytes())


def saved_by_equinox(state, like, path):
    eqx.tree_serialise_leaves(path, state)
    return eqx.tree_deserialise_leaves(path, like)


def saved_as_json(state, like, path):
    path.write_text(json.dumps([np.asarray(leaf).tolist() for leaf in jax.tree.leaves(state)]))
    leaves, treedef = jax.tree.flatten(like)
    read = json.loads(path.read_text())
    return treedef.unflatten([np.asarray(a, b.dtype) for a, b in zip(read, leaves, strict=True)])


@pytest.mark.slow
@pytest.mark.parametrize("through", few([saved_by_flax, saved_as_json, saved_by_equinox], 2))
def test_saved_state_resumes_bit_for_bit(through, tmp_path):
    optimizer = cfadam(0.02, lag=3, curvature=CURVATURE)
    params, state, _ = trained(optimizer, 6)  # between two measurements
    fresh = optimizer.init(copied(PARAMS))
    read = copied(through((params, state), (copied(PARAMS), fresh), tmp_path / "state"))
    assert_trees_equal(read[1], state)
    assert_trees_equal(
        trained(optimizer, 7, read[0], state=read[1])[:2], trained(optimizer, 13)[:2]
    )


@pytest.mark.slow
def test_donated_parameters_and_state():
    optimizer = cfadam(0.02, lag=2, curvature=CURVATURE)

    def step(params, state):
        updates, state = optimizer.update(jax.grad(loss)(params), state, params, value_fn=loss)
        return optax.apply_updates(params, updates), state

    params = copied(PARAMS)
    state = optimizer.init(params)
    both = jax.jit(step, donate_argnums=(0, 1))
    for _ in range(4):
        params, state = both(params, state)
    assert_trees_equal(params, trained(optimizer, 4)[0])
    _, state = step(params, state)  # without jit, parameters and state share no buffer either
    both(params, state)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", few(["bfloat16", "float64", "float16", "float32"], 2))
def test_dtypes_do_not_change(dtype):
    with jax.enable_x64(dtype == "float64"):
        params = jax.tree.map(lambda p: jnp.asarray(p, dtype), {**PARAMS, "s": np.float32(0.5)})
        mixed = {**params, "n": jnp.ones(2, jnp.float32)}

        def value(p):
            return loss(p) + p["s"] ** 2 + jnp.sum(p["n"] ** 2).astype(dtype)

        optimizer = cfadamw(0.02, curvature=Hutchinson(every=2), gamma=np.float64(-0.25))
        start = optimizer.init(mixed)
        after, state, traces = trained(optimizer, 3, mixed, value)
        assert traces == 1
        for one, other in ((after, mixed), (state, start)):
            assert jax.tree.map(jnp.result_type, one) == jax.tree.map(jnp.result_type, other)
            assert not any(leaf.weak_type for leaf in jax.tree.leaves(one))


def test_mu_dtype():
    state = cfadam(0.1, mu_dtype=jnp.bfloat16).init(copied(PARAMS))
    assert optax.tree.get(state, "mu")["w"].dtype == jnp.bfloat16


def test_map_params_of_the_state():
    optimizer = cfadam(0.02, lag=2)
    state = optimizer.init(copied(PARAMS))
    doubled = optax.tree.map_params(optimizer, lambda leaf: 2 * leaf, state)
    np.testing.assert_array_equal(doubled[0].past[1]["w"], 2 * PARAMS["w"])
    assert doubled[0].count == state[0].count


class Layers(eqx.Module):
    """A model with a function and an integer, which have no gradient."""

    first: eqx.nn.Linear
    last: eqx.nn.Linear
    calls: jax.Array
    activation: object

    def __init__(self, key):
        one, two = jax.random.split(key)
        self.first, self.last = eqx.nn.Linear(2, 5, key=one), eqx.nn.Linear(5, 1, key=two)
        self.calls, self.activation = jnp.array(3), jnp.tanh

    def __call__(self, x):
        return self.last(self.activation(self.first(x)))


@pytest.mark.slow
@pytest.mark.parametrize("curvature", few(["hutchinson", "exact", "quadrature"]))
def test_equinox_model(curvature):
    model, y = Layers(jax.random.key(0)), DATA[:, 0] * DATA[:, 1]

    def value(model):
        return jnp.mean((jax.vmap(model)(jnp.asarray(DATA))[:, 0] - y) ** 2)

    optimizer = cfgd(0.05, curvature=curvature)
    state, first = optimizer.init(eqx.filter(model, eqx.is_array)), value(model)

    @eqx.filter_jit
    def step(model, state):
        params, static = eqx.partition(model, eqx.is_array)
        updates, state = optimizer.update(
            eqx.filter_grad(value)(model),
            state,
            params,
            value_fn=lambda params: value(eqx.combine(params, static)),
        )
        return eqx.apply_updates(model, updates), state

    for _ in range(20):
        model, state = step(model, state)
    assert value(model) < 0.9 * first
    assert model.calls == 3


@pytest.mark.slow
def test_auto_on_flax_model():
    import flax.linen as nn

    model, x = nn.Dense(1), jnp.asarray(DATA)
    y = x @ jnp.array([[2.0], [-1.0]]) + 0.5
    params = model.init(jax.random.key(0), x)
    end = core.minimize(lambda p: jnp.mean((model.apply(p, x) - y) ** 2), params)
    assert end.success
    np.testing.assert_allclose(model.apply(end.x, x), y, atol=1e-3)
