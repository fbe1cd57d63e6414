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
from cfgd._core.model_leaves import Fixed, is_module, parameter_mask
from cfgd._core.types import DType, Values, Vector

# The structure of a single leaf. Nearly all points are single arrays, and JAX's functions of trees
# take longer than a small step: for NumPy arrays they are not called.
LEAF = jax.tree.structure(0)


def checked_pytree(owner: str, field: str, x: PyTree) -> Any:
    """Return `x` with finite floating arrays as parameters, or raise a `ValueError`.

    A list or tuple of numbers is taken as one vector, not as a pytree of scalars. Leaves that are
    no parameters (see `parameter_mask`) stay as they are.
    """
    if isinstance(x, np.ndarray) or not _is_pytree(x):
        x = checks.array(owner, field, x)
        sizes = [x.size]
    else:
        mask = parameter_mask(x)
        pairs, treedef = jax.tree_util.tree_flatten_with_path(x)
        leaves = [
            checks.array(owner, field + jax.tree_util.keystr(path), leaf) if moves else leaf
            for (path, leaf), moves in zip(pairs, mask, strict=True)
        ]
        x = jax.tree.unflatten(treedef, leaves)
        sizes = [jnp.size(leaf) for leaf, moves in zip(leaves, mask, strict=True) if moves]
    if sum(sizes) == 0:
        checks.fail(owner, field, "hold at least one number", "nothing")
    return x


def map_parameters(fn: Callable[..., Any], tree: PyTree, *others: PyTree) -> Any:
    """Return `tree` with `fn` applied to its parameters, as `jax.tree.map` does to all leaves."""
    if isinstance(tree, np.ndarray):
        return fn(tree, *others)
    mask = jax.tree.unflatten(jax.tree.structure(tree), parameter_mask(tree))

    def mapped(moves: bool, leaf: Any, *rest: Any) -> Any:
        return fn(leaf, *rest) if moves else leaf

    return jax.tree.map(mapped, mask, tree, *others)


def _is_pytree(x: PyTree) -> bool:
    if x is None or jax.tree_util.all_leaves([x]):
        return False
    # a NumPy scalar counts as a number, a 0-d array as an array
    has_arrays = any(isinstance(leaf, jax.Array | np.ndarray) for leaf in jax.tree.leaves(x))
    return has_arrays or not isinstance(x, list | tuple) or any(map(is_module, x))


@dataclasses.dataclass(frozen=True)
class Structure:
    """The treedef and the shapes of a pytree: how its parameters are laid out in one vector.

    Hashable and static under `jit`: points of equal structure share one compiled program. Where
    `fixed` are leaves that are no parameters, `treedef` is that of the parameters alone, with None
    in the place of the others.
    """

    treedef: jax.tree_util.PyTreeDef
    shapes: tuple[tuple[int, ...], ...]
    fixed: Fixed | None = None

    @classmethod
    def of(cls, x: PyTree) -> Structure:
        """Return the structure of the pytree `x`."""
        if isinstance(x, np.ndarray):
            return cls(LEAF, (x.shape,))
        leaves, treedef = jax.tree.flatten(x)
        mask, fixed = parameter_mask(x), None
        if not all(mask):
            fixed = Fixed(treedef, leaves, mask)
            moving = [leaf if moves else None for leaf, moves in zip(leaves, mask, strict=True)]
            leaves, treedef = jax.tree.flatten(jax.tree.unflatten(treedef, moving))
        return cls(treedef, tuple(tuple(np.shape(leaf)) for leaf in leaves), fixed)

    @functools.cached_property
    def is_vector(self) -> bool:
        """Whether the pytree is a single array with one axis."""
        return self.treedef == LEAF and len(self.shapes[0]) == 1

    @property
    def size(self) -> int:
        """The length of the vector."""
        return sum(math.prod(shape) for shape in self.shapes)

    def ravel(self, x: PyTree) -> Vector:
        """Return the leaves of `x` as one vector, a NumPy array if all leaves are NumPy arrays.

        Creating a JAX array takes as long as a small solve, so NumPy leaves are not converted.
        """
        if isinstance(x, np.ndarray):
            return x.reshape(-1)
        parts = [leaf.reshape(-1) for leaf in jax.tree.leaves(self.parameters(x))]
        all_numpy = all(isinstance(part, np.ndarray) for part in parts)
        return parts[0] if len(parts) == 1 else (np if all_numpy else jnp).concatenate(parts)

    def parameters(self, x: PyTree) -> Any:
        """Return `x` with None in place of the leaves that are no parameters."""
        if self.fixed is None:
            return x
        leaves = zip(jax.tree.leaves(x), self.fixed.mask, strict=True)
        return jax.tree.unflatten(self.treedef, [leaf for leaf, moves in leaves if moves])

    def unravel(self, vector: Values) -> Any:
        """Return the pytree of `vector`; its leading axes become those of every parameter."""
        leaves = self._parts(vector)
        if self.fixed is None and self.treedef == LEAF:
            return leaves[0]
        if self.fixed is None:
            return jax.tree.unflatten(self.treedef, leaves)
        return self.fixed.combine(leaves)

    def unravel_parameters(self, vector: Values) -> Any:
        """Return the same with None for all else, as derivatives are: `eqx.filter_grad`."""
        return jax.tree.unflatten(self.treedef, self._parts(vector))

    def _parts(self, vector: Values) -> list[Any]:
        batch = vector.shape[:-1]
        if len(self.shapes) == 1:
            return [vector.reshape(batch + self.shapes[0])]
        ends = np.cumsum([0, *(math.prod(shape) for shape in self.shapes)])
        return [
            vector[..., start:end].reshape(batch + shape)
            for start, end, shape in zip(ends[:-1], ends[1:], self.shapes, strict=True)
        ]


def promote_precision(x0: PyTree, dtype: DType) -> Any:
    """Return x0 with its JAX leaves in the wider one of their precision and `dtype`.

    Results are returned in the precision of this x0: a float64 result rounded to the float32 of x0
    would not be the point whose convergence was tested. If float64 is disabled in the user's JAX,
    a leaf that needs it becomes a NumPy array.
    """

    def promote(leaf: Values) -> Values:
        if not isinstance(leaf, jax.Array) or leaf.dtype.itemsize >= dtype.itemsize:
            return leaf
        is_enabled = jax.dtypes.canonicalize_dtype(dtype) == dtype
        return jnp.asarray(leaf, dtype) if is_enabled else np.asarray(leaf, dtype)

    return map_parameters(promote, x0)


def match_array_type(tree: PyTree, x0: PyTree) -> Any:
    """Return `tree` with the array types of x0: a JAX array of its dtype for JAX, else NumPy."""

    def convert(leaf: Values, start: Values) -> Values:
        if isinstance(start, jax.Array):
            return jnp.asarray(leaf, start.dtype)
        return np.asarray(leaf)

    return map_parameters(convert, tree, x0)


class FunctionOfVector(eqx.Module):
    """A function of a pytree as a function of the vector of its leaves."""

    fn: Callable[[Any], Any]
    structure: Structure = eqx.field(static=True)

    def __call__(self, vector: Vector, *args: object) -> Any:
        return self.fn(self.structure.unravel(vector), *args)
