"""Any differentiable JAX function of an array or a pytree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd import _check
from cfgd.objective.base import Objective
from cfgd.precision import numpy_in_numpy_out
from cfgd.structure import Structure, as_tree


class Smooth(Objective):
    """f(x) = fn(x) for a JAX function `fn` of a vector or of any pytree of arrays.

    Coordinate slopes and curvatures are exact: one coordinate is moved at a time, so a direction
    with s nodes costs about s d gradients (in chunks, so memory stays bounded).

    >>> import cfgd, jax.numpy as jnp, numpy as np
    >>> f = cfgd.Smooth(lambda p: jnp.sum(p["a"] ** 2) + 3 * p["b"])
    >>> print(f.gradient({"a": np.array([1.0, 2.0]), "b": 0.5}))
    {'a': array([2., 4.]), 'b': array(3.)}
    """

    fn: Callable[[Any], Any]

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        if not callable(fn):
            _check.fail("Smooth", "fn", "be a function", repr(fn))
        self.fn = fn

    @property
    def dimension(self) -> None:
        return None

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        return jnp.asarray(self.fn(jax.tree.map(jnp.asarray, as_tree("Smooth", "x", x))))

    def flat(self, structure: Structure) -> Smooth:
        """The same function of the vector that `structure` makes of a pytree."""
        return self if structure.is_vector else Smooth(OfVector(self.fn, structure))


class OfVector(eqx.Module):
    """fn of a pytree, as a function of the vector in which the pytree is laid out."""

    fn: Callable[[Any], Any]
    structure: Structure = eqx.field(static=True)

    def __call__(self, vector: Any) -> Any:
        return self.fn(self.structure.unravel(vector))
