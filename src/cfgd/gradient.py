"""The fractional gradient for one call: the one formula with its checks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from cfgd import _check
from cfgd.calculus.quadrature import nodes_and_weights
from cfgd.direction import direction
from cfgd.objective.base import Objective
from cfgd.objective.smooth import Smooth
from cfgd.precision import is_array, numpy_in_numpy_out
from cfgd.structure import Structure, as_tree


def fractional_gradient(
    objective: Objective | Callable[[Any], Any],
    x: Any,
    terminal: Any,
    alpha: Any,
    beta: Any,
    nodes: int = 10,
) -> Any:
    r"""The scaled Caputo fractional gradient of an objective or a function (Theorem 2.4).

    $$ d_j = E[f_j'(T_j)] + \beta (x_j - c_j) E[f_j''(T_j)], \quad
       T_j = c_j + U (x_j - c_j), \quad U \sim \mathrm{Beta}(1, 1 - \alpha) $$

    where f_j is f with only coordinate j free. `x` and `terminal` may be pytrees; `alpha` and
    `beta` are numbers or one for each coordinate. At terminal = x it is the gradient.

    >>> import cfgd
    >>> print(cfgd.fractional_gradient(lambda x: 10 * x[0] ** 2 + x[1] ** 2,
    ...                                [1.0, -10.0], [-1.0, -1.0], alpha=0.5, beta=0.0))
    [  6.66666667 -14.        ]
    """
    owner = "fractional_gradient"
    if not isinstance(objective, Objective):
        if not callable(objective):
            _check.fail(owner, "objective", "be an objective or a function", repr(objective))
        objective = Smooth(objective)
    x = as_tree(owner, "x", x)
    terminal = as_tree(owner, "terminal", terminal)
    structure = Structure.of(x)
    one_number = is_array(terminal) and terminal.ndim == 0
    if not one_number and Structure.of(terminal) != structure:
        _check.fail(owner, "terminal", "be a number or have the structure of x", terminal)
    alpha = _check.order(owner, "alpha", alpha)
    beta = _check.array(owner, "beta", beta, "be a number")
    _check.integer(owner, "nodes", nodes)
    d = sum(math.prod(shape) for shape in structure.shapes)
    for field, value in (("alpha", alpha), ("beta", beta)):
        if value.shape not in ((), (d,)):
            wanted = f"be a number or have shape ({d},)"
            _check.fail(owner, field, wanted, f"shape {tuple(value.shape)}")

    def compute(objective: Any, x: Any, terminal: Any, alpha: Any, beta: Any) -> Any:
        flat, vector = objective.flat(structure), structure.ravel(x)
        alpha, beta = jnp.asarray(alpha, vector.dtype), jnp.asarray(beta, vector.dtype)
        c = (
            jnp.full_like(vector, terminal)
            if one_number
            else structure.ravel(terminal).astype(vector.dtype)
        )
        s = 1 if flat.linear_slopes else nodes
        d = direction(flat, flat.at(vector), c, nodes_and_weights(alpha, s), beta)
        return structure.unravel(d)

    return numpy_in_numpy_out(compute)(objective, x, terminal, alpha, beta)
