"""Points are vectors inside and whatever the user gave outside: a number, an array, a pytree."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.types import Data, DType, Values, Vector


def checked_pytree(owner: str, field: str, x: Any) -> Any:
    """`x` with checked, floating array leaves; a list of numbers is a vector, not a pytree."""
    if _is_pytree(x):
        x = jax.tree_util.tree_map_with_path(
            lambda path, leaf: checks.array(owner, field + jax.tree_util.keystr(path), leaf), x
        )
    else:
        x = checks.array(owner, field, x)
    if not jax.tree.leaves(x) or sum(jnp.size(leaf) for leaf in jax.tree.leaves(x)) == 0:
        checks.fail(owner, field, "hold at least one number", "nothing")
    return x


def _is_pytree(x: Any) -> bool:
    if x is None or jax.tree_util.all_leaves([x]):
        return False
    # numbers of NumPy are numbers; arrays without axes are not
    arrays = any(isinstance(leaf, jax.Array | np.ndarray) for leaf in jax.tree.leaves(x))
    return arrays or not isinstance(x, list | tuple)


@dataclasses.dataclass(frozen=True)
class Structure:
    """How a pytree of arrays is laid out in one vector. Hashable: equal structures, one trace."""

    treedef: jax.tree_util.PyTreeDef
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, x: Any) -> Structure:
        leaves, treedef = jax.tree.flatten(x)
        return cls(treedef, tuple(tuple(np.shape(leaf)) for leaf in leaves))

    @functools.cached_property
    def is_vector(self) -> bool:
        return self.treedef == jax.tree.structure(0) and len(self.shapes[0]) == 1

    @property
    def size(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes)

    def ravel(self, x: Any) -> Vector:
        """NumPy's where all of x is: to make an array of JAX takes as long as a small solve."""
        parts = [leaf.reshape(-1) for leaf in jax.tree.leaves(x)]
        here = all(isinstance(part, np.ndarray) for part in parts)
        return parts[0] if len(parts) == 1 else (np if here else jnp).concatenate(parts)

    def unravel(self, vector: Data) -> Any:
        """The tree back; leading axes of `vector` before its last one go along."""
        lead = vector.shape[:-1]
        ends = np.cumsum([0, *(math.prod(shape) for shape in self.shapes)])
        leaves = [
            vector[..., start:end].reshape(lead + shape)
            for start, end, shape in zip(ends[:-1], ends[1:], self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.treedef, leaves)


def promote_precision(x0: Any, dtype: DType) -> Any:
    """x0 in the wider of its own precision and `dtype`, in which results come back like it.

    A float64 result rounded to the float32 of x0 would not be the point that was judged. Where
    the user's JAX has no float64, it is NumPy's.
    """

    def one(leaf: Values) -> Values:
        if not isinstance(leaf, jax.Array) or leaf.dtype.itemsize >= dtype.itemsize:
            return leaf
        known = jax.dtypes.canonicalize_dtype(dtype) == dtype
        return jnp.asarray(leaf, dtype) if known else np.asarray(leaf, dtype)

    return jax.tree.map(one, x0)


def match_array_type(tree: Any, x0: Any) -> Any:
    """`tree` in the kind of array of x0: NumPy for NumPy and numbers, JAX in its dtype for JAX."""

    def one(leaf: Values, start: Values) -> Values:
        if isinstance(start, jax.Array):
            return jnp.asarray(leaf, start.dtype)
        return np.asarray(leaf)

    return jax.tree.map(one, tree, x0)


class FunctionOfVector(eqx.Module):
    """fn of a pytree, as a function of the vector in which the pytree is laid out."""

    fn: Callable[[Any], Any]
    structure: Structure = eqx.field(static=True)

    def __call__(self, vector: Vector, *args: Any) -> Any:
        return self.fn(self.structure.unravel(vector), *args)
