"""The local quadratic model of any objective."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out
from cfgd._core.pytrees import Structure
from cfgd._core.types import Scalar, UserInput, Vector, Vectors
from cfgd.objectives.base import DerivativeCost, Objective, Traits, hessian_diagonal
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation, Line, linear_derivatives
from cfgd.objectives.function import as_objective

CURVATURES = ("exact", "gauss_newton", "hutchinson")


class Local(Objective):
    r"""An objective whose coordinate slopes are those of its quadratic model at x.

    $$ f_j'(t) \approx g_j + D_j (t - x_j), \qquad d = g + \gamma D (x - c) $$

    so one node is exact, and a fractional direction costs a gradient and a diagonal D of the
    curvature: "exact", the diagonal of the Hessian (for a function without structure about d
    gradients, in chunks); "gauss_newton", for objectives that are sums of losses of a model; or
    "hutchinson", the unbiased mean of v * Hv over `probes` vectors v of random signs (two gradients
    each), which are drawn again at every point from `key`.

    Parameters
    ----------
    objective : Objective or callable
        An objective, or a JAX function of x.
    curvature : {"exact", "gauss_newton", "hutchinson"}, default "exact"
        How D is computed.
    probes : int, default 1
        The number of random vectors v for "hutchinson", at least 1.
    key : int, numpy.random.Generator or JAX key, optional
        The source of the random signs; needed for "hutchinson" and for no other.

    Raises
    ------
    ValueError
        If `key` is missing for "hutchinson" or given for another curvature, or "gauss_newton" is
        asked for of an objective that is no sum of losses of a model.

    Examples
    --------
    >>> import cfgd, jax.numpy as jnp
    >>> f = cfgd.Local(lambda x: jnp.sum(x**4), curvature="exact")
    >>> print(f.coordinate_slope([1.0, 2.0], [1.5, 1.0]))
    [ 10. -16.]
    """

    objective: Objective
    estimator: str = eqx.field(static=True)
    probes: int = eqx.field(static=True)
    key: Any

    _internal: ClassVar[tuple[str, ...]] = ("estimator",)

    def __init__(
        self, objective: object, curvature: str = "exact", *, probes: int = 1, key: UserInput = None
    ) -> None:
        objective = as_objective("Local", objective)
        checks.choice("Local", "curvature", curvature, CURVATURES)
        self.probes = checks.integer("Local", "probes", probes)
        if (curvature == "hutchinson") != (key is not None):
            wanted = "be given for the curvature hutchinson and for no other"
            checks.fail("Local", "key", wanted, f"{key} for {curvature}")
        self.objective, self.estimator = objective, curvature
        self.key = None if key is None else checks.key("Local", "key", key)
        known = objective.traits.curvature, objective.traits.diagonal
        if curvature == "gauss_newton" and "Gauss-Newton" not in known:
            wanted = "be a sum of losses of a model for the curvature gauss_newton"
            checks.fail("Local", "objective", wanted, objective.traits.label)

    def _argument(self, name: str) -> Any:
        return self.estimator if name == "curvature" else getattr(self, name)

    @property
    def _probes_hessian(self) -> bool:
        """Whether evaluations draw probes, so that they are not those of the objective."""
        return self.estimator == "hutchinson"

    @property
    def traits(self) -> Traits:
        inside = self.objective.traits
        if self._probes_hessian:
            cost, label = DerivativeCost(per_node=2.0 * self.probes), f"{inside.label} with probes"
            inside = Traits("", structure=inside.structure, is_singular=inside.is_singular)
        else:
            cost = DerivativeCost(per_node=1.0)
            cost, label = inside.diagonal_cost if self.estimator == "exact" else cost, inside.label
        return dataclasses.replace(
            inside,
            label=f"a Local of {label}",
            linear_slopes=True,
            curvature=None,
            diagonal="given",
            derivative_cost=cost,
            diagonal_cost=cost,
        )

    @property
    def shape(self) -> tuple[int, ...] | None:
        return self.objective.shape

    @numpy_in_numpy_out
    def value(self, x: PyTree) -> Any:
        return self.objective.value(x)

    def raveled(self, structure: Structure) -> Objective:
        return eqx.tree_at(lambda f: f.objective, self, self.objective.raveled(structure))

    def check(self, owner: str, x: Vector) -> None:
        self.objective.check(owner, x)

    def evaluate(self, x: Vector) -> Evaluation:
        if not self._probes_hessian:
            return self.objective.evaluate(x)
        # the bits of x make the draw different at every point, without a state
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

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        if self._probes_hessian:
            return super().line(evaluation, d, slope)
        return self.objective.line(evaluation, d, slope)

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        if self._probes_hessian:
            return super().hessian_times(evaluation, v)
        return self.objective.hessian_times(evaluation, v)

    def curvature(self, evaluation: Evaluation) -> Curvature:
        """Return products with the Hessian, and the estimated diagonal for the model's."""
        inside = None if self._probes_hessian else self.objective.curvature(evaluation)
        return Curvature(
            times=lambda v: self.hessian_times(evaluation, v),
            diagonal=lambda: self._diagonal(evaluation),
            product_cost=self.traits.product_cost,
            is_stationary=None if inside is None else inside.is_stationary,
        )

    def _diagonal(self, evaluation: Evaluation) -> Vector:
        if self._probes_hessian:
            return evaluation.aux
        if self.estimator == "exact":
            return hessian_diagonal(self.objective, evaluation)
        curvature = self.objective.curvature(evaluation)
        assert curvature is not None  # see `__init__`
        return curvature.diagonal()

    def coordinate_derivatives(self, evaluation: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        return linear_derivatives(evaluation, self._diagonal(evaluation), t)

    def on_host(self) -> Objective | None:
        inside = None if self._probes_hessian else self.objective.on_host()
        has_formulas = self.objective.traits.curvature == "Hessian"
        if inside is None or not has_formulas:  # an exact diagonal of a function needs JAX
            return None
        return eqx.tree_at(lambda f: f.objective, self, inside)
