"""What is trained: a model as a pytree, the loss of a batch, and the error on what it has not seen.

Data, splits and models are the same in every run; a seed decides the first parameters and which
batches are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Params = Any


class Problem(NamedTuple):
    """`loss(params, inputs, targets)` is a mean; `error` is of predictions for test data.

    The training loss of a table is `loss` on all of `inputs` and `targets`. `double` is for
    float64; in it the data are made and the runs are.
    """

    name: str
    what: str  # in words, with the sizes
    init: Callable[[Any], Params]
    loss: Callable[[Params, Any, Any], Any]
    error: Callable[[Params], Any]
    inputs: Any
    targets: Any
    batch: int
    steps: int
    error_is: str = "share of wrong labels"
    double: bool = False


def dense_init(key: Any, sizes: tuple[int, ...]) -> list[tuple[Any, Any]]:
    """Layers with weights of the variance 1/fan-in and biases of zero."""
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (n, m)) / jnp.sqrt(n), jnp.zeros(m))
        for k, n, m in zip(keys, sizes, sizes[1:], strict=False)
    ]


def dense(layers: list[tuple[Any, Any]], x: Any) -> Any:
    """tanh between the layers, the last one linear."""
    for W, b in layers[:-1]:
        x = jnp.tanh(x @ W + b)
    W, b = layers[-1]
    return x @ W + b


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The mean of -log p(label)."""
    log_p = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))


def wrong(logits: Any, labels: Any) -> Any:
    return jnp.mean(jnp.argmax(logits, axis=1) != labels)
