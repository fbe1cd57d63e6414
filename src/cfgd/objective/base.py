"""What a method needs to know of the function that it minimises."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cfgd import _check
from cfgd.precision import numpy_in_numpy_out
from cfgd.structure import Structure, as_tree

Scalar = Float[Array, ""]
Vector = Float[Array, " d"]


def inner(a: Vector, b: Vector) -> Scalar:
    """<a, b>, in the form that costs least inside a loop on a CPU."""
    return jnp.dot(a, b)


class Point(eqx.Module):
    """An objective seen at x: what was computed there and is worth keeping.

    `carried` is what an objective updates along a step instead of computing it anew:
    residuals, predictions.
    """

    x: Any
    value: Any
    gradient: Any
    carried: Any = None


class Objective(eqx.Module):
    """f on R^d with its slopes: `value` is all that a subclass must define.

    Public: `value`, `gradient`, `coordinate_slope`, `coordinate_curvature`, `dimension`.

    A method walks by the other functions: `at` looks at a point, `image` is what a direction
    does to the carried part, `curvature_along` is d'Hd, `values_along` tries many steps as one
    batch and `move` goes to x - eta d. Their defaults are right for every differentiable
    `value`; an objective with structure overrides them to do the same for less.
    """

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
        """Whether `move` updates by recurrence, so that rounding makes it drift from the truth."""
        return False

    @property
    @abc.abstractmethod
    def dimension(self) -> int | None:
        """The number of coordinates; None where any will do."""

    @abc.abstractmethod
    def value(self, x: Any) -> Any: ...

    @numpy_in_numpy_out
    def gradient(self, x: Any) -> Any:
        flat, structure, (vector,) = self._on_vectors(x)
        return structure.unravel(flat.at(vector).gradient)

    @numpy_in_numpy_out
    def coordinate_slope(self, x: Any, t: Any) -> Any:
        """f_j'(t_j) for all j: the slope along coordinate j where only x_j is replaced by t_j."""
        flat, structure, (vector, at) = self._on_vectors(x, t)
        return structure.unravel(flat.slopes(flat.at(vector), at[None])[0][0])

    @numpy_in_numpy_out
    def coordinate_curvature(self, x: Any, t: Any) -> Any:
        """f_j''(t_j) for all j, as `coordinate_slope`."""
        flat, structure, (vector, at) = self._on_vectors(x, t)
        return structure.unravel(flat.slopes(flat.at(vector), at[None])[1][0])

    def _on_vectors(self, *points: Any) -> tuple[Objective, Structure, list[Any]]:
        owner = type(self).__name__
        trees = [jax.tree.map(jnp.asarray, as_tree(owner, "x", x)) for x in points]
        structure = Structure.of(trees[0])
        if self.dimension is not None and getattr(trees[0], "shape", ()) != (self.dimension,):
            got = getattr(trees[0], "shape", "a pytree")
            _check.fail(owner, "x", f"have shape ({self.dimension},)", got)
        if any(Structure.of(tree) != structure for tree in trees):
            got = getattr(trees[-1], "shape", None)
            got = "another" if got is None else f"shape {got}"
            _check.fail(owner, "t", "have the structure of x", got)
        return self.flat(structure), structure, [structure.ravel(tree) for tree in trees]

    def flat(self, structure: Structure) -> Objective:
        """The same objective of the vector that `structure` makes of a pytree."""
        if not structure.is_vector:
            _check.fail(type(self).__name__, "x", "be a vector", "a pytree")
        return self

    def at(self, x: Vector) -> Point:
        value, gradient = jax.value_and_grad(self.value)(x)
        return Point(x, value, gradient)

    def slopes(
        self, point: Point, t: Float[Array, "s d"]
    ) -> tuple[Float[Array, "s d"], Float[Array, "s d"]]:
        """Coordinate slopes and curvatures at s vectors t, by moving one coordinate at a time.

        Evaluated in chunks, so that memory does not grow with s d^2.
        """
        x = point.x

        def along(j: Any, t_j: Any) -> tuple[Any, Any]:
            def slope(u: Any) -> Any:
                return jax.jvp(lambda v: self.value(x.at[j].set(v)), (u,), (jnp.ones_like(u),))[1]

            return jax.jvp(slope, (t_j,), (jnp.ones_like(t_j),))

        s, d = t.shape
        j = jnp.tile(jnp.arange(d), s)
        size = max(1, min(s * d, CHUNK_NUMBERS // d))
        pair = jax.lax.map(lambda a: along(*a), (j, t.reshape(-1)), batch_size=size)
        return pair[0].reshape(s, d), pair[1].reshape(s, d)

    def diagonal_at(self, point: Point) -> Vector:
        """The curvatures f_j''(x_j) at the point: the diagonal of the Hessian."""
        return self.slopes(point, point.x[None])[1][0]

    def gauss_newton_diagonal(self, point: Point) -> Vector | None:
        """The diagonal of Gauss-Newton's matrix; None where there is no model in the objective."""
        return None

    def image(self, point: Point, d: Vector) -> Any:
        """What a step along d adds to the carried part, up to its length; None if nothing."""
        return None

    def hessian_times(self, point: Point, v: Vector) -> Vector:
        """Hv at the point."""
        return jax.jvp(jax.grad(self.value), (point.x,), (v,))[1]

    def curvature_along(self, point: Point, d: Vector, image: Any) -> Scalar:
        """d'Hd at the point."""
        return inner(d, self.hessian_times(point, d))

    def values_along(
        self, point: Point, d: Vector, image: Any, etas: Float[Array, " n *d"]
    ) -> Float[Array, " n"]:
        """f(x - eta d) for every eta, as one batch."""
        return jax.vmap(lambda eta: self.value(point.x - eta * d))(etas)

    def move(self, point: Point, d: Vector, image: Any, eta: Any, slope: Scalar) -> Point:
        """The point x - eta d, `slope` being <g, d>."""
        return self.at(point.x - eta * d)

    # what these cost, in gradients (a value and its gradient together count as one)
    def slopes_cost(self, s: int, d: int) -> float:
        return s * d

    @property
    def product_cost(self) -> float:
        """Of `hessian_times`."""
        return 2.0

    @property
    def curvature_cost(self) -> float:
        """Of `curvature_along`, the image being there."""
        return 2.0

    @property
    def value_cost(self) -> float:
        return 0.5


def sum_of_parts(part: Callable[..., Any], m: int, size: int, arrays: Any) -> Any:
    """The sum of part(weight, *chunk) over chunks of `size` samples along the arrays' last axis.

    The last chunk is moved back to fit: samples that were counted before get the weight 0.
    """
    ones = jnp.ones(size, jax.tree.leaves(arrays)[0].dtype)
    if size >= m:
        return part(ones, *arrays)

    def chunk(k: Any) -> Any:
        start = jnp.minimum(k * size, m - size)
        new = jnp.where(start + jnp.arange(size) < k * size, 0, ones)
        cut = (jax.lax.dynamic_slice_in_dim(a, start, size, -1) for a in arrays)
        return part(new, *cut)

    return jax.lax.fori_loop(
        1, -(-m // size), lambda k, sums: jax.tree.map(jnp.add, sums, chunk(k)), chunk(0)
    )


# numbers of one copy of x in a chunk of coordinate slopes: 16 MiB of float64
CHUNK_NUMBERS = 2**21
