"""`scale_by_caputo`: replace the gradient by the fractional direction."""

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

# the default of `cfgd.integrations.scipy` and `cfgd.integrations.torch` too
GAMMA = -0.25
# The default lag; a NumPy integer, because optax.inject_hyperparams turns Python's into traced
# values.
ONE = np.int64(1)


class CaputoState(NamedTuple):
    """The state of `scale_by_caputo`: at most lag + 1 copies of the parameters.

    Attributes
    ----------
    count : int array
        k, the number of steps so far.
    past : tuple of pytrees
        The points (x_{k - lag}, ..., x_{k - 1}).
    curvature : pytree
        The diagonal D with what its rule remembers, or () where D is given.

    Examples
    --------
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
    r"""Replace the gradient g by the fractional direction of the local model with c = x_{k - lag}.

    $$ d = g + \gamma D (x - c), \qquad \gamma = \beta - (1 - \alpha)/(2 - \alpha) $$

    `update` needs the parameters and, unless D is given, the loss of the same batch: `value_fn`, or
    `model_fn` and `loss_fn` for "gauss_newton". Where optax masks some parameters (`masked`,
    `multi_transform`) it also needs `all_params`, because the loss is a function of all of them.
    In the first `lag` steps c = x_0, so that the first step is a gradient step. The state holds
    lag + 1 copies of the parameters, or lag copies if D is given.

    Parameters
    ----------
    gamma : float or schedule, default -0.25
        beta - (1 - alpha)/(2 - alpha).
    lag : int, default 1
        Number of steps that the terminal c lies back.
    curvature : str, rule, number or pytree, default "hutchinson"
        The diagonal D: "hutchinson" (random signs, every tenth step), "gauss_newton", "exact" or
        "quadrature" (the formula without a local model); a rule such as `Hutchinson(every=5)`; or D
        itself, a number or a pytree like the parameters.

    Returns
    -------
    optax.GradientTransformationExtraArgs
        To be used alone or in `optax.chain`.

    Examples
    --------
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
    """Return `scale_by_caputo`, with `owner` as its name in error messages."""
    if checks.is_traced(lag):
        wanted = f'be known: inject_hyperparams({owner}, static_args="lag")'
        checks.fail(owner, "lag", wanted, "a traced value")
    lag = checks.integer(owner, "lag", lag)
    if not callable(gamma):
        gamma = _scalar_gamma(owner, gamma)
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
            wanted = "be given: the direction needs earlier parameters"
            checks.fail(f"{owner}.update", "params", wanted, "None")
        functions = {"value_fn": value_fn, "model_fn": model_fn, "loss_fn": loss_fn}
        batch = Batch.of(owner, updates, params, all_params, **functions)
        k, (terminal, *later) = state.count, state.past
        rule_state = rule.update(state.curvature, k, batch)
        gamma_k = gamma(k) if callable(gamma) else gamma
        d = rule.direction(gamma_k, updates, terminal, rule_state, batch)
        past = (*later, jax.tree.map(_copy, params))
        return d, CaputoState(optax.safe_increment(k), past, rule_state)

    return optax.GradientTransformationExtraArgs(init, update)


def _scalar_gamma(owner: str, gamma: Any) -> Any:
    value = checks.array(owner, "gamma", gamma, "be a number")
    if value.shape != ():
        checks.fail(owner, "gamma", "be a number or a schedule", f"shape {value.shape}")
    # a Python number does not change the dtype of what it multiplies
    return value if isinstance(value, jax.Array) else float(value)


def _copy(leaf: Any) -> Any:
    """Return a copy in its own buffer: with a shared one, donating parameters and state would fail.

    Inside jit the copy costs nothing. A `ShapeDtypeStruct` has no buffer and is returned as it is.
    """
    return leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jnp.copy(leaf)
