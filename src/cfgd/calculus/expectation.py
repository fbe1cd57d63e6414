"""Expectations E[g(T)], T = c + U (x - c), U ~ Beta(1, 1 - alpha), with an error estimate.

The Caputo derivative and the smoothing are both such expectations. They are computed by two
Gauss-Jacobi rules, whose difference estimates the error; with `nodes="auto"` the number of nodes
grows until the rules agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out
from cfgd._core.types import Data, DType, Numbers, Scalar, Values
from cfgd.calculus.quadrature import nodes_and_weights

Curve: TypeAlias = Callable[[Any], Any]  # the user's function of one variable
Rule: TypeAlias = tuple[Numbers, Numbers]  # nodes and weights, of shape (nodes, *alpha.shape)
Rules: TypeAlias = tuple[Rule, Rule]  # the rule that is used, and the one it is compared with
# values of an integrand, and the sizes of the terms in them, to which their rounding is relative
ValuesAndSizes: TypeAlias = tuple[Numbers, Numbers]
# for each attempt the number of nodes, and that of the rule it is compared with
NodeCounts: TypeAlias = tuple[tuple[int, int], ...]

# Rules that are tried in turn, each with the one that it is compared with: 64 nodes are exact to
# rounding for analytic functions, 1,024 take milliseconds.
AUTO_NODES: NodeCounts = ((64, 48), (256, 192), (1024, 768))
AGREEMENT = 300  # in units of the rounding of the summands: rules that differ by less agree
BLOCK = 64  # nodes that are evaluated at once, so that memory does not grow with their number


# ------------------------------------------------------------------ functions of one variable


def derivative(f: Curve, n: int) -> Curve:
    """Return the n-th derivative of `f`, by forward-mode differentiation."""
    for _ in range(n):
        f = _first_derivative(f)
    return f


def _first_derivative(f: Curve) -> Curve:
    return lambda t: jax.jvp(f, (t,), (jnp.ones_like(t),))[1]


def elementwise(f: Curve, t: Numbers) -> Array:
    """Apply a function of one number to every entry of `t`."""
    return jax.vmap(f)(t.reshape(-1)).reshape(t.shape)


def hashable(f: Curve) -> Curve:
    """Return `f`, or a wrapper of it that can be hashed, as the cache of `jit` requires."""
    static = eqx.filter(f, eqx.is_array, inverse=True)
    try:
        hash((tuple(jax.tree.leaves(static)), jax.tree.structure(static)))
    except TypeError:
        return lambda t: f(t)
    return f


# ------------------------------------------------------------------ shapes and dtypes


def result_dtype(x: Values, *others: Values) -> DType:
    """Return the common dtype of x and the others; 0-d arrays take the precision of x."""
    dtypes = [jax.dtypes.canonicalize_dtype(a.dtype) for a in (x, *others) if a is x or a.ndim]
    return jnp.result_type(*(t if jnp.issubdtype(t, jnp.floating) else float for t in dtypes))


def cast_and_broadcast(dtype: DType, x: Array, c: Array, *others: Array) -> tuple[Numbers, ...]:
    """Cast all to `dtype`, and broadcast x and the terminal c to the common shape of all."""
    shape = jnp.broadcast_shapes(*(a.shape for a in (x, c, *others)))
    x, c, *numbers = (jnp.asarray(a, dtype) for a in (x, c, *others))
    return jnp.broadcast_to(x, shape), jnp.broadcast_to(c, shape), *numbers


# ------------------------------------------------------------------ expectation and error


class Average(NamedTuple):
    """E[value], E[size] and the largest size over the nodes."""

    mean: Numbers
    size: Numbers
    largest: Numbers


def expectation(g: Callable[[Numbers], ValuesAndSizes], rule: Rule, ndim: int) -> Average:
    """Average g(u) = (values, sizes) over the nodes u, the first of the 1 + ndim axes of values."""
    u, w = (a.reshape(a.shape[:1] + (1,) * (1 + ndim - a.ndim) + a.shape[1:]) for a in rule)

    def add(total: Average, block: Rule) -> tuple[Average, None]:
        u, w = block
        value, size = g(u)
        return Average(
            total.mean + jnp.sum(w * value, axis=0),
            total.size + jnp.sum(w * size, axis=0),
            jnp.maximum(total.largest, jnp.max(size, axis=0)),
        ), None

    zero = jnp.zeros(jax.eval_shape(g, u)[0].shape[1:], u.dtype)
    start = Average(zero, zero, zero)
    if len(u) <= BLOCK:
        return add(start, (u, w))[0]
    padding = ((0, -len(u) % BLOCK),) + ((0, 0),) * ndim  # to full blocks, with weights of zero
    blocks = jnp.pad(u, padding, "edge"), jnp.pad(w, padding)
    blocks = jax.tree.map(lambda a: a.reshape(-1, BLOCK, *a.shape[1:]), blocks)
    return jax.lax.scan(add, start, blocks)[0]


def error_estimate(average: Average, other: Average, c: Numbers, h: Numbers) -> Scalar:
    """Return the largest difference of two averages, relative to the mean size of the summands.

    A difference that rounding explains counts as zero: rounding of the values, and of the points
    c + U h at which they are taken.
    """
    gap = jnp.abs(average.mean - other.mean)
    rounding = AGREEMENT * jnp.finfo(gap.dtype).eps * (1 + jnp.abs(c / h)) * average.largest
    return jnp.max(jnp.where(gap > rounding, gap / average.size, 0), initial=0)


# ------------------------------------------------------------------ choice of the number of nodes


def node_counts(owner: str, nodes: object) -> NodeCounts:
    """Return the rules to try in turn, each with the rule that it is compared with.

    A given number of nodes is compared with a finer rule: a coarser one would report an error for
    polynomials that the given rule integrates exactly.
    """
    if isinstance(nodes, str):
        if nodes != "auto":
            checks.fail(owner, "nodes", 'be "auto" or an integer of at least 1', repr(nodes))
        return AUTO_NODES
    nodes = checks.integer(owner, "nodes", nodes)
    return ((nodes, nodes + nodes // 3 + 8),)


def with_enough_nodes(
    owner: str,
    counts: NodeCounts,
    program: Callable[..., tuple[Numbers, Scalar]],
    f: Curve,
    *numbers: object,
) -> Data:
    """Return the value of `program` by the first rule that is accurate enough.

    If no rule is, return the value by the last one and warn. Inside `jit`, `grad` and `vmap` the
    error is unknown: the first rule is used.

    Parameters
    ----------
    program
        A function of (f, rules, *numbers) that returns the value and an `error_estimate`.
    numbers
        x, the terminal, the alpha of the rule, and further arguments of the program.
    """

    def evaluate(*numbers: object) -> Numbers:
        # a Python number would become a constant of the compiled program
        x, c, alpha, *more = (a if isinstance(a, jax.Array) else np.asarray(a) for a in numbers)
        dtype = result_dtype(x, c, alpha, *more)
        for pair in counts:
            # the rules are a separate program, compiled once for all functions and shapes of x
            rules = tuple(nodes_and_weights(alpha.astype(dtype), nodes) for nodes in pair)
            value, error = program(f, rules, x, c, alpha, *more)
            if checks.is_traced(error) or not float(error) > 0:
                return value
        if float(error) > math.sqrt(jnp.finfo(dtype).eps):
            _warn(owner, f, pair[0], float(error))
        return value

    with checks.traceable(owner, "f"):
        return numpy_in_numpy_out(evaluate)(*numbers)


def _warn(owner: str, f: Curve, nodes: int, error: float) -> None:
    name = getattr(f, "__name__", type(f).__name__)
    checks.warn(
        f"`{owner}({name}, ...)`: with {nodes} nodes the estimated error is {error:.0e} of the "
        "mean size of the integrand; split the interval where the function has a kink, bring the "
        "terminal nearer, or raise `nodes`."
    )
