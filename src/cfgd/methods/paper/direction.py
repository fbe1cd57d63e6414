"""The one formula; and the fractional gradient as one call, with its checks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from cfgd._core import checks
from cfgd._core.arrays import is_array, numpy_in_numpy_out
from cfgd._core.pytrees import Structure, checked_pytree
from cfgd._core.types import ArrayInput, Numbers, Vector
from cfgd.calculus.quadrature import nodes_and_weights
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.function import as_objective

# how the formula is read: signed, or with the absolute values of the paper's equation (2.6)
READINGS = ("exact", "printed")

# nodes and weights of the expectation over U: (s,), or (s, d) for an order per coordinate
Nodes: TypeAlias = tuple[Float[Array, " s *d"], Float[Array, " s *d"]]


class Memory(NamedTuple):
    """How the way from the terminal to x counts: the rule of the order alpha, and beta."""

    nodes: Nodes
    beta: Numbers
    gamma: Numbers


def memory_of(alpha: ArrayInput, beta: ArrayInput, nodes: int) -> Memory:
    """gamma is beta - (1 - alpha)/(2 - alpha), because the mean of U is 1/(2 - alpha)."""
    alpha, beta = jnp.asarray(alpha), jnp.asarray(beta)
    u, w = nodes_and_weights(alpha, nodes)
    return Memory((u, w), beta, beta + jnp.sum(u * w, 0) - 1)


def check_reading(owner: str, reading: object) -> str:
    if not isinstance(reading, str) or reading not in READINGS:
        checks.fail(owner, "reading", f"be one of {', '.join(READINGS)}", repr(reading))
    return reading


def direction(
    objective: Objective, point: Evaluation, c: Vector, memory: Memory, reading: str = "exact"
) -> Vector:
    r"""The scaled Caputo fractional gradient at `point` with terminal c (Theorem 2.4).

    $$ d_j = E[f_j'(T_j)] + \beta (x_j - c_j) E[f_j''(T_j)], \quad T_j = c_j + U (x_j - c_j) $$

    Signed throughout: the nodes lie between c_j and x_j whichever is larger (errata 2 and 3).
    Read as printed, |x_j - c_j| stands in both places: the nodes lie above c_j.
    """
    u, w = (part[:, None] if part.ndim == 1 else part for part in memory.nodes)
    beta = memory.beta
    from_terminal = point.x - c
    if reading == "printed":
        from_terminal = jnp.abs(from_terminal)
    slopes, curvatures = objective.coordinate_derivatives(point, c + u * from_terminal)
    if len(u) == 1:  # the one weight is one
        return slopes[0] + beta * from_terminal * curvatures[0]
    return jnp.sum(w * slopes, 0) + beta * from_terminal * jnp.sum(w * curvatures, 0)


def pull(gamma: Numbers, x: Vector, c: Vector, reading: str) -> Numbers:
    """The slope of d - g along each coordinate of a quadratic, in units of its a_jj.

    d - g is gamma a_jj (x_j - c_j); as printed, a_jj ((c_j - x_j) + (1 + gamma) |x_j - c_j|).
    """
    return jnp.where(x < c, -2 - gamma, gamma) if reading == "printed" else gamma


def fractional_gradient(
    objective: Objective | Callable[[Any], Any],
    x: Any,
    terminal: Any,
    alpha: Any,
    beta: Any,
    nodes: int = 10,
    reading: str = "exact",
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

    `reading="printed"` puts |x_j - c_j| for x_j - c_j in both places, as equation (2.6) of the
    paper has it (errata 2 and 3). Where x_j > c_j that is the same. Where x_j < c_j it is no Caputo
    derivative: the nodes leave the way from c_j to x_j, and what is added to the gradient no longer
    follows the sign of the last step. It is a push to one side that grows with |x_j - c_j|; on a
    quadratic, d_j = g_j + a_jj ((c_j - x_j) + (E U + beta) |x_j - c_j|).

    >>> print(cfgd.fractional_gradient(lambda x: 10 * x[0] ** 2 + x[1] ** 2,
    ...                                [1.0, -10.0], [-1.0, -1.0], alpha=0.5, beta=0.0,
    ...                                reading="printed"))
    [ 6.66666667 10.        ]
    """
    owner = "fractional_gradient"
    objective = as_objective(owner, objective)
    x = checked_pytree(owner, "x", x)
    terminal = checked_pytree(owner, "terminal", terminal)
    structure = Structure.of(x)
    one_number = is_array(terminal) and terminal.ndim == 0
    if not one_number and Structure.of(terminal) != structure:
        checks.fail(owner, "terminal", "be a number or have the structure of x", terminal)
    alpha = checks.in_open_unit_interval(owner, "alpha", alpha)
    beta = checks.array(owner, "beta", beta, "be a number")
    checks.integer(owner, "nodes", nodes)
    check_reading(owner, reading)
    d = sum(math.prod(shape) for shape in structure.shapes)
    for field, value in (("alpha", alpha), ("beta", beta)):
        if value.shape not in ((), (d,)):
            wanted = f"be a number or have shape ({d},)"
            checks.fail(owner, field, wanted, f"shape {tuple(value.shape)}")
    with checks.traceable(owner, "objective"):
        return numpy_in_numpy_out(_on_trees)(
            objective.raveled(structure), structure, x, terminal, alpha, beta, nodes, reading
        )


@eqx.filter_jit
def _on_trees(
    objective: Objective,
    structure: Structure,
    x: Any,
    c: Any,
    alpha: Any,
    beta: Any,
    nodes: int,
    reading: str,
) -> Any:
    """One program for all x, terminals and orders."""
    vector = structure.ravel(x)
    c = c if is_array(c) and c.ndim == 0 else structure.ravel(c)
    c = jnp.broadcast_to(jnp.asarray(c, vector.dtype), vector.shape)
    alpha, beta = jnp.asarray(alpha, vector.dtype), jnp.asarray(beta, vector.dtype)
    s = 1 if objective.linear_slopes else nodes
    d = direction(objective, objective.evaluate(vector), c, memory_of(alpha, beta, s), reading)
    return structure.unravel(d)
