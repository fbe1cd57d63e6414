"""A training problem: a model as a pytree, the loss of a batch, and the error on test data.

Data, splits and models are the same in every run; the seed determines the initial parameters and
the batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Params = Any


class TrainingProblem(NamedTuple):
    """A network to train.

    `loss(params, inputs, targets)` is a mean over a batch; the training loss of a table is `loss`
    on all of `inputs` and `targets`. `error(params)` is the error on test data. `double` selects
    float64 for data and training.
    """

    name: str
    what: str  # a description of the problem with its sizes
    init: Callable[[Any], Params]
    loss: Callable[[Params, Any, Any], Any]
    error: Callable[[Params], Any]
    inputs: Any
    targets: Any
    batch: int
    steps: int
    error_is: str = "fraction of wrong labels"
    double: bool = False


def dense_init(key: Any, sizes: tuple[int, ...]) -> list[tuple[Any, Any]]:
    """Return layers with weights of variance 1/fan-in and zero biases."""
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (n, m)) / jnp.sqrt(n), jnp.zeros(m))
        for k, n, m in zip(keys, sizes, sizes[1:], strict=False)
    ]


def dense(layers: list[tuple[Any, Any]], x: Any) -> Any:
    """Apply dense layers with tanh between them; the last one is linear."""
    for W, b in layers[:-1]:
        x = jnp.tanh(x @ W + b)
    W, b = layers[-1]
    return x @ W + b


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Return the mean of -log p(label)."""
    log_p = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))


def error_rate(logits: Any, labels: Any) -> Any:
    """Return the fraction of wrong labels."""
    return jnp.mean(jnp.argmax(logits, axis=1) != labels)
