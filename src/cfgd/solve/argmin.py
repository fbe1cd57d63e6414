"""The minimiser of a function as a JAX value, inside `jit`, `vmap`, `lax.scan` and `grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import (
    cast,
    in_precision,
    is_array,
    precision_of,
    standard_promotion,
    to_numpy,
)
from cfgd._core.box import Box
from cfgd._core.pytrees import Structure, checked_pytree, map_parameters
from cfgd._core.types import Column, Count, DType, Scalar, Vector
from cfgd.methods.compiled import levenberg_marquardt as lm
from cfgd.objectives.base import Objective
from cfgd.objectives.function import array_arguments
from cfgd.objectives.residual_terms import ResidualTerms
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
        JAX. Values of a surrounding `jit`, `vmap` or `grad` may also be captured. NumPy data that
        is used in both precisions of JAX goes into `args`: JAX keeps captured arrays in the
        precision of their first use.
    x0 : number, array or pytree
        The start. x has its structure.
    args : tuple, default ()
        Data that is passed to the function: pytrees of arrays.
    bounds : optional, optional
        Known numbers, in the forms of `minimize`. Coordinates at active bounds have the derivative
        zero, and the others that of the problem with these held.
    has_aux : bool, default False
        Whether the function returns (value, aux).
    tolerance : float, optional
        As in `minimize`: 1e-8 in float64, 1e-4 in float32.
    max_iterations : int, default 1000
        The run ends after this many iterations.
    full : bool, default False
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
    ValueError
        If `objective` is not written in JAX; `x0` does not have the shape of the objective; `args`
        or `has_aux` is given with an objective that takes none; `bounds` are traced or a lower one
        is above the upper one; or a number is out of its range.
    ConvergenceError
        If the run did not converge, unless `full`. Inside `jit`, `vmap` and `grad`, where nothing
        can be raised, x is NaN.

    Notes
    -----
    With up to 100 unknowns, residuals are minimised by the method of Levenberg and Marquardt and
    other functions by damped Newton steps. With more unknowns the method is L-BFGS, and systems
    with the Hessian are solved by conjugate gradients.

    Derivatives are NaN, and `is_differentiable` is False, where the Hessian of the free coordinates
    is singular or not positive definite: x then is not a function of `args`. Where the gradient of
    a coordinate at its bound is zero, x has one-sided derivatives only. Those are returned for
    which the coordinate is free, if the gradient is exactly zero; else its rounding error decides.

    Examples
    --------
    >>> import cfgd, jax, jax.numpy as jnp, numpy as np
    >>> X, y = jnp.array([[1.0, 2.0], [3.0, 1.0], [0.5, 1.0]]), jnp.array([1.0, 2.0, 0.0])
    >>> def ridge(w, penalty):
    ...     return jnp.sum((X @ w - y) ** 2) + penalty * jnp.sum(w**2)
    >>> def weights(penalty):
    ...     return cfgd.argmin(ridge, jnp.zeros(2), (penalty,))
    >>> print(weights(0.1).round(4), jax.jacobian(weights)(0.1).round(4))
    [0.6295 0.0882] [-0.102   0.0775]
    >>> print(jax.vmap(weights)(jnp.array([0.1, 1.0])).round(4))
    [[0.6295 0.0882]
     [0.5567 0.134 ]]
    """
    has_aux, full = checks.flag(OWNER, "has_aux", has_aux), checks.flag(OWNER, "full", full)
    limits = (_tolerance(tolerance), checks.integer(OWNER, "max_iterations", max_iterations))
    objective, args = _with_arguments(objective, args, has_aux)
    is_numpy = not any(
        isinstance(leaf, jax.Array) for leaf in jax.tree.leaves((objective, x0, args))
    )
    x = checked_pytree(OWNER, "x0", x0)
    dtype = precision_of(objective, x, args)
    if is_numpy:
        with in_precision(dtype):
            problem, z = _problem(objective, x, args, dtype, has_aux)
            if not problem.captures_tracers(z):
                end, norm = to_numpy(_solved(problem, z, bounds, limits))
                return _result(end, norm, has_aux, full)
    with standard_promotion():
        problem, z = _problem(objective, x, args, jax.dtypes.canonicalize_dtype(dtype), has_aux)
        end, norm = _solved(problem, z, bounds, limits)
        return _result(end, norm, has_aux, full)


