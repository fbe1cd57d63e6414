"""Which leaves of a pytree are parameters, and which ones are kept unchanged.

A model of Equinox or Flax NNX is a pytree whose leaves are not all parameters: there are activation
functions, counters and keys of random numbers among them.
"""

from __future__ import annotations

import sys
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from cfgd._core.arrays import is_array, numbers_of


def is_module(node: object) -> bool:
    """Return whether a node of a pytree is a module of Equinox or of Flax NNX."""
    nnx = sys.modules.get("flax.nnx")  # a user with such a module has imported it
    return isinstance(node, eqx.Module) or (nnx is not None and isinstance(node, nnx.Module))


def parameter_mask(tree: PyTree) -> list[bool]:
    """Return for each leaf of a pytree whether it is a parameter.

    In a module these are the floating arrays, as for `eqx.filter_grad`, and of the variables of
    Flax those of type `nnx.Param`; in a module without arrays they are its numbers. Elsewhere every
    leaf is one, except functions.
    """
    nodes = jax.tree.leaves(tree, is_leaf=is_module)
    return [
        is_parameter
        for node in nodes
        for is_parameter in (_mask_of_module(node) if is_module(node) else [not callable(node)])
    ]


def _mask_of_module(module: object) -> list[bool]:
    nodes = jax.tree.leaves(module, is_leaf=_is_other_variable)
    pairs = [
        (leaf, not _is_other_variable(node)) for node in nodes for leaf in jax.tree.leaves(node)
    ]
    mask = [may_move and eqx.is_inexact_array(leaf) for leaf, may_move in pairs]
    if any(mask):
        return mask
    return [may_move and _is_number(leaf) for leaf, may_move in pairs]


def _is_other_variable(node: object) -> bool:
    """Return whether a node is a variable of Flax that is no parameter, such as a running mean."""
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(node, nnx.Variable) and not isinstance(node, nnx.Param)


def _is_number(leaf: object) -> bool:
    return isinstance(leaf, int | float | np.number) and not isinstance(leaf, bool)


class Fixed:
    """The leaves of a pytree that are no parameters, and their places in it.

    It is hashable and compared by value: models that differ in their parameters alone share one
    compiled program.
    """

    def __init__(self, treedef: jax.tree_util.PyTreeDef, leaves: list[Any], mask: list[bool]):
        self.treedef, self.mask = treedef, tuple(mask)
        self.leaves = [leaf for leaf, moves in zip(leaves, mask, strict=True) if not moves]
        self._key = treedef, self.mask, tuple(map(_key, self.leaves))
        self._hash = hash(self._key)

    def combine(self, parameters: list[Any]) -> Any:
        """Return the pytree with these parameters."""
        fixed, moving = iter(self.leaves), iter(parameters)
        leaves = [next(moving) if moves else next(fixed) for moves in self.mask]
        return jax.tree.unflatten(self.treedef, leaves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash


def _key(leaf: Any) -> tuple[Any, ...]:
    """Return what makes two leaves equal: type and value, or identity where there is no value."""
    if isinstance(leaf, jax.core.Tracer):
        return (id(leaf),)
    if is_array(leaf):
        array = numbers_of(leaf)
        return type(leaf), array.shape, array.dtype, array.tobytes()
    try:
        hash(leaf)
    except TypeError:
        return (id(leaf),)
    return type(leaf), leaf
