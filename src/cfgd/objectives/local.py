"""The local quadratic model of any objective."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out
from cfgd._core.pytrees import Structure
from cfgd._core.types import Scalar, Vector, Vectors
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation, Line, linear_slopes
from cfgd.objectives.function import as_objective

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
        objective = as_objective("Local", objective)
        if curvature not in CURVATURES:
            wanted = f"be one of {', '.join(CURVATURES)}"
            checks.fail("Local", "curvature", wanted, repr(curvature))
        self.probes = checks.integer("Local", "probes", probes)
        if (curvature == "hutchinson") != (key is not None):
            wanted = "be given for the curvature hutchinson and for no other"
            checks.fail("Local", "key", wanted, f"{key} for {curvature}")
        self.objective, self.curvature = objective, curvature
        self.key = None if key is None else checks.key("Local", key)
        if curvature == "gauss_newton" and not objective.has_gauss_newton:
            wanted = "be a sum of losses of a model for the curvature gauss_newton"
            checks.fail("Local", "objective", wanted, objective.kind())

    def kind(self) -> str:
        probed = " with probes" if self.curvature == "hutchinson" else ""
        return f"a Local of {self.objective.kind()}{probed}"

    @property
    def is_quadratic(self) -> bool:
        return self.objective.is_quadratic

    @property
    def linear_slopes(self) -> bool:
        return True

    @property
    def _walker(self) -> Objective | None:
        """The objective whose own points and lines are used; probing has points of its own."""
        return None if self.curvature == "hutchinson" else self.objective

    @property
    def drifts(self) -> bool:
        return self._walker is not None and self._walker.drifts

    @property
    def hidden(self) -> int | None:
        return None if self._walker is None else self._walker.hidden

    @property
    def dimension(self) -> int | None:
        return self.objective.dimension

    @property
    def shape(self) -> tuple[int, ...] | None:
        return self.objective.shape

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        return self.objective.value(x)

    def raveled(self, structure: Structure) -> Objective:
        return eqx.tree_at(lambda f: f.objective, self, self.objective.raveled(structure))

    def check(self, owner: str, x: Vector) -> None:
        self.objective.check(owner, x)

    def evaluate(self, x: Vector) -> Evaluation:
        if self._walker is not None:
            return self._walker.evaluate(x)
        # x's bits make the draw another one at every point, without a state to carry
        bits = jax.lax.bitcast_convert_type(x, jnp.uint32).reshape(-1)
        odd = 2 * jnp.arange(bits.size, dtype=jnp.uint32) + 1
        bits = jnp.sum(bits * odd * jnp.uint32(2654435761), dtype=jnp.uint32)
        key = jax.random.fold_in(jax.random.wrap_key_data(self.key), bits)
        signs = jax.random.rademacher(key, (self.probes, x.size), x.dtype)
        both = jax.value_and_grad(self.objective.value)
        if self.probes == 1:  # a gradient and its derivative along v share most of their work
            (value, gradient), (_, Hv) = jax.jvp(both, (x,), (signs[0],))
            return Evaluation(x, value, gradient, signs[0] * Hv)
        (value, gradient), along = jax.linearize(both, x)
        products = jax.lax.map(lambda v: v * along(v)[1], signs)
        return Evaluation(x, value, gradient, jnp.mean(products, 0))

    def line(self, point: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        if self._walker is None:
            return super().line(point, d, slope)
        return self._walker.line(point, d, slope)

    def hessian_times(self, point: Evaluation, v: Vector) -> Vector:
        if self._walker is None:
            return super().hessian_times(point, v)
        return self._walker.hessian_times(point, v)

    @property
    def product_cost(self) -> float:
        return super().product_cost if self._walker is None else self._walker.product_cost

    def diagonal_at(self, point: Evaluation) -> Vector:
        if self.curvature == "exact":
            return self.objective.diagonal_at(point)
        if self.curvature == "gauss_newton":
            return self.objective.gauss_newton_diagonal(point)
        return point.aux

    def coordinate_derivatives(self, point: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        return linear_slopes(point, self.diagonal_at(point), t)

    def slopes_cost(self, s: int, d: int) -> float:
        if self.curvature == "hutchinson":
            return 2.0 * self.probes
        return 1.0 if self.curvature == "gauss_newton" else self.objective.diagonal_cost(d)

    def in_residual_form(self) -> Objective:
        return eqx.tree_at(lambda f: f.objective, self, self.objective.in_residual_form())

    def is_singular(self) -> bool:
        return self.objective.is_singular()

    @property
    def has_gauss_newton(self) -> bool:
        return self._walker is not None and self._walker.has_gauss_newton

    def gauss_newton_diagonal(self, point: Evaluation) -> Vector:
        return self.objective.gauss_newton_diagonal(point)

    @property
    def scaled_by(self) -> str | None:
        return "the given"

    def scaling_at(self, point: Evaluation) -> Vector:
        return self.diagonal_at(point)
