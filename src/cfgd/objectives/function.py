"""Any differentiable JAX function of an array or a pytree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out, own
from cfgd._core.pytrees import FunctionOfVector, Structure, checked_pytree, map_parameters
from cfgd._core.types import Vector
from cfgd.objectives.base import Objective

EXTERNAL = " or be a cfgd.External(value, gradient)"


class Smooth(Objective):
    """f(x) = fn(x, *args) for a JAX function `fn` of a vector or of any pytree of arrays.

    Coordinate slopes and curvatures are exact: one coordinate is moved at a time, so a direction
    with s nodes costs about s d gradients (in chunks, so memory stays bounded).

    Arrays in `args` are copied. Arrays that `fn` captures are not copied, and may become constants
    of the compiled program.

    Parameters
    ----------
    fn : callable
        A JAX function fn(x, *args) that returns one number.
    args : tuple, default ()
        Data that is passed to `fn`: pytrees of arrays.

    Raises
    ------
    ValueError
        If `fn` is no function or `args` is no tuple. `minimize` raises it if `fn` does not return
        one real number, or is not written in JAX.

    Examples
    --------
    >>> import cfgd, jax.numpy as jnp, numpy as np
    >>> f = cfgd.Smooth(lambda p: jnp.sum(p["a"] ** 2) + 3 * p["b"])
    >>> print(f.gradient({"a": np.array([1.0, 2.0]), "b": 0.5}))
    {'a': array([2., 4.]), 'b': array(3.)}
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...] = ()) -> None:
        checks.function("Smooth", "fn", fn, "be a function")
        self.fn, self.args = fn, array_arguments("Smooth", args)

    @numpy_in_numpy_out
    def value(self, x: PyTree) -> Any:
        x = map_parameters(jnp.asarray, checked_pytree("Smooth", "x", x))
        return jnp.asarray(self.fn(x, *self.args))

    def raveled(self, structure: Structure) -> Smooth:
        """Return the same function of the vector that `structure` makes of a pytree."""
        if structure.is_vector:
            return self
        return eqx.tree_at(lambda f: f.fn, self, FunctionOfVector(self.fn, structure))

    def check(self, owner: str, x: Vector) -> None:
        checks.scalar_function(owner, "objective", self.fn, x, *self.args, instead=EXTERNAL)


def array_arguments(owner: str, args: object) -> tuple[Any, ...]:
    """Return copies of extra arguments; numbers as arrays, so that new ones compile nothing."""
    _check_is_tuple(owner, args)
    return jax.tree.map(lambda a: own(np.asarray(a) if _is_number(a) else a), args)


def _check_is_tuple(owner: str, args: object) -> None:
    if not isinstance(args, tuple):
        checks.fail(owner, "args", "be a tuple, such as (data,)", checks.describe(args))


def _is_number(arg: object) -> bool:
    return isinstance(arg, int | float) and not isinstance(arg, bool)


def as_objective(owner: str, objective: Any, args: tuple[Any, ...] = ()) -> Objective:
    """Return an objective as it is, a function with its `args` as `Smooth`."""
    if isinstance(objective, Objective):
        if not isinstance(args, tuple) or args:
            checks.fail(owner, "args", "be used with a function of x and args", "an objective")
        return objective
    checks.function(owner, "objective", objective, "be an objective or a function")
    _check_is_tuple(owner, args)
    return Smooth(objective, args)
