"""Optimizers along the fractional direction, with the arguments of optax's aliases."""

from __future__ import annotations

from typing import Any

import numpy as np
import optax

from cfgd.integrations.optax.transform import GAMMA, ONE, caputo


def cfgd(
    learning_rate: Any,
    gamma: Any = GAMMA,
    lag: int | np.integer = ONE,
    *,
    curvature: Any = "hutchinson",
) -> optax.GradientTransformationExtraArgs:
    """Gradient descent along the fractional direction: x_{k+1} = x_k - eta_k d_k.

    d_k is that of `scale_by_caputo`, whose arguments are documented there. With the full batch this
    is `cfgd.AdaptiveTerminal` on the local model.
    The state holds lag + 1 copies of the parameters.

    Parameters
    ----------
    learning_rate : float or schedule
        eta.
    gamma : float or schedule, default -0.25
        As in `scale_by_caputo`.
    lag : int, default 1
        How many steps the terminal lies back.
    curvature : str, rule, number or pytree, default "hutchinson"
        The diagonal D, as in `scale_by_caputo`.

    Returns
    -------
    optax.GradientTransformationExtraArgs
        An optimizer of optax.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, optax
    >>> from cfgd.integrations.optax import cfgd
    >>> f = lambda x: 10 * x[0] ** 2 + x[1] ** 2
    >>> optimizer = cfgd(0.06, gamma=-0.2, curvature=jnp.array([20.0, 2.0]))
    >>> x = jnp.array([1.0, -10.0])
    >>> state = optimizer.init(x)
    >>> for _ in range(100):
    ...     updates, state = optimizer.update(jax.grad(f)(x), state, x)
    ...     x = optax.apply_updates(x, updates)
    >>> print(f(x) < 1e-6)
    True
    """
    return optax.chain(
        caputo("cfgd", gamma, lag, curvature), optax.scale_by_learning_rate(learning_rate)
    )


def cfadam(
    learning_rate: Any,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    gamma: Any = GAMMA,
    lag: int | np.integer = ONE,
    *,
    curvature: Any = "hutchinson",
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    nesterov: bool = False,
) -> optax.GradientTransformationExtraArgs:
    """Adam with the fractional direction d of `scale_by_caputo` in place of the gradient.

    m = b1 m + (1 - b1) d and v = b2 v + (1 - b2) d^2, both bias-corrected; x moves by
    -eta m / (sqrt v + eps). The state holds lag + 3 copies of the parameters. `gamma`, `lag` and
    `curvature` are those of `scale_by_caputo`, the other arguments those of `optax.adam`; with
    gamma = 0 it is `optax.adam`.

    docs/training.md has a rule for `gamma` and `lag` from `cfgd bench --training`. On its five
    networks no pair beat Adam at equal cost. With |gamma| lag = 1/4, the default, the loss is as
    good per step as Adam's; from |gamma| lag = 1 on it increases with this product.

    Parameters
    ----------
    learning_rate : float or schedule
        eta.
    b1, b2 : float or schedule
        The decay rates of the means m and v.
    eps : float, default 1e-08
        What is added to sqrt v.
    gamma : float or schedule, default -0.25
        As in `scale_by_caputo`.
    lag : int, default 1
        How many steps the terminal lies back.
    curvature : str, rule, number or pytree, default "hutchinson"
        The diagonal D, as in `scale_by_caputo`.
    eps_root : float, default 0.0
        As in `optax.adam`.
    mu_dtype : dtype, optional
        As in `optax.adam`.
    nesterov : bool, default False
        As in `optax.adam`.

    Returns
    -------
    optax.GradientTransformationExtraArgs
        An optimizer of optax.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from cfgd.integrations.optax import Hutchinson, cfadam
    >>> optimizer = cfadam(1e-3, gamma=-0.5, lag=2, curvature=Hutchinson(every=5))
    >>> state = optimizer.init({"w": jnp.ones(3)})
    >>> print(len(state[0].past))
    2
    """
    return optax.chain(
        caputo("cfadam", gamma, lag, curvature),
        optax.scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        optax.scale_by_learning_rate(learning_rate),
    )


def cfadamw(
    learning_rate: Any,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    gamma: Any = GAMMA,
    lag: int | np.integer = ONE,
    *,
    curvature: Any = "hutchinson",
    weight_decay: Any = 1e-4,
    mask: Any = None,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    nesterov: bool = False,
) -> optax.GradientTransformationExtraArgs:
    """`cfadam` with decoupled weight decay: eta weight_decay x is subtracted as well, outside d.

    `mask` selects the parameters that decay, as in `optax.adamw`. The state holds lag + 3 copies of
    the parameters.

    Parameters
    ----------
    learning_rate : float or schedule
        eta.
    b1, b2 : float or schedule
        The decay rates of the means m and v.
    eps : float, default 1e-08
        What is added to sqrt v.
    gamma : float or schedule, default -0.25
        As in `scale_by_caputo`.
    lag : int, default 1
        How many steps the terminal lies back.
    curvature : str, rule, number or pytree, default "hutchinson"
        The diagonal D, as in `scale_by_caputo`.
    weight_decay : float, default 0.0001
        The rate of the decay.
    mask : pytree of bool or callable, optional
        Which parameters decay, as in `optax.adamw`.
    eps_root : float, default 0.0
        As in `optax.adam`.
    mu_dtype : dtype, optional
        As in `optax.adam`.
    nesterov : bool, default False
        As in `optax.adam`.

    Returns
    -------
    optax.GradientTransformationExtraArgs
        An optimizer of optax.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from cfgd.integrations.optax import cfadamw
    >>> optimizer, x = cfadamw(0.1, curvature=1.0, weight_decay=0.5), jnp.ones(2)
    >>> updates, state = optimizer.update(jnp.zeros(2), optimizer.init(x), x)
    >>> print(updates)
    [-0.05 -0.05]
    """
    return optax.chain(
        caputo("cfadamw", gamma, lag, curvature),
        optax.scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        optax.add_decayed_weights(weight_decay, mask),
        optax.scale_by_learning_rate(learning_rate),
    )
