"""Train an Equinox network on minibatches by optax and `cfadam`, and a small one by `Auto`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

import cfgd
from cfgd.integrations.optax import cfadam

X, y = load_digits(return_X_y=True)
X, y, X_test, y_test = (X[:1500] / 16).astype("float32"), y[:1500], X[1500:] / 16, y[1500:]
model = eqx.nn.MLP(64, 10, 64, 1, key=jax.random.key(0))
params, static = eqx.partition(model, eqx.is_inexact_array)


def loss(params, X, y):
    logits = jax.vmap(eqx.combine(params, static))(X)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@jax.jit
def accuracy(params):
    return jnp.mean(jnp.argmax(jax.vmap(eqx.combine(params, static))(X_test), 1) == y_test)


def train(optimizer, params, epochs=8, size=50):
    @jax.jit
    def step(params, state, X, y):
        def value(params):  # of this batch: the gradient and the curvature come from it
            return loss(params, X, y)

        grads = jax.grad(value)(params)
        updates, state = optimizer.update(grads, state, params, value_fn=value)
        return optax.apply_updates(params, updates), state

    state, random = optimizer.init(params), np.random.default_rng(0)
    for _ in range(epochs):
        for rows in random.permutation(len(X)).reshape(-1, size):
            params, state = step(params, state, X[rows], y[rows])
    return params


for name, optimizer in {"adam": optax.adam(2e-3), "cfadam": cfadam(2e-3, gamma=-0.25)}.items():
    found = train(optax.with_extra_args_support(optimizer), params)
    print(f"{name:7} loss {jax.jit(loss)(found, X, y):.4f}, accuracy {accuracy(found):.3f}")

# If each step can use all data, `Auto` trains a small model without any constants to choose.
small = eqx.nn.MLP(64, 10, 8, 1, key=jax.random.key(0))
params, static = eqx.partition(small, eqx.is_inexact_array)
end = cfgd.minimize(loss, params, args=(X, y), max_iterations=300, gradient_tolerance=1e-3)
small = eqx.combine(end.x, static)

right = jnp.argmax(jax.vmap(small)(X_test), 1) == y_test
print(f"{end.status.name} after {end.iterations} iterations, accuracy {right.mean():.3f}")
