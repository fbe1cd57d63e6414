"""What a method needs to know of the function that it minimises."""

from __future__ import annotations

import abc
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out
from cfgd._core.either import Unbound, space
from cfgd._core.pytrees import Structure, checked_pytree
from cfgd._core.types import Column, Count, Flag, Number, Scalar, Vector, Vectors
from cfgd.objectives.curvature import Model, Normal, is_affordable, is_wide, kept
from cfgd.objectives.evaluation import Evaluation, Line, slope_along

# value, gradient (or a function that gives it) and what else a point carries; None where nothing
# can be seen: see `error`
Sight: TypeAlias = Callable[[Any], tuple[Any, Any, Any] | None]

PUBLIC = frozenset(("value", "gradient", "coordinate_slope", "coordinate_curvature"))

# numbers of one copy of x in a chunk of coordinate slopes: 16 MiB of float64
CHUNK_NUMBERS = 2**21


class Objective(eqx.Module):
    """f on R^d with its slopes: `value`, a JAX function, is all that a subclass must define.

    Public: `value`, `gradient`, `coordinate_slope`, `coordinate_curvature`, `dimension`.

    A method sees it through `at`, the objective at a point, `line(point, d)`, the way along a
    direction, and `slopes`, what a fractional direction is made of. Their defaults are right for
    every differentiable `value`; an objective with structure overrides them to do the same for
    less, and then says what they cost.

    >>> import cfgd, jax.numpy as jnp
    >>> class Bowl(cfgd.Objective):
    ...     centre: float
    ...     def value(self, x):
    ...         return jnp.sum((x - self.centre) ** 4)
    >>> print(Bowl(2.0).gradient([3.0, 1.0]))
    [ 4. -4.]
    """

    def __getattribute__(self, name: str) -> Any:
        """What is public as equinox gives it: bound functions that are pytrees, for `filter_jit`.

        That takes ten times as long as a step's product: all else as of any object.
        """
        if name in PUBLIC:
            return eqx.Module.__getattribute__(self, name)
        return object.__getattribute__(self, name)

    def kind(self) -> str:
        """What it is, for a message."""
        return f"a {type(self).__name__}"

    @property
    def is_quadratic(self) -> bool:
        """Whether `ExactStep` is exact without a search."""
        return False

    @property
    def linear_slopes(self) -> bool:
        """Whether coordinate slopes are linear, so that one quadrature node is exact."""
        return self.is_quadratic

    @property
    def drifts(self) -> bool:
        """Whether a line's `to` updates by recurrence, so that rounding adds up."""
        return False

    @property
    def dimension(self) -> int | None:
        """The number of coordinates; None where any will do."""
        return None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Of x; None where any will do."""
        return None if self.dimension is None else (self.dimension,)

    @abc.abstractmethod
    def value(self, x: Any) -> Any: ...

    @numpy_in_numpy_out
    def gradient(self, x: Any) -> Any:
        flat, structure, (vector,) = self._on_vectors(x)
        with self._traceable():
            return structure.unravel(_gradient(flat, vector))

    @numpy_in_numpy_out
    def coordinate_slope(self, x: Any, t: Any) -> Any:
        """f_j'(t_j) for all j: the slope along coordinate j where only x_j is replaced by t_j."""
        flat, structure, (vector, at) = self._on_vectors(x, t)
        with self._traceable():
            return structure.unravel(_slopes(flat, vector, at)[0])

    @numpy_in_numpy_out
    def coordinate_curvature(self, x: Any, t: Any) -> Any:
        """f_j''(t_j) for all j, as `coordinate_slope`."""
        flat, structure, (vector, at) = self._on_vectors(x, t)
        with self._traceable():
            return structure.unravel(_slopes(flat, vector, at)[1])

    def _traceable(self) -> AbstractContextManager[None]:
        return checks.traceable(type(self).__name__, "fn" if hasattr(self, "fn") else "value")

    def _on_vectors(self, *points: Any) -> tuple[Objective, Structure, list[Vector]]:
        owner = type(self).__name__
        trees = [jax.tree.map(jnp.asarray, checked_pytree(owner, "x", x)) for x in points]
        structure = Structure.of(trees[0])
        if self.shape is not None and getattr(trees[0], "shape", ()) != self.shape:
            got = getattr(trees[0], "shape", "a pytree")
            checks.fail(owner, "x", f"have shape {self.shape}", got)
        if any(Structure.of(tree) != structure for tree in trees):
            got = getattr(trees[-1], "shape", None)
            got = "another" if got is None else f"shape {got}"
            checks.fail(owner, "t", "have the structure of x", got)
        return self.raveled(structure), structure, [structure.ravel(tree) for tree in trees]

    def raveled(self, structure: Structure) -> Objective:
        """The same objective of the vector that `structure` makes of a pytree."""
        if not structure.is_vector and structure != Structure.of(np.zeros(self.shape or ())):
            one = len(structure.shapes) == 1
            got = f"shape {structure.shapes[0]}" if one else "a pytree"
            checks.fail(type(self).__name__, "x", "be a vector", got)
        return self

    def check(self, owner: str, x: Vector) -> None:
        """Refuse a value that is not one real number, before any work."""
        checks.scalar_function(owner, "objective", self.value, x)

    @property
    def is_plain(self) -> bool:
        """Whether a point is its value and gradient, and there is no structure beyond."""
        return (
            type(self).evaluate is Objective.evaluate
            and self.scaled_by is None
            and not self.is_quadratic
        )

    @property
    def is_function(self) -> bool:
        """Whether it is the user's function, and every new one a new program."""
        return self.is_plain

    @property
    def sight(self) -> Sight | None:
        """How it is looked at where JAX cannot trace it."""
        return None

    def in_numpy(self) -> Unbound | None:
        """The same objective with NumPy's arrays, where its formulas take them; else None.

        On a CPU that is as fast, and nothing has to be compiled.
        """
        return None

    @property
    def resolution(self) -> Any:
        """The least difference of two small values, in units of the least normal number."""
        return 1.0

    def times(self, factor: Any) -> Objective | None:
        """factor * f as an objective of this kind; None where that takes another one."""
        return None

    def error(self) -> Exception | None:
        """What the function raised where a run could not see it."""
        return None

    def spent(self) -> float | None:
        """What looks at it have cost so far, in gradients, where it counts them itself."""
        return None

    # ------------------------------------------------------------------ what a method sees

    def evaluate(self, x: Vector) -> Evaluation:
        value, gradient = jax.value_and_grad(self.value)(x)
        return Evaluation(x, value, gradient)

    def line(self, point: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        """The line from the point along -d; `slope` is <g, d> where that is known already."""
        return Line(self, point, d, slope_along(point, d, slope))

    def coordinate_derivatives(self, point: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        """Coordinate slopes and curvatures at s vectors t, by moving one coordinate at a time.

        Evaluated in chunks, so that memory does not grow with s d^2.
        """
        x = point.x

        def along(j: Count, t_j: Scalar) -> tuple[Scalar, Scalar]:
            def slope(u: Scalar) -> Scalar:
                return jax.jvp(lambda v: self.value(x.at[j].set(v)), (u,), (jnp.ones_like(u),))[1]

            return jax.jvp(slope, (t_j,), (jnp.ones_like(t_j),))

        s, d = t.shape
        j = jnp.tile(jnp.arange(d), s)
        size = max(1, min(s * d, CHUNK_NUMBERS // d))
        pair = jax.lax.map(lambda a: along(*a), (j, t.reshape(-1)), batch_size=size)
        return pair[0].reshape(s, d), pair[1].reshape(s, d)

    def diagonal_at(self, point: Evaluation) -> Vector:
        """The curvatures f_j''(x_j) at the point: the diagonal of the Hessian."""
        return self.coordinate_derivatives(point, point.x[None])[1][0]

    def hessian_times(self, point: Evaluation, v: Vector) -> Vector:
        """Hv at the point."""
        return jax.jvp(jax.grad(self.value), (point.x,), (v,))[1]

    @property
    def has_hessian(self) -> bool:
        """Whether `hessian_times` is more than differences of gradients."""
        return True

    @property
    def has_gauss_newton(self) -> bool:
        """Whether there is a model in the objective, and so `gauss_newton_diagonal`."""
        return False

    def gauss_newton_diagonal(self, point: Evaluation) -> Vector:
        """The diagonal of Gauss-Newton's matrix."""
        raise TypeError(f"{self.kind()} has no model, and so no Gauss-Newton matrix.")

    @property
    def has_model(self) -> bool:
        """Whether there are `model` and `model_times`."""
        return False

    def model_shape(self, point: Evaluation) -> tuple[int, ...] | None:
        """Of its rows; None where they are better not written down."""
        return jax.eval_shape(self.model, point).J.shape

    def affords(self, shape: tuple[int, ...]) -> bool:
        """Whether rows of that shape are worth writing down and factoring."""
        return is_affordable(shape)

    @property
    def model_is_costly(self) -> bool:
        """Whether a run may be over for less than a few of its matrices cost."""
        return False

    @property
    def by_gradients(self) -> bool:
        """Whether gradients alone are the better guess, though there are products with a model."""
        return False

    def model(self, point: Evaluation) -> Model:
        """The matrix of Gauss and Newton, as rows whose squares it is the sum of."""
        raise TypeError(f"{self.kind()} has no model, and so no Gauss-Newton matrix.")

    @property
    def model_is_exact(self) -> bool:
        """Whether that matrix is the Hessian, and never negative."""
        return False

    def normal(self, point: Evaluation, old: Vector) -> Normal:
        """The normal equations; their diagonal is kept from shrinking fast from the `old` one."""
        J, ridge, r = self.model(point)
        xp = space(J)
        if r is not None and is_wide(J.shape):
            D = kept(old, self.damping(point, xp.einsum("ij,ij->j", J, J) + ridge))
            rows = J / xp.sqrt(D)
            return Normal(D, rows @ rows.T, rows, r)
        H = J.T @ J  # by half of the work of a product, as NumPy sees
        D = kept(old, self.damping(point, H.diagonal() + ridge))
        root = xp.sqrt(D)
        matrix = H / root / root[:, None] + xp.diag(ridge / D)
        return Normal(D, matrix, None if self.residuals(point) is None else J / root, r)

    def damping(self, point: Evaluation, diagonal: Vector) -> Vector:
        """D of a Tikhonov step: the diagonal of the matrix, or more where that says too little."""
        return diagonal

    def dispersion(self, value: float, freedom: int) -> float | None:
        """The factor before the inverse of H in a covariance; None where that means nothing.

        1 where f is a negative log-likelihood; for least squares the variance of the residuals,
        of which there are `freedom` more than parameters.
        """
        return None

    def model_cost(self, shape: tuple[int, ...]) -> float:
        """Of `model`, in gradients: a derivative for each column, or each row."""
        return float(min(shape))

    def model_times(self, point: Evaluation, v: Vector) -> Vector:
        """The product of that matrix with v, without the matrix."""
        raise TypeError(f"{self.kind()} has no model, and so no Gauss-Newton matrix.")

    def residuals(self, point: Evaluation) -> Column | None:
        """r, of what a point carries, where f is half the sum of its squares; else None."""
        return None

    @property
    def scaled_by(self) -> str | None:
        """Whose diagonal `scaling_at` is; None where none comes with a point for little."""
        return "Gauss-Newton's" if self.has_gauss_newton else None

    def scaling_at(self, point: Evaluation) -> Vector:
        """The curvature diagonal by which coordinates are best scaled."""
        return self.gauss_newton_diagonal(point)

    @property
    def hidden(self) -> int | None:
        """How many coordinates stand before a last layer in which f is quadratic."""
        return None

    def solved(self, point: Evaluation, tolerance: Number) -> Flag:
        """Whether the gradient is that small beside the terms it is the sum of."""
        return jnp.ones((), bool)

    def in_residual_form(self) -> Objective:
        """The same objective in the form whose products keep the most digits."""
        return self

    def is_singular(self) -> bool:
        """Whether there is more than one minimiser, where that costs little to see."""
        return False

    # what these cost, in gradients (a value and its gradient together count as one)
    def slopes_cost(self, s: int, d: int) -> float:
        return float(s * d)

    def diagonal_cost(self, d: int) -> float:
        """Of `diagonal_at`."""
        return self.slopes_cost(1, d)

    @property
    def product_cost(self) -> float:
        """Of `hessian_times`."""
        return 2.0


@eqx.filter_jit
def _gradient(objective: Objective, x: Vector) -> Vector:
    return objective.evaluate(x).gradient


@eqx.filter_jit
def _slopes(objective: Objective, x: Vector, t: Vector) -> tuple[Vector, Vector]:
    slopes, curvatures = objective.coordinate_derivatives(objective.evaluate(x), t[None])
    return slopes[0], curvatures[0]
