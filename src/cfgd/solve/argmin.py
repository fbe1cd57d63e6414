"""The minimiser of a function as a JAX value, inside `jit`, `vmap`, `lax.scan` and `grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import cast, in_precision, precision_of, standard_promotion, to_numpy
from cfgd._core.box import Box
from cfgd._core.pytrees import FunctionOfVector, Structure, checked_pytree
from cfgd._core.types import Column, Count, DType, Flag, Scalar, Vector
from cfgd.methods.compiled import levenberg_marquardt as lm
from cfgd.methods.compiled.minimise import Found
from cfgd.objectives.base import Objective
from cfgd.objectives.function import array_arguments
from cfgd.objectives.residuals import Residuals
from cfgd.solve.bounds import as_box
from cfgd.solve.implicit import differentiable_minimum
from cfgd.solve.options import DEFAULT_TOLERANCE, MAX_TOLERANCE
from cfgd.solve.solution import ConvergenceError, Solution
from cfgd.status import STATUSES

OWNER = "argmin"


class Argmin(NamedTuple):
    """What `argmin(..., full=True)` returns; a pytree.

    Attributes
    ----------
    x
        The best point, in the structure of x0.
    value
        The value of the objective at x.
    aux
        What the function returned beside its value at x, or None.
    status
        A code: `cfgd.Status` with `code` 1 is `converged`; `cfgd.status.STATUSES[code]` is the
        member of any code.
    iterations
        How many the run took.
    is_differentiable
        Whether x has derivatives: the run converged, and the Hessian of the free coordinates is
        positive definite.
    """

    x: Any
    value: Any
    aux: Any
    status: Any
    iterations: Any
    is_differentiable: Any


def argmin(
    objective: Objective | Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    bounds: Any = None,
    has_aux: bool = False,
    tolerance: float | None = None,
    max_iterations: int = 1000,
    full: bool = False,
) -> Any:
    """Return the minimiser of a function, with derivatives in `args`, as a JAX value.

    It can be called inside `jit`, `vmap`, `lax.scan` and `grad`. Derivatives are those of the
    implicit function theorem, x'(args) = -H^-1 dg/dargs with gradient g and Hessian H at x: in
    forward and reverse mode and of any order, whatever the number of iterations was. The derivative
    in x0 is zero.

    Parameters
    ----------
    objective : callable or Objective
        A scalar function f(x, *args) in JAX. Or `cfgd.Residuals(fn)`, for which the residuals are
        fn(x, *args); `args` follow those of `Residuals` itself. Or another objective of cfgd in
        JAX. What it captures counts: tracers may be captured, and are differentiated.
    x0 : number, array or pytree
        The start. x has its structure.
    args : tuple
        Data that is passed to the function: pytrees of arrays.
    bounds : optional
        Known numbers, in the forms of `minimize`. Coordinates at active bounds have the derivative
        zero, and the others that of the problem with these held.
    has_aux : bool
        Whether the function returns (value, aux).
    tolerance : float, optional
        As in `minimize`: 1e-8 in float64, 1e-4 in float32.
    max_iterations : int
        The run ends after this many iterations.
    full : bool
        Whether to return an `Argmin` with value, status and iterations, also of a run that did not
        converge.

    Returns
    -------
    pytree, or (pytree, aux), or Argmin
        x; with `has_aux` x and aux at x; with `full` all of it. NumPy arrays for NumPy arrays, as
        elsewhere in cfgd: data in float64 is then solved in float64. With JAX arrays the rules of
        JAX hold.

    Raises
    ------
    ConvergenceError
        If the run did not converge, unless `full`. Inside `jit`, `vmap` and `grad`, where nothing
        can be raised, x is NaN.

    Notes
    -----
    Residuals are minimised by the method of Levenberg and Marquardt, other functions of up to 100
    unknowns by damped Newton steps, and functions of more unknowns by L-BFGS. Only then are systems
    with the Hessian solved by conjugate gradients.

    Derivatives are NaN, and `is_differentiable` is False, where the Hessian of the free coordinates
    is singular or not positive definite: x then is not a function of `args`. Where the gradient of
    a coordinate at its bound is zero, x has one-sided derivatives only, and those are returned for
    which the coordinate is free.

    Examples
    --------
    >>> import cfgd, jax, jax.numpy as jnp, numpy as np
    >>> X, y = np.array([[1.0, 2.0], [3.0, 1.0], [0.5, 1.0]]), np.array([1.0, 2.0, 0.0])
    >>> def ridge(w, penalty):
    ...     return jnp.sum((X @ w - y) ** 2) + penalty * jnp.sum(w**2)
    >>> print(cfgd.argmin(ridge, np.zeros(2), (0.1,)).round(4))
    [0.5966 0.1323]
    >>> print(jax.jacobian(lambda penalty: cfgd.argmin(ridge, np.zeros(2), (penalty,)))(0.1).round(4))
    [-0.0549  0.0231]
    """
    has_aux = checks.flag(OWNER, "has_aux", has_aux)
    full = checks.flag(OWNER, "full", full)
    max_iterations = checks.integer(OWNER, "max_iterations", max_iterations)
    objective, args = _with_arguments(objective, args, has_aux)
    inputs = jax.tree.leaves((x0, args, objective))
    x = checked_pytree(OWNER, "x0", x0)
    structure = Structure.of(x)
    dtype = precision_of(x, args, objective)

    def run() -> tuple[Argmin, Found]:
        own_dtype = jax.dtypes.canonicalize_dtype(dtype)
        problem = _Problem(*cast((objective, args), own_dtype), structure, has_aux)
        box = None if bounds is None else _box(bounds, structure, own_dtype)
        z = jnp.concatenate([jnp.ravel(jnp.asarray(leaf, own_dtype)) for leaf in jax.tree.leaves(x)])
        goal = jnp.asarray(_tolerance(tolerance, own_dtype), own_dtype)
        return _solve(problem, box, z, goal, jnp.int32(max_iterations))

    is_numpy = not any(isinstance(leaf, jax.Array) for leaf in inputs)
    ...
