"""The contract between an objective and the methods that minimise it."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out
from cfgd._core.public_names import ListsPublicNames
from cfgd._core.pytrees import Structure, checked_pytree, map_parameters
from cfgd._core.representation import ShowsCall
from cfgd._core.types import Count, Scalar, Vector, Vectors
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation, Line, slope_along

# Methods that users may pass to `jax.jit`, `vmap` and `grad`; see `Objective.__getattribute__`.
PUBLIC = frozenset(("value", "gradient", "coordinate_slope", "coordinate_curvature"))

# Numbers in one batch of coordinate derivatives: 16 MiB of float64.
BATCH_NUMBERS = 2**21


@dataclasses.dataclass(frozen=True)
class DerivativeCost:
    """The cost of coordinate derivatives in gradients: for each node, and for each coordinate."""

    per_node: float = 0.0
    per_coordinate: float = 0.0

    def of(self, nodes: int, d: int) -> float:
        return nodes * (self.per_node + self.per_coordinate * d)


@dataclasses.dataclass(frozen=True)
class Traits:
    """Properties of an objective that methods depend on before it is evaluated.

    Parameters
    ----------
    label
        The kind of objective, for messages: "a LeastSquares".
    structure
        "general", "quadratic", "residuals" (a sum of losses of residuals) or "linear model".
    linear_slopes
        Whether f_j'(t) is linear in t, so that one quadrature node is exact.
    accumulates_rounding
        Whether `Line.to` updates by recurrence, so that rounding errors add up.
    curvature
        The matrix of `Objective.curvature`, "Hessian" or "Gauss-Newton"; None if there is none.
    diagonal
        The matrix whose diagonal costs little more than an evaluation; None if there is none.
    size
        (m, d) of a data matrix, where there is one.
    is_sparse
        Whether that matrix is sparse.
    prefers_gradients
        Whether first-order steps are usually faster although there is a curvature; for residuals by
        samples, as of networks, this holds if there are many unknowns.
    n_nonlinear
        The number of coordinates before those of a last layer, in which f is quadratic; None if
        there is no such layer.
    is_singular
        A function that returns whether a quadratic has more than one minimiser, if that is cheap.
    runs_user_code
        Whether evaluations call Python functions of the user.
    hessian_by_differences
        Whether `hessian_times` is a difference of two gradients.
    separate_value
        Whether a value without its gradient is computed by another, cheaper function.
    derivative_cost
        The cost of `coordinate_derivatives`, in gradients.
    diagonal_cost
        The cost of the diagonal of the Hessian, in gradients.
    product_cost
        The cost of `hessian_times`, in gradients.
    value_cost
        The cost of a value without its gradient, in gradients.
    """

    label: str
    structure: str = "general"
    linear_slopes: bool = False
    accumulates_rounding: bool = False
    curvature: str | None = None
    diagonal: str | None = None
    size: tuple[int, int] | None = None
    is_sparse: bool = False
    prefers_gradients: bool = False
    n_nonlinear: int | None = None
    is_singular: Callable[[], bool] | None = dataclasses.field(default=None, compare=False)
    runs_user_code: bool = False
    hessian_by_differences: bool = False
    separate_value: bool = False
    derivative_cost: DerivativeCost = DerivativeCost(per_coordinate=1.0)
    diagonal_cost: DerivativeCost = DerivativeCost(per_coordinate=1.0)
    product_cost: float = 2.0
    value_cost: float = 0.5

    @property
    def is_quadratic(self) -> bool:
        return self.structure == "quadratic"


class Objective(ListsPublicNames, ShowsCall, eqx.Module):
    """f on R^d with its derivatives; a subclass must define `value`, a JAX function.

    Users call `value`, `gradient`, `coordinate_slope` and `coordinate_curvature`, and read `shape`
    and `dimension`. Methods call `evaluate`, `line`, `coordinate_derivatives`, `hessian_times` and
    `curvature`. Their defaults work for every differentiable `value`; an objective with structure
    overrides them to reduce their cost, and describes itself in `traits`.

    Examples
    --------
    >>> import cfgd, jax.numpy as jnp
    >>> class Bowl(cfgd.Objective):
    ...     centre: float
    ...     def value(self, x):
    ...         return jnp.sum((x - self.centre) ** 4)
    >>> print(Bowl(2.0).gradient([3.0, 1.0]))
    [ 4. -4.]
    """

    _internal: ClassVar[tuple[str, ...]] = (
        "check",
        "coordinate_derivatives",
        "curvature",
        "evaluate",
        "hessian_times",
        "line",
        "on_host",
        "raveled",
        "traits",
    )

    def __getattribute__(self, name: str) -> Any:
        # Equinox makes a pytree of a bound method, as `filter_jit` needs. This takes ten times as
        # long as a small product, and is therefore done for the public methods only.
        if name in PUBLIC:
            return eqx.Module.__getattribute__(self, name)
        return object.__getattribute__(self, name)

    # ------------------------------------------------------------------ for users

    @abc.abstractmethod
    def value(self, x: PyTree) -> Any:
        """Return f(x).

        Parameters
        ----------
        x : array or pytree
            The point.

        Returns
        -------
        float
            f(x).
        """

    @numpy_in_numpy_out
    def gradient(self, x: PyTree) -> Any:
        """Return the gradient of f at x.

        Parameters
        ----------
        x : array or pytree
            The point.

        Returns
        -------
        array or pytree
            The gradient, of the structure of x.
        """
        flat, structure, (vector,) = self._as_vectors(x)
        with self._traceable():
            return structure.unravel_parameters(_gradient(flat, vector))

    @numpy_in_numpy_out
    def coordinate_slope(self, x: PyTree, t: PyTree) -> Any:
        """Return f_j'(t_j) for all j: the slope along coordinate j with x_j replaced by t_j.

        Parameters
        ----------
        x : array or pytree
            The point.
        t : array or pytree
            What replaces each coordinate, of the structure of x.

        Returns
        -------
        array or pytree
            The slopes, of the structure of x.
        """
        flat, structure, (vector, at) = self._as_vectors(x, t)
        with self._traceable():
            return structure.unravel_parameters(_derivatives(flat, vector, at)[0])

    @numpy_in_numpy_out
    def coordinate_curvature(self, x: PyTree, t: PyTree) -> Any:
        """Return f_j''(t_j) for all j, as `coordinate_slope`.

        Parameters
        ----------
        x : array or pytree
            The point.
        t : array or pytree
            What replaces each coordinate, of the structure of x.

        Returns
        -------
        array or pytree
            The second derivatives, of the structure of x.
        """
        flat, structure, (vector, at) = self._as_vectors(x, t)
        with self._traceable():
            return structure.unravel_parameters(_derivatives(flat, vector, at)[1])

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of x; None if x may have any shape."""
        return None

    @property
    def dimension(self) -> int | None:
        """The number of coordinates; None if x may have any number of them."""
        return None if self.shape is None else math.prod(self.shape)

    # ------------------------------------------------------------------ for methods

    @property
    def traits(self) -> Traits:
        return Traits(label_of(self))

    def evaluate(self, x: Vector) -> Evaluation:
        """Return value and gradient at x."""
        value, gradient = jax.value_and_grad(self.value)(x)
        return Evaluation(x, value, gradient)

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        """Return the line x - eta d; `slope` is <g, d> if it is known already."""
        return Line(self, evaluation, d, slope_along(evaluation, d, slope))

    def coordinate_derivatives(self, evaluation: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        """Return coordinate slopes and curvatures at the s rows of t.

        One coordinate is moved at a time, in batches, so that memory does not grow with s d^2.
        """
        x = evaluation.x

        def along(j: Count, t_j: Scalar) -> tuple[Scalar, Scalar]:
            def slope(u: Scalar) -> Scalar:
                return jax.jvp(lambda v: self.value(x.at[j].set(v)), (u,), (jnp.ones_like(u),))[1]

            return jax.jvp(slope, (t_j,), (jnp.ones_like(t_j),))

        s, d = t.shape
        j = jnp.tile(jnp.arange(d), s)
        size = max(1, min(s * d, BATCH_NUMBERS // d))
        pair = jax.lax.map(lambda a: along(*a), (j, t.reshape(-1)), batch_size=size)
        return pair[0].reshape(s, d), pair[1].reshape(s, d)

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        """Return Hv with the Hessian H of f."""
        return jax.jvp(jax.grad(self.value), (evaluation.x,), (v,))[1]

    def curvature(self, evaluation: Evaluation) -> Curvature | None:
        """Return the second-order information at a point, or None; see `Traits.curvature`."""
        return None

    def on_host(self) -> Objective | None:
        """Return this objective with NumPy arrays, or None if its formulas need JAX."""
        return None

    def raveled(self, structure: Structure) -> Objective:
        """Return this objective as a function of the vector that `structure` makes of a pytree."""
        if not structure.is_vector and structure != Structure.of(np.zeros(self.shape or ())):
            one = len(structure.shapes) == 1
            got = f"shape {structure.shapes[0]}" if one else "a pytree"
            checks.fail(type(self).__name__, "x", "be a vector", got)
        return self

    def check(self, owner: str, x: Vector) -> None:
        """Raise unless the value is one real number; called before any work."""
        checks.scalar_function(owner, "objective", self.value, x)

    # ------------------------------------------------------------------ private

    @cached_property
    def _kept(self) -> dict[type, Any]:
        """Data that other modules store for the lifetime of this objective: compiled programs."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Return only the fields for `pickle` and `copy`: cached values are computed again."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def _traceable(self) -> AbstractContextManager[None]:
        return checks.traceable(type(self).__name__, "fn" if hasattr(self, "fn") else "value")

    def _as_vectors(self, *points: PyTree) -> tuple[Objective, Structure, list[Vector]]:
        owner = type(self).__name__
        trees = [map_parameters(jnp.asarray, checked_pytree(owner, "x", x)) for x in points]
        structure = Structure.of(trees[0])
        if self.shape is not None and getattr(trees[0], "shape", ()) != self.shape:
            got = getattr(trees[0], "shape", "a pytree")
            checks.fail(owner, "x", f"have shape {self.shape}", got)
        if any(Structure.of(tree) != structure for tree in trees):
            got = getattr(trees[-1], "shape", None)
            got = "another" if got is None else f"shape {got}"
            checks.fail(owner, "t", "have the structure of x", got)
        return self.raveled(structure), structure, [structure.ravel(tree) for tree in trees]


def label_of(objective: Objective) -> str:
    """Return the kind of an objective, for messages."""
    return f"a {type(objective).__name__}"


def hessian_diagonal(objective: Objective, evaluation: Evaluation) -> Vector:
    """Return f_j''(x_j) for all j: the diagonal of the Hessian, or the approximation of `Local`."""
    if objective.traits.curvature == "Hessian":
        curvature = objective.curvature(evaluation)
        assert curvature is not None
        return curvature.diagonal()
    return objective.coordinate_derivatives(evaluation, evaluation.x[None])[1][0]


@eqx.filter_jit
def _gradient(objective: Objective, x: Vector) -> Vector:
    return objective.evaluate(x).gradient


@eqx.filter_jit
def _derivatives(objective: Objective, x: Vector, t: Vector) -> tuple[Vector, Vector]:
    slopes, curvatures = objective.coordinate_derivatives(objective.evaluate(x), t[None])
    return slopes[0], curvatures[0]
