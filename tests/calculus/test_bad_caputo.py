"""What `caputo` refuses, in whole sentences."""

import math
import re

import jax.numpy as jnp
import pytest

import cfgd


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: cfgd.caputo(jnp.sin, 0.0, 0.0),
            "`caputo(order=...)` must be a positive number, got 0.0.",
        ),
        (
            lambda: cfgd.caputo(jnp.sin, 0.5, math.nan),
            "`caputo(terminal=...)` must be finite, got nan.",
        ),
        (
            lambda: cfgd.caputo(jnp.sin, 0.5, 0.0, nodes=0),
            "`caputo(nodes=...)` must be an integer of at least 1, got 0.",
        ),
        (
            lambda: cfgd.caputo(jnp.sin, 0.5, 0.0, nodes="many"),
            "`caputo(nodes=...)` must be \"auto\" or an integer of at least 1, got 'many'.",
        ),
        (
            lambda: cfgd.caputo(jnp.sin, [0.5, 1.5], 0.0),
            "`caputo(order=...)` must lie in one interval (n - 1, n], got 0.5 and 1.5.",
        ),
        (
            lambda: cfgd.caputo(jnp.sin, 0.5, 0.0, derivatives=2),
            "`caputo(order=...)` must lie in (1, 2], the interval of `derivatives`, got 0.5.",
        ),
        (
            lambda: cfgd.caputo(jnp.sin, 0.5, 0.0, derivatives=0),
            "`caputo(derivatives=...)` must be an integer of at least 1, got 0.",
        ),
    ],
    ids=["order zero", "terminal", "nodes", "word", "two intervals", "interval", "derivatives"],
)
@pytest.mark.usefixtures("unchecked")
def test_message(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