def _tolerance(tolerance: object) -> float | None:
    if tolerance is None:
        return None
    wanted = "be a number of at least 0"
    number = checks.number(OWNER, "tolerance", tolerance, wanted, lambda v: v >= 0)
    if number.ndim != 0 or checks.is_traced(number):
        checks.fail(OWNER, "tolerance", "be one concrete number", checks.describe(number))
    return min(float(number), MAX_TOLERANCE)


def _with_arguments(objective: Any, args: Any, has_aux: bool) -> tuple[Any, tuple[Any, ...]]:
    """Return the objective and the arguments of a function; an objective gets its own ones."""
    args = array_arguments(OWNER, args)
    if not isinstance(objective, Objective):
        checks.function(OWNER, "objective", objective, "be an objective or a function")
        return objective, args
    if objective.traits.runs_user_code:
        wanted = "be written in JAX; `minimize` takes other functions"
        checks.fail(OWNER, "objective", wanted, objective.traits.label)
    if has_aux:
        wanted = "be False for an objective: only a function returns aux"
        checks.fail(OWNER, "has_aux", wanted, objective.traits.label)
    if isinstance(objective, Residuals):
        all_args = (*objective.args, *args)
        return eqx.tree_at(lambda f: f.args, objective, all_args), ()
    if args:
        wanted = "be used with a function of x and args, or with Residuals"
        checks.fail(OWNER, "args", wanted, objective.traits.label)
    return objective, args


class Problem(eqx.Module):
    """What is minimised, as functions of the vector z of the numbers in x."""

    objective: Any  # an objective of z, or the user's function of x
    args: tuple[Any, ...]
    structure: Structure = eqx.field(static=True)
    has_aux: bool = eqx.field(static=True)

    def value_and_aux(self, z: Vector) -> tuple[Scalar, Any]:
        if isinstance(self.objective, Objective):
            out, aux = self.objective.value(z), None
        else:
            out = self.objective(self.structure.unravel(z), *self.args)
            out, aux = out if self.has_aux else (out, None)
        return jnp.asarray(out).astype(z.dtype), aux

    def value(self, z: Vector) -> Scalar:
        return self.value_and_aux(z)[0]

    @property
    def residuals(self) -> Callable[[Vector], Column] | None:
        """The residuals r of which the value is |r|^2 / 2, or None."""
        f = self.objective
        if not isinstance(f, Residuals | ResidualTerms) or not f.is_squared:
            return None
        if isinstance(f, ResidualTerms):
            return lambda z: f.vector(z).astype(z.dtype)

        def residuals(z: Any) -> Any:
            r = f.vector(z)
            return (jnp.sqrt(f.weight(r.size)) * r).astype(z.dtype)

        return residuals

    def check(self, z: Vector) -> None:
        """Raise unless the value is one real number."""
        if isinstance(self.objective, Objective):
            self.objective.check(OWNER, z)
            return
        x = self.structure.unravel(z)
        if not self.has_aux:
            checks.scalar_function(OWNER, "objective", self.objective, x, *self.args)
            return
        with checks.traceable(OWNER, "objective"):
            out = eqx.filter_eval_shape(self.objective, x, *self.args)
        if not isinstance(out, tuple) or len(out) != 2:
            wanted = "return (value, aux), because has_aux is True"
            checks.fail(OWNER, "objective", wanted, checks.describe(out))
        checks.scalar_function(
            OWNER, "objective", lambda *inputs: self.objective(*inputs)[0], x, *self.args
        )

    def captures_tracers(self, z: Vector) -> bool:
        """Return whether the objective uses values of a surrounding `jit`, `vmap` or `grad`."""
        known, key = checks.checked_signatures(self.objective), ("tracers", *checks.signature_of(z))
        if key in known:
            return False
        # of a new function: JAX keeps what it traced, and with it the precision of what f captures
        closed = jax.make_jaxpr(lambda z: self.value(z))(z)
        captures = any(map(checks.is_traced, closed.consts))
        if not captures:
            known.add(key)
        return captures


