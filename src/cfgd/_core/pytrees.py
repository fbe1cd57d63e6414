"""Conversion between pytrees, in which users give points, and the vectors that the solver uses."""

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
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.types import DType, Values, Vector


def checked_pytree(owner: str, field: str, x: PyTree) -> Any:
    """Return `x` with finite floating arrays as leaves, or raise a `ValueError`.

    A list or tuple of numbers is taken as one vector, not as a pytree of scalars.
    """
    if _is_pytree(x):
        x = jax.tree_util.tree_map_with_path(
            lambda path, leaf: checks.array(owner, field + jax.tree_util.keystr(path), leaf), x
        )
    else:
        x = checks.array(owner, field, x)
    if not jax.tree.leaves(x) or sum(jnp.size(leaf) for leaf in jax.tree.leaves(x)) == 0:
        checks.fail(owner, field, "hold at least one number", "nothing")
    return x


def _is_pytree(x: PyTree) -> bool:
    if x is None or jax.tree_util.all_leaves([x]):
        return False
    # a NumPy scalar counts as a number, a 0-d array as an array
    has_arrays = any(isinstance(leaf, jax.Array | np.ndarray) for leaf in jax.tree.leaves(x))
    return has_arrays or not isinstance(x, list | tuple)


@dataclasses.dataclass(frozen=True)
class Structure:
    """The treedef and the shapes of a pytree: how its leaves are laid out in one vector.

    Hashable and static under `jit`: points of equal structure share one compiled program.
    """

    treedef: jax.tree_util.PyTreeDef
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, x: PyTree) -> Structure:
        """Return the structure of the pytree `x`."""
        leaves, treedef = jax.tree.flatten(x)
        return cls(treedef, tuple(tuple(np.shape(leaf)) for leaf in leaves))

    @functools.cached_property
    def is_vector(self) -> bool:
        """Whether the pytree is a single array with one axis."""
        return self.treedef == jax.tree.structure(0) and len(self.shapes[0]) == 1

    @property
    def size(self) -> int:
        """The length of the vector."""
        return sum(math.prod(shape) for shape in self.shapes)

    def ravel(self, x: PyTree) -> Vector:
        """Return the leaves of `x` as one vector, a NumPy array if all leaves are NumPy arrays.

        Creating a JAX array takes as long as a small solve, so NumPy leaves are not converted.
        """
        parts = [leaf.reshape(-1) for leaf in jax.tree.leaves(x)]
        all_numpy = all(isinstance(part, np.ndarray) for part in parts)
        return parts[0] if len(parts) == 1 else (np if all_numpy else jnp).concatenate(parts)

    def unravel(self, vector: Values) -> Any:
        """Return the pytree of `vector`; its leading axes become leading axes of every leaf."""
        batch = vector.shape[:-1]
        ends = np.cumsum([0, *(math.prod(shape) for shape in self.shapes)])
        leaves = [
            vector[..., start:end].reshape(batch + shape)
            for start, end, shape in zip(ends[:-1], ends[1:], self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.treedef, leaves)


def promote_precision(x0: PyTree, dtype: DType) -> Any:
    """Return x0 with its JAX leaves in the wider of their own precision and `dtype`.

    Results are returned in the precision of this x0: a float64 result rounded to the float32 of x0
    would not be the point whose convergence was tested. If float64 is disabled in the user's JAX,
    a leaf that needs it becomes a NumPy array.
    """

    def promote(leaf: Values) -> Values:
        if not isinstance(leaf, jax.Array) or leaf.dtype.itemsize >= dtype.itemsize:
            return leaf
        is_enabled = jax.dtypes.canonicalize_dtype(dtype) == dtype
        return jnp.asarray(leaf, dtype) if is_enabled else np.asarray(leaf, dtype)

    return jax.tree.map(promote, x0)


def match_array_type(tree: PyTree, x0: PyTree) -> Any:
    """Return `tree` with the array types of x0: a JAX array of its dtype for JAX, else NumPy."""

    def convert(leaf: Values, start: Values) -> Values:
        if isinstance(start, jax.Array):
            return jnp.asarray(leaf, start.dtype)
        return np.asarray(leaf)

    return jax.tree.map(convert, tree, x0)


class FunctionOfVector(eqx.Module):
    """A function of a pytree as a function of the vector of its leaves."""

    fn: Callable[[Any], Any]
    structure: Structure = eqx.field(static=True)

    def __call__(self, vector: Vector, *args: object) -> Any:
        return self.fn(self.structure.unravel(vector), *args)
