"""What `update` is told of the batch, as functions of those parameters that move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from cfgd._core import checks

Function = Callable[[Any], Any]


def is_held(leaf: object) -> bool:
    """Where optax has taken a parameter out."""
    return isinstance(leaf, optax.MaskedNode)


class Batch(NamedTuple):
    """`x`, the parameters that move, and functions of them.

    `params` are those that `update` was given, `whole` with the masked ones in their places;
    `owner` is whose name an error says.
    """

    owner: str
    params: Any
    x: Any
    whole: Any
    value_fn: Function | None
    model_fn: Function | None
    loss_fn: Function | None

    @classmethod
    def of(cls, owner: str, updates: Any, params: Any, all_params: Any, **functions: Any) -> Batch:
        """Parameters without a gradient, or taken out by a mask, are held where they are."""
        whole = params if all_params is None else filled(params, all_params)
        x = jax.tree.map(
            lambda g, p: optax.MaskedNode() if g is None else p, updates, params, is_leaf=is_none
        )
        return cls(owner, params, x, whole, **functions)

    def value(self, x: Any) -> Any:
        """The loss; of complex parameters too, as a function of their real and imaginary parts."""
        out = self._asked("value_fn", "the loss of the batch")(self._whole(x))
        return self._real_number("value_fn", out)

    def model(self, x: Any) -> Any:
        return self._asked("model_fn", "the predictions of the batch")(self._whole(x))

    def loss(self, predictions: Any) -> Any:
        out = self._asked("loss_fn", "the loss of the batch", "the predictions")(predictions)
        return self._real_number("loss_fn", out)

    def _whole(self, x: Any) -> Any:
        if any(is_held(leaf) for leaf in jax.tree.leaves(self.whole, is_leaf=is_held)):
            wanted = "be given, all parameters, where some are masked"
            checks.fail(f"{self.owner}.update", "all_params", wanted, "None")
        return filled(x, self.whole)

    def _asked(self, field: str, what: str, of: str = "the parameters") -> Function:
        function = getattr(self, field)
        wanted = f"be a function of {of}, {what}; the curvature asks for it"
        if not callable(function):
            checks.fail(f"{self.owner}.update", field, wanted, repr(function))
        return function

    def _real_number(self, field: str, out: Any) -> Any:
        if jnp.shape(out) != () or not jnp.issubdtype(jnp.result_type(out), jnp.floating):
            dtype = f" and dtype {out.dtype}" if hasattr(out, "dtype") else ""
            got = checks.describe(out) + dtype
            checks.fail(f"{self.owner}.update", field, "return one real number", got)
        return out


def is_none(leaf: object) -> bool:
    return leaf is None


def filled(tree: Any, whole: Any) -> Any:
    """`tree` with what is held taken from `whole`."""
    return jax.tree.map(
        lambda part, all: all if is_held(part) else part, tree, whole, is_leaf=is_held
    )