def _problem(
    objective: Any, x: Any, args: tuple[Any, ...], dtype: DType, has_aux: bool
) -> tuple[Problem, Vector]:
    """Return the checked problem and its start, with floating numbers of `dtype`."""
    structure = Structure.of(x)
    if isinstance(objective, Objective):
        shape = getattr(x, "shape", "a pytree")
        if objective.shape is not None and shape != objective.shape:
            checks.fail(OWNER, "x0", f"have shape {objective.shape}", shape)
        objective = objective.raveled(structure)
    z = structure.ravel(map_parameters(lambda leaf: jnp.asarray(leaf, dtype), x))
    objective, args = cast((objective, args), dtype)
    problem = Problem(objective, args, structure, has_aux)
    problem.check(z)
    return problem, z


def _solved(
    problem: Problem, z: Vector, bounds: Any, limits: tuple[float | None, int]
) -> tuple[Argmin, Scalar]:
    """Return where the run ended, and the norm of the gradient there."""
    tolerance, max_iterations = limits
    box = None if bounds is None else _box(bounds, problem.structure, z.dtype)
    tolerance = DEFAULT_TOLERANCE[np.dtype(z.dtype)] if tolerance is None else tolerance
    return _solve(problem, box, z, jnp.asarray(tolerance, z.dtype), jnp.int32(max_iterations))


def _box(bounds: Any, structure: Structure, dtype: DType) -> Box:
    if any(map(checks.is_traced, jax.tree.leaves(bounds))):
        checks.fail(OWNER, "bounds", "be concrete numbers", "values that JAX traces")
    return Box(*map(jnp.asarray, as_box(OWNER, bounds, structure, dtype)))


@eqx.filter_jit
def _solve(
    problem: Problem, box: Box | None, z: Vector, tolerance: Scalar, max_iterations: Count
) -> tuple[Argmin, Scalar]:
    found = differentiable_minimum(
        problem.value, problem.residuals, box, z, tolerance, max_iterations
    )
    value, aux = problem.value_and_aux(found.z)
    is_differentiable = found.is_regular & (found.status == lm.CONVERGED)
    x = problem.structure.unravel(found.z)
    end = Argmin(x, value, aux, found.status, found.iterations, is_differentiable)
    return end, found.gradient_norm


def _result(end: Argmin, gradient_norm: Scalar, has_aux: bool, full: bool) -> Any:
    """Return what the user asked for, or raise if a run is known to have failed."""
    if full:
        return end
    if not checks.is_traced(end.status):
        if end.status != lm.CONVERGED:
            raise ConvergenceError(_failure(end, float(gradient_norm)))
        return (end.x, end.aux) if has_aux else end.x
    factor = jnp.where(end.status == lm.CONVERGED, 1, jnp.nan)

    def known(leaf: Any) -> Any:
        is_floating = is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf * factor.astype(leaf.dtype) if is_floating else leaf

    x, aux = jax.tree.map(known, (end.x, end.aux))
    return (x, aux) if has_aux else x


def _failure(end: Argmin, gradient_norm: float) -> Solution:
    """Return the solution of a run that did not converge."""
    status, iterations, value = STATUSES[int(end.status)], int(end.iterations), float(end.value)
    return Solution(
        x=to_numpy(end.x),
        value=value,
        gradient_norm=gradient_norm,
        iterations=iterations,
        evaluations=float(iterations + 1),
        status=status,
        history={},
        how=OWNER,
        details=f"After {iterations} iterations of `argmin` the value is {value:.6g} and the norm "
        f"of the gradient {gradient_norm:.3g}.",
    )
