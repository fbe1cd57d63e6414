"""`from_rule`: a rule of `cfgd.zoo`, or one's own, as a gradient transformation of optax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

from cfgd._core import checks
from cfgd.integrations.optax.batch import Batch, is_masked, is_none
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.function import Smooth
from cfgd.zoo.update_rule import UpdateRule


class RuleState(NamedTuple):
    """The state of `from_rule`: `count` is k, `memory` that of the rule, of raveled parameters.

    Attributes
    ----------
    count : int array
        k, the number of steps so far.
    memory : pytree
        The memory of the rule, of raveled parameters.

    Examples
    --------
    >>> import cfgd, jax.numpy as jnp
    >>> from cfgd.integrations.optax import from_rule
    >>> state = from_rule(cfgd.zoo.Wang2017(0.1)).init({"a": jnp.ones(2), "b": jnp.zeros(())})
    >>> print(state.count, state.memory)
    0 [1. 1. 0.]
    """

    count: Any
    memory: Any


def from_rule(rule: UpdateRule) -> optax.GradientTransformationExtraArgs:
    """Return the transformation of a rule of `cfgd.zoo`.

    The learning rate is the rule's eta: `optax.apply_updates` makes the step. `update` needs the
    parameters, and for rules with second derivatives (`Wei2020`, `Taresh2022`, `Shin2021`,
    `Aggarwal2024`) the loss of the batch as `value_fn`; on a function without structure these cost
    about a gradient for each parameter.

    Parameters
    ----------
    rule : cfgd.zoo.UpdateRule
        The rule with its numbers.

    Returns
    -------
    optax.GradientTransformationExtraArgs
        An optimizer of optax.

    Raises
    ------
    ValueError
        If `rule` is no `UpdateRule`.

    Examples
    --------
    >>> import cfgd, jax, jax.numpy as jnp, optax
    >>> from cfgd.integrations.optax import from_rule
    >>> loss = lambda p: jnp.sum((p["a"] - 3.0) ** 2) + (p["b"] + 1.0) ** 2
    >>> params = {"a": jnp.zeros(2), "b": jnp.zeros(())}
    >>> optimizer = from_rule(cfgd.zoo.Xue2020(0.3, alpha=0.95))
    >>> state = optimizer.init(params)
    >>> for _ in range(200):
    ...     updates, state = optimizer.update(jax.grad(loss)(params), state, params)
    ...     params = optax.apply_updates(params, updates)
    >>> print(params["a"].round(2), params["b"].round(2))
    [3. 3.] -1.0
    """
    if not isinstance(rule, UpdateRule):
        wanted = "be a rule such as cfgd.zoo.Wang2017(0.1)"
        checks.fail("from_rule", "rule", wanted, repr(rule))
    owner = type(rule).__name__

    def init(params: Any) -> RuleState:
        x, _ = ravel_pytree(params)
        return RuleState(jnp.zeros([], jnp.int32), rule.start(x))

    def update(
        updates: Any,
        state: RuleState,
        params: Any = None,
        *,
        value_fn: Callable[[Any], Any] | None = None,
        all_params: Any = None,
        **extra: Any,
    ) -> tuple[Any, RuleState]:
        if params is None:
            wanted = "be given: the step of the rule depends on them"
            checks.fail(f"{owner}.update", "params", wanted, "None")
        functions = {"value_fn": value_fn, "model_fn": None, "loss_fn": None}
        batch = Batch.of(owner, updates, params, all_params, **functions)
        gradients = jax.tree.map(
            lambda x, g: jnp.zeros_like(x) if g is None else g,
            params,
            updates,
            is_leaf=is_masked,
        )
        x, unravel = ravel_pytree(params)
        g, _ = ravel_pytree(gradients)
        if jnp.iscomplexobj(x):
            checks.fail(f"{owner}.update", "params", "be real", "complex numbers")

        def value(x: Any) -> Any:
            return batch.value(unravel(x))

        at = Evaluation(x, jnp.full((), jnp.nan, x.dtype), g)
        step, memory = rule.update(at, state.memory, state.count, Smooth(value))
        memory = jax.tree.map(lambda new, old: new.astype(old.dtype), memory, state.memory)
        moved = unravel(-step.astype(x.dtype))
        moved = jax.tree.map(lambda g, s: None if g is None else s, updates, moved, is_leaf=is_none)
        return moved, RuleState(optax.safe_increment(state.count), memory)

    return optax.GradientTransformationExtraArgs(init, update)
