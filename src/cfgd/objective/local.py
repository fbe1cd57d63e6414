"""The local quadratic model of any objective."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd import _check
from cfgd.objective.base import Objective, Point
from cfgd.objective.smooth import Smooth
from cfgd.precision import numpy_in_numpy_out
from cfgd.structure import Structure

CURVATURES = ("exact", "gauss_newton", "hutchinson")


class Local(Objective):
    r"""An objective whose coordinate slopes are those of its quadratic model at x.

    $$ f_j'(t) \approx g_j + D_j (t - x_j), \qquad d = g + \gamma D (x - c) $$

    so one node is exact, and a fractional direction costs a gradient and a diagonal D of the
    curvature: "exact", the diagonal of the Hessian (for a function without structure about d
    gradients, in chunks); "gauss_newton", for objectives that are sums of losses of a model; or
    "hutchinson", the unbiased mean of v * Hv over `probes` random signs v (two gradients each),
    drawn anew at every point from `key`, a JAX key or an integer.

    >>> import cfgd, jax.numpy as jnp
    >>> f = cfgd.Local(lambda x: jnp.sum(x**4), curvature="exact")
    >>> print(f.coordinate_slope([1.0, 2.0], [1.5, 1.0]))
    [ 10. -16.]
    """

    objective: Objective
    curvature: str = eqx.field(static=True)
    probes: int = eqx.field(static=True)
    key: Any

    def __init__(
        self, objective: Any, curvature: str = "exact", *, probes: int = 1, key: Any = None
    ) -> None:
        if not isinstance(objective, Objective):
            if not callable(objective):
                _check.fail("Local", "objective", "be an objective or a function", repr(objective))
            objective = Smooth(objective)
        if curvature not in CURVATURES:
            wanted = f"be one of {', '.join(CURVATURES)}"
            _check.fail("Local", "curvature", wanted, repr(curvature))
        self.probes = _check.integer("Local", "probes", probes)
        if (curvature == "hutchinson") != (key is not None):
            wanted = "be given for the curvature hutchinson and for no other"
            _check.fail("Local", "key", wanted, f"{key} for {curvature}")
        self.objective, self.curvature = objective, curvature
        self.key = None if key is None else _check.key("Local", key)
        inside: Any = objective
        while isinstance(inside, Local):
            inside = inside.objective
        has_none = type(inside).gauss_newton_diagonal is Objective.gauss_newton_diagonal
        if curvature == "gauss_newton" and has_none:
            wanted = "be a sum of losses of a model for the curvature gauss_newton"
            _check.fail("Local", "objective", wanted, objective.kind())

    def kind(self) -> str:
        return f"a Local of {self.objective.kind()}"

    @property
    def is_quadratic(self) -> bool:
        return self.objective.is_quadratic

    @property
    def linear_slopes(self) -> bool:
        return True

    @property
    def _walks_inside(self) -> bool:
        """Whether the objective's own way of walking is used; probing goes with the gradient."""
        return self.curvature != "hutchinson"

    @property
    def drifts(self) -> bool:
        return self._walks_inside and self.objective.drifts

    @property
    def dimension(self) -> int | None:
        return self.objective.dimension

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        return self.objective.value(x)

    def flat(self, structure: Structure) -> Objective:
        return eqx.tree_at(lambda f: f.objective, self, self.objective.flat(structure))

    def at(self, x: Any) -> Point:
        if self._walks_inside:
            return self.objective.at(x)
        # x's bits make the draw another one at every point, without a state to carry
        bits = jax.lax.bitcast_convert_type(x, jnp.uint32).reshape(-1)
        odd = 2 * jnp.arange(bits.size, dtype=jnp.uint32) + 1
        bits = jnp.sum(bits * odd * jnp.uint32(2654435761), dtype=jnp.uint32)
        key = jax.random.fold_in(jax.random.wrap_key_data(self.key), bits)
        signs = jax.random.rademacher(key, (self.probes, x.size), x.dtype)
        both = jax.value_and_grad(self.objective.value)
        if self.probes == 1:  # a gradient and its derivative along v share most of their work
            (value, gradient), (_, Hv) = jax.jvp(both, (x,), (signs[0],))
            return Point(x, value, gradient, signs[0] * Hv)
        (value, gradient), along = jax.linearize(both, x)
        products = jax.lax.map(lambda v: v * along(v)[1], signs)
        return Point(x, value, gradient, jnp.mean(products, 0))

    def diagonal_at(self, point: Point) -> Any:
        if self.curvature == "exact":
            return self.objective.diagonal_at(point)
        if self.curvature == "gauss_newton":
            return self.objective.gauss_newton_diagonal(point)
        return point.carried

    def slopes(self, point: Point, t: Any) -> tuple[Any, Any]:
        D = self.diagonal_at(point)
        return point.gradient + D * (t - point.x), jnp.broadcast_to(D, t.shape)

    def gauss_newton_diagonal(self, point: Point) -> Any:
        return self.objective.gauss_newton_diagonal(point)

    def image(self, point: Point, d: Any) -> Any:
        return self.objective.image(point, d) if self._walks_inside else None

    def hessian_times(self, point: Point, v: Any) -> Any:
        walker: Any = self.objective if self._walks_inside else super()
        return walker.hessian_times(point, v)

    def curvature_along(self, point: Point, d: Any, image: Any) -> Any:
        walker: Any = self.objective if self._walks_inside else super()
        return walker.curvature_along(point, d, image)

    def values_along(self, point: Point, d: Any, image: Any, etas: Any) -> Any:
        walker: Any = self.objective if self._walks_inside else super()
        return walker.values_along(point, d, image, etas)

    def move(self, point: Point, d: Any, image: Any, eta: Any, slope: Any) -> Point:
        walker: Any = self.objective if self._walks_inside else super()
        return walker.move(point, d, image, eta, slope)

    def slopes_cost(self, s: int, d: int) -> float:
        if self.curvature == "hutchinson":
            return 2.0 * self.probes
        return 1.0 if self.curvature == "gauss_newton" else self.objective.slopes_cost(1, d)

    @property
    def curvature_cost(self) -> float:
        return self.objective.curvature_cost if self._walks_inside else super().curvature_cost

    @property
    def product_cost(self) -> float:
        return self.objective.product_cost if self._walks_inside else super().product_cost

    @property
    def value_cost(self) -> float:
        return self.objective.value_cost if self._walks_inside else super().value_cost
