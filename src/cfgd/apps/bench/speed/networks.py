"""The time of a step of cfadam / of optax.adam, on a network with a million parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import optax

from cfgd.apps.bench.speed.measure import ReportRow, at_most, time_in_turns
from cfgd.integrations.optax import cfadam

WIDTHS = (128, 768, 768, 384, 10)
STEPS = 20  # two updates of the curvature, which cfadam computes at every tenth step


def rows() -> Iterator[ReportRow]:
    for samples, bound in ((128, 1.6), (32, None)):
        seconds = time_in_turns(
            {
                "adam": training_steps(optax.with_extra_args_support(optax.adam(1e-3)), samples),
                "cfadam": training_steps(cfadam(1e-3), samples),
            }
        )
        what = f"batch {samples}: time of a step of cfadam (curvature every 10) / adam"
        ratio = seconds["cfadam"] / seconds["adam"]
        yield ReportRow(what, f"{ratio:.2f} x") if bound is None else at_most(what, ratio, bound)


def training_steps(optimizer: Any, samples: int) -> Callable[[], Any]:
    """Return a function that makes `STEPS` steps, with parameters and state donated."""
    keys = jax.random.split(jax.random.key(0), len(WIDTHS) + 1)
    sizes = zip(keys, WIDTHS, WIDTHS[1:], strict=False)
    params = [(jax.random.normal(key, (a, b)) / jnp.sqrt(a), jnp.zeros(b)) for key, a, b in sizes]
    x = jax.random.normal(keys[-1], (samples, WIDTHS[0]))
    y = jax.random.randint(keys[-2], (samples,), 0, WIDTHS[-1])

    def loss(params: Any) -> Any:
        h = x
        for W, b in params[:-1]:
            h = jnp.tanh(h @ W + b)
        W, b = params[-1]
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(h @ W + b, y))

    def step(params: Any, state: Any) -> Any:
        updates, state = optimizer.update(jax.grad(loss)(params), state, params, value_fn=loss)
        return optax.apply_updates(params, updates), state

    step = jax.jit(step, donate_argnums=(0, 1))
    carry = params, optimizer.init(params)

    def run() -> None:
        nonlocal carry
        for _ in range(STEPS):
            carry = step(*carry)
        jax.block_until_ready(carry)

    return run
