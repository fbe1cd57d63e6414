"""`scale_by_caputo`: the fractional direction in place of the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from cfgd._core import checks
from cfgd.integrations.optax.batch import Batch
from cfgd.integrations.optax.curvature import curvature_of

# what `cfgd.integrations.scipy` takes too
GAMMA = -0.25
# NumPy's, because optax.inject_hyperparams takes an integer of Python's for a number that varies
ONE = np.int64(1)


class CaputoState(NamedTuple):
    """k, the points (x_{k - lag}, ..., x_{k - 1}), and the diagonal D: lag + 1 copies at most.

    >>> import jax.numpy as jnp
    >>> from cfgd.integrations.optax import scale_by_caputo
    >>> state = scale_by_caputo(lag=2).init(jnp.zeros(3))
    >>> print(state.count, len(state.past))
    0 2
    """

    count: Any
    past: tuple[Any, ...]
    curvature: Any


def scale_by_caputo(
    gamma: Any = GAMMA, lag: int | np.integer = ONE, *, curvature: Any = "hutchinson"
) -> optax.GradientTransformationExtraArgs:
    r"""The gradient g becomes the fractional direction of the local model with c = x_{k - lag}.

    $$ d = g + \gamma D (x - c), \qquad \gamma = \beta - (1 - \alpha)/(2 - \alpha) $$

    `gamma` is a number or a schedule. The diagonal D is "hutchinson" (random signs, every tenth
    step), "gauss_newton", "exact" or "quadrature" (the formula without a local model), a rule with
    its numbers such as `Hutchinson(every=5)`, or given: a number, or a pytree like the parameters.

    `update` needs the parameters, and but for a given D the loss of the same batch: `value_fn`, or
    `model_fn` and `loss_fn` for "gauss_newton". Where optax masks some parameters (`masked`,
    `multi_transform`) it also needs `all_params`, because the loss is a function of them all.
    Before there are `lag` earlier points they are x_0, and the first step is a gradient step. The
    state holds lag + 1 copies of the parameters, with a given D lag.

    >>> import jax.numpy as jnp
    >>> from cfgd.integrations.optax import scale_by_caputo
    >>> t = scale_by_caputo(gamma=-0.5, curvature=2.0)
    >>> state = t.init(jnp.array([1.0, 1.0]))
    >>> x = jnp.array([2.0, 0.0])
    >>> d, state = t.update(jnp.array([10.0, 10.0]), state, x)
    >>> print(d)
    [ 9. 11.]
    """
    return caputo("scale_by_caputo", gamma, lag, curvature)


def caputo(
    owner: str, gamma: Any, lag: Any, curvature: Any
) -> optax.GradientTransformationExtraArgs:
    """`scale_by_caputo` under the name that an error says."""
    if checks.is_traced(lag):
        wanted = f'be known: inject_hyperparams({owner}, static_args="lag")'
        checks.fail(owner, "lag", wanted, "a traced value")
    lag = checks.integer(owner, "lag", lag)
    if not callable(gamma):
        gamma = _number(owner, gamma)
    rule = curvature_of(owner, curvature)

    def init(params: Any) -> CaputoState:
        past = tuple(jax.tree.map(_copy, params) for _ in range(lag))
        return CaputoState(jnp.zeros([], jnp.int32), past, rule.init(params))

    def update(
        updates: Any,
        state: CaputoState,
        params: Any = None,
        *,
        value_fn: Callable[[Any], Any] | None = None,
        model_fn: Callable[[Any], Any] | None = None,
        loss_fn: Callable[[Any], Any] | None = None,
        all_params: Any = None,
        **extra: Any,
    ) -> tuple[Any, CaputoState]:
        if params is None:
            wanted = "be given: the memory is of parameters"
            checks.fail(f"{owner}.update", "params", wanted, "None")
        functions = {"value_fn": value_fn, "model_fn": model_fn, "loss_fn": loss_fn}
        batch = Batch.of(owner, updates, params, all_params, **functions)
        k, (c, *between) = state.count, state.past
        kept = rule.next(state.curvature, k, batch)
        now = gamma(k) if callable(gamma) else gamma
        d = rule.direction(now, updates, c, kept, batch)
        past = (*between, jax.tree.map(_copy, params))
        return d, CaputoState(optax.safe_increment(k), past, kept)

    return optax.GradientTransformationExtraArgs(init, update)


def _number(owner: str, gamma: Any) -> Any:
    value = checks.array(owner, "gamma", gamma, "be a number")
    if value.shape != ():
        checks.fail(owner, "gamma", "be a number or a schedule", f"shape {value.shape}")
    # a number of Python's takes the dtype of what it meets
    return value if isinstance(value, jax.Array) else float(value)


def _copy(leaf: Any) -> Any:
    """In a buffer of its own: whoever donates parameters and state would donate a shared one twice.

    Inside of jit it costs nothing. Shapes alone stay shapes.
    """
    return leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jnp.copy(leaf)
