"""How many nodes are enough: two rules are compared, and what they cannot resolve is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out
from cfgd._core.types import Data, Numbers, Scalar
from cfgd.calculus.expectation import Average, Curve, precision
from cfgd.calculus.quadrature import nodes_and_weights

Pairs: TypeAlias = tuple[tuple[int, int], ...]  # nodes, and the nodes that they are compared with

AUTO: Pairs = ((64, 48), (256, 192), (1024, 768))
ROUNDING = 300  # in units of eps: two rules that agree to this agree


def pairs(owner: str, nodes: Any) -> Pairs:
    """The rules to try, one after the other. A given number of nodes is compared with a finer rule.

    A coarser one would be wrong about polynomials that the given rule integrates exactly.
    """
    if isinstance(nodes, str):
        if nodes != "auto":
            checks.fail(owner, "nodes", 'be "auto" or an integer of at least 1', repr(nodes))
        return AUTO
    nodes = checks.integer(owner, "nodes", nodes)
    return ((nodes, nodes + nodes // 3 + 8),)


def error(average: Average, other: Average, c: Numbers, h: Numbers) -> Scalar:
    """The largest difference of two averages, relative to the size of what is averaged.

    Zero where it is rounding: that of the values, and that of the points c + U h themselves.
    """
    gap = jnp.abs(average.mean - other.mean)
    rounding = ROUNDING * jnp.finfo(gap.dtype).eps * (1 + jnp.abs(c / h)) * average.largest
    return jnp.max(jnp.where(gap > rounding, gap / average.size, 0), initial=0)


def settle(
    owner: str,
    pairs: Pairs,
    program: Callable[..., tuple[Numbers, Scalar]],
    f: Curve,
    *numbers: Any,
) -> Data:
    """The value of `program` by the first rule that is enough, or by the last with a warning.

    The numbers are x, the terminal, the alpha of the rule, and what else the program takes.
    Inside `jit`, `grad` and `vmap` there is nothing to look at: the first rule is used.
    """

    def first_enough(*numbers: Any) -> Numbers:
        # a Python number would be a constant of the compiled program
        x, c, alpha, *more = (a if isinstance(a, jax.Array) else np.asarray(a) for a in numbers)
        dtype = precision(x, c, alpha, *more)
        for pair in pairs:
            # a program of its own: compiled once for all functions and shapes of x
            rules = tuple(nodes_and_weights(alpha.astype(dtype), nodes) for nodes in pair)
            value, left = program(f, rules, x, c, alpha, *more)
            if checks.is_traced(left) or not float(left) > 0:
                return value
        if float(left) > math.sqrt(jnp.finfo(dtype).eps):
            _warn(owner, f, pair[0], float(left))
        return value

    with checks.traceable(owner, "f"):
        return numpy_in_numpy_out(first_enough)(*numbers)


def _warn(owner: str, f: Curve, nodes: int, left: float) -> None:
    name = getattr(f, "__name__", type(f).__name__)
    checks.warn(
        f"`{owner}({name}, ...)`: with {nodes} nodes an error of about {left:.0e} of the mean size "
        "of what is averaged is left; "
        "split the interval where the function has a kink, bring the terminal nearer, or raise "
        "`nodes`."
    )


def compilable(f: Curve) -> Curve:
    """f, or f behind a name that can be looked up among what is compiled already."""
    static = eqx.filter(f, eqx.is_array, inverse=True)
    try:
        hash((tuple(jax.tree.leaves(static)), jax.tree.structure(static)))
    except TypeError:
        return lambda t: f(t)
    return f
