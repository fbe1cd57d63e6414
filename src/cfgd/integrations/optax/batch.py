"""The arguments of one `update`: parameters, and the batch's functions of the trainable ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from cfgd._core import checks

Function = Callable[[Any], Any]


class Batch(NamedTuple):
    """The parameters of an update and the functions of the batch.

    `params` are those passed to `update`. `trainable` are the same with a `MaskedNode` for each
    parameter that has no gradient. `all_params` have a value also where `params` are masked by
    optax. `owner` is the name of the optimizer in error messages.
    """

    owner: str
    params: Any
    trainable: Any
    all_params: Any
    value_fn: Function | None
    model_fn: Function | None
    loss_fn: Function | None

    @classmethod
    def of(cls, owner: str, updates: Any, params: Any, all_params: Any, **functions: Any) -> Batch:
        """Return the batch; parameters without a gradient are constants of its functions."""
        everything = params if all_params is None else fill_masked(params, all_params)
        trainable = jax.tree.map(
            lambda g, p: optax.MaskedNode() if g is None else p, updates, params, is_leaf=is_none
        )
        return cls(owner, params, trainable, everything, **functions)

    def value(self, trainable: Any) -> Any:
        """Return the loss; complex parameters count as pairs of real ones."""
        function = self._required("value_fn", "the parameters", "the loss of the batch")
        return self._real_scalar("value_fn", function(self._with_constants(trainable)))

    def model(self, trainable: Any) -> Any:
        """Return the predictions."""
        function = self._required("model_fn", "the parameters", "the predictions of the batch")
        return function(self._with_constants(trainable))

    def loss(self, predictions: Any) -> Any:
        """Return the loss as a function of the predictions."""
        function = self._required("loss_fn", "the predictions", "the loss of the batch")
        return self._real_scalar("loss_fn", function(predictions))

    def _with_constants(self, trainable: Any) -> Any:
        if any(is_masked(leaf) for leaf in jax.tree.leaves(self.all_params, is_leaf=is_masked)):
            wanted = "be given, all parameters, where some are masked"
            checks.fail(f"{self.owner}.update", "all_params", wanted, "None")
        return fill_masked(trainable, self.all_params)

    def _required(self, field: str, argument: str, result: str) -> Function:
        function = getattr(self, field)
        if not callable(function):
            wanted = f"be a function of {argument}, {result}; the curvature needs it"
            checks.fail(f"{self.owner}.update", field, wanted, repr(function))
        return function

    def _real_scalar(self, field: str, out: Any) -> Any:
        if jnp.shape(out) != () or not jnp.issubdtype(jnp.result_type(out), jnp.floating):
            dtype = f" and dtype {out.dtype}" if hasattr(out, "dtype") else ""
            got = checks.describe(out) + dtype
            checks.fail(f"{self.owner}.update", field, "return one real number", got)
        return out


def is_none(leaf: object) -> bool:
    """Return whether the leaf is None, as the gradient of a constant is."""
    return leaf is None


def is_masked(leaf: object) -> bool:
    """Return whether optax has masked the parameter."""
    return isinstance(leaf, optax.MaskedNode)


def fill_masked(tree: Any, values: Any) -> Any:
    """Return `tree` with each masked leaf replaced by that of `values`."""
    return jax.tree.map(
        lambda leaf, value: value if is_masked(leaf) else leaf, tree, values, is_leaf=is_masked
    )
