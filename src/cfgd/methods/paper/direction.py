"""The scaled Caputo fractional gradient: the formula of every method, and a public function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from cfgd._core import checks
from cfgd._core.arrays import is_array, numpy_in_numpy_out
from cfgd._core.pytrees import Structure, checked_pytree
from cfgd._core.types import ArrayInput, Numbers, Values, Vector
from cfgd.calculus.quadrature import nodes_and_weights
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.function import as_objective

# how x_j - c_j enters the formula: with its sign, or as the absolute value of equation (2.6)
READINGS = ("exact", "printed")

# nodes and weights of the expectation over U, of shape (s,), or (s, d) for an order per coordinate
Nodes: TypeAlias = tuple[Float[Array, " s *d"], Float[Array, " s *d"]]


class CaputoMemory(NamedTuple):
    """The memory of the Caputo derivative: the quadrature rule of alpha, beta and gamma."""

    nodes: Nodes
    beta: Numbers
    gamma: Numbers


def memory_of(alpha: ArrayInput, beta: ArrayInput, nodes: int) -> CaputoMemory:
    """Return the memory of order alpha and smoothing beta.

    gamma is beta - (1 - alpha)/(2 - alpha), where 1/(2 - alpha) is the mean of U.
    """
    alpha, beta = jnp.asarray(alpha), jnp.asarray(beta)
    u, w = nodes_and_weights(alpha, nodes)
    return CaputoMemory((u, w), beta, beta + jnp.sum(u * w, 0) - 1)


def check_reading(owner: str, reading: object) -> str:
    """Return `reading` if it is one of `READINGS`."""
    return checks.choice(owner, "reading", reading, READINGS)


def direction(
    objective: Objective, point: Evaluation, c: Vector, memory: CaputoMemory, reading: str = "exact"
) -> Vector:
    r"""Return the scaled Caputo fractional gradient at `point` with terminal c (Theorem 2.4).

    $$ d_j = E[f_j'(T_j)] + \beta (x_j - c_j) E[f_j''(T_j)], \quad T_j = c_j + U (x_j - c_j) $$

    With the reading "exact", x_j - c_j is signed and the nodes lie between c_j and x_j (errata 2
    and 3). With "printed", it is |x_j - c_j| and the nodes lie above c_j.
    """
    u, w = (part[:, None] if part.ndim == 1 else part for part in memory.nodes)
    beta = memory.beta
    from_terminal = point.x - c
    if reading == "printed":
        from_terminal = jnp.abs(from_terminal)
    slopes, curvatures = objective.coordinate_derivatives(point, c + u * from_terminal)
    if len(u) == 1:  # its weight is one
        return slopes[0] + beta * from_terminal * curvatures[0]
    return jnp.sum(w * slopes, 0) + beta * from_terminal * jnp.sum(w * curvatures, 0)


def penalty_curvature(gamma: Numbers, x: Vector, c: Vector, reading: str) -> Numbers:
    """Return the derivative of d_j - g_j in x_j on a quadratic, in units of a_jj.

    d_j - g_j is gamma a_jj (x_j - c_j), or a_jj ((c_j - x_j) + (1 + gamma) |x_j - c_j|) as printed.
    """
    return jnp.where(x < c, -2 - gamma, gamma) if reading == "printed" else gamma


def fractional_gradient(
    objective: Objective | Callable[[Any], Any],
    x: PyTree,
    terminal: PyTree,
    alpha: ArrayInput,
    beta: ArrayInput,
    nodes: int = 10,
    reading: str = "exact",
) -> Any:
    r"""Return the scaled Caputo fractional gradient of an objective or function (Theorem 2.4).

    $$ d_j = E[f_j'(T_j)] + \beta (x_j - c_j) E[f_j''(T_j)], \quad
       T_j = c_j + U (x_j - c_j), \quad U \sim \mathrm{Beta}(1, 1 - \alpha) $$

    where f_j is f with only coordinate j free. At terminal = x it is the gradient.

    Parameters
    ----------
    objective : Objective or callable
        An objective, or a JAX function of x.
    x : number, array or pytree
        The point.
    terminal : number, array or pytree
        The terminal c: one number, or of the structure of x.
    alpha, beta : number or array
        Order in (0, 1) and smoothing: numbers, or one for each coordinate.
    nodes : int, default 10
        Number of quadrature nodes. One node is used where it is exact, as on a quadratic.
    reading : {"exact", "printed"}, default "exact"
        "printed" replaces x_j - c_j by |x_j - c_j| in both places, as in equation (2.6) of the
        paper (errata 2 and 3). For x_j > c_j the result is the same. For x_j < c_j it is no Caputo
        derivative: the nodes do not lie between c_j and x_j, and the term that is added to the
        gradient grows with |x_j - c_j| but does not change its sign with x_j - c_j. On a quadratic
        d_j = g_j + a_jj ((c_j - x_j) + (E U + beta) |x_j - c_j|).

    Returns
    -------
    number, array or pytree
        The direction d, of the structure of x.

    Raises
    ------
    ValueError
        If `objective` is neither an objective nor a function; `x` or `terminal` has an entry that
        is not finite; `terminal` is neither a number nor of the structure of `x`; `alpha` is not in
        (0, 1); `alpha` or `beta` has neither one number nor one for each coordinate; `nodes` is not
        an integer of at least 1; or `reading` is another word.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), theorem 2.4.

    Examples
    --------
    >>> import cfgd
    >>> print(cfgd.fractional_gradient(lambda x: 10 * x[0] ** 2 + x[1] ** 2,
    ...                                [1.0, -10.0], [-1.0, -1.0], alpha=0.5, beta=0.0))
    [  6.66666667 -14.        ]

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
    is_number = is_array(terminal) and terminal.ndim == 0
    if not is_number and Structure.of(terminal) != structure:
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
    x: PyTree,
    c: PyTree,
    alpha: Values,
    beta: Values,
    nodes: int,
    reading: str,
) -> Any:
    """Compute the direction on pytrees; one program serves all x, terminals and orders."""
    vector = structure.ravel(x)
    c = c if is_array(c) and c.ndim == 0 else structure.ravel(c)
    c = jnp.broadcast_to(jnp.asarray(c, vector.dtype), vector.shape)
    alpha, beta = jnp.asarray(alpha, vector.dtype), jnp.asarray(beta, vector.dtype)
    s = 1 if objective.traits.linear_slopes else nodes
    d = direction(objective, objective.evaluate(vector), c, memory_of(alpha, beta, s), reading)
    return structure.unravel_parameters(d)
