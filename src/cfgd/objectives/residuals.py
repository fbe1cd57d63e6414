"""Nonlinear least squares: a sum of losses of the residuals of any model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out, own
from cfgd._core.interruptible import interruptible_trace
from cfgd._core.linalg import array_namespace
from cfgd._core.pytrees import FunctionOfVector, Structure, checked_pytree, map_parameters
from cfgd._core.types import Column, Data, Rows, UserInput, Vector
from cfgd.objectives.base import Objective, Traits, label_of
from cfgd.objectives.curvature import Curvature, JacobianRows, residual_variance
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.function import array_arguments
from cfgd.objectives.linear.samples import count_zero_weight
from cfgd.objectives.robust import LOSSES, Rho, rho_of

# Weight of a row, relative to the largest one, where the loss is not convex: small enough to change
# nothing, large enough for the matrix to be factorised.
LEAST_WEIGHT = 1e-10
# Operations of m d min(m, d) up to which the diagonal is computed from the whole Jacobian.
MOST_OPERATIONS = 2e9
# Random vectors by which the diagonal is estimated beyond that: a relative error of about 1/4.
PROBES = 16


class Residuals(Objective):
    r"""f(x) = sum_i w_i rho(r_i^2) / 2 for a JAX function r = fn(x, *args).

    `fn` returns an array or a pytree of arrays. `loss` is "squared", rho(z) = z, or one of SciPy's
    robust losses "soft_l1", "huber" and "cauchy", for which residuals well beyond `scale` count for
    less: rho is then scale^2 rho(z / scale^2). `weights` go with the residuals, and take their
    structure or are one number. Arrays in `args` and `weights` are copied; what `fn` captures is
    not, and may be compiled into it.

    Its Gauss-Newton matrix is J' diag(w (rho' + 2 rho'' r^2)) J with J the derivative of r; where
    that weight is not positive, a small one takes its place. `Auto` minimises it by the method of
    Levenberg and Marquardt.

    >>> import cfgd, jax.numpy as jnp, numpy as np
    >>> t, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([5.1, 3.0, 1.9, 1.1])
    >>> f = cfgd.Residuals(lambda p: p[0] * jnp.exp(-p[1] * t) - y)
    >>> print(cfgd.minimize(f, [1.0, 1.0]).x.round(4))
    [5.0829 0.5075]
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    weights: Any
    scale: Data
    rho: Rho = eqx.field(static=True)

    def __init__(
        self,
        fn: Callable[..., Any],
        loss: str = "squared",
        *,
        scale: UserInput = 1.0,
        weights: UserInput = None,
        args: tuple[Any, ...] = (),
    ) -> None:
        owner = "Residuals"
        checks.function(owner, "fn", fn, "be a function of x")
        self.fn, self.args, self.rho = fn, array_arguments(owner, args), rho_of(owner, loss)
        self.scale = checks.positive(owner, "scale", scale)
        if self.scale.ndim != 0:
            checks.fail(owner, "scale", "be one number", f"shape {self.scale.shape}")
        self.weights = np.ones(())
        if weights is not None:
            self.weights = jax.tree.map(own, checked_pytree(owner, "weights", weights))
            for leaf in jax.tree.leaves(self.weights):
                checks.number(owner, "weights", leaf, "not be negative", lambda v: v >= 0)

    def raveled(self, structure: Structure) -> Residuals:
        """Return the same residuals as a function of the vector that `structure` makes of x."""
        if structure.is_vector:
            return self
        return eqx.tree_at(lambda f: f.fn, self, FunctionOfVector(self.fn, structure))

    def check(self, owner: str, x: Vector) -> None:
        """Raise unless the residuals are real numbers and the weights have their shapes."""
        known, shapes = (
            checks.checked_signatures(self.fn),
            checks.signature_of((x, *self.args, self.weights)),
        )
        if shapes in known:
            return
        with checks.traceable("Residuals", "fn"):
            out = jax.eval_shape(partial(interruptible_trace, self.fn), x, *self.args)
        leaves = jax.tree.leaves(out)
        if not leaves or sum(leaf.size for leaf in leaves) == 0:
            checks.fail("Residuals", "fn", "return at least one number", "nothing")
        for leaf in leaves:
            if not jnp.issubdtype(leaf.dtype, jnp.floating):
                checks.fail("Residuals", "fn", "return real numbers", f"dtype {leaf.dtype}")
        given = [np.shape(leaf) for leaf in jax.tree.leaves(self.weights)]
        if given != [()] and given != [leaf.shape for leaf in leaves]:
            wanted = f"be one number or have the shapes {[leaf.shape for leaf in leaves]} of fn(x)"
            checks.fail("Residuals", "weights", wanted, given)
        known.add(shapes)

    @property
    def traits(self) -> Traits:
        return Traits(
            label_of(self),
            structure="residuals",
            curvature="Gauss-Newton",
            diagonal="Gauss-Newton",
        )

    @property
    def is_squared(self) -> bool:
        """Whether the loss is the square, so that f = |r|^2 / 2 of weighted residuals."""
        return self.rho is LOSSES["squared"]

    def vector(self, x: Vector) -> Column:
        """Return all residuals as one vector."""
        return _joined(self.fn(x, *self.args))

    def jacobian(self, x: Vector) -> Rows:
        """Return the derivative of `vector`, in forward mode where that takes fewer passes."""
        r = jax.eval_shape(self.vector, x)
        transform = jax.jacfwd if x.size <= r.size else jax.jacrev
        return transform(self.vector)(x)

    def weight(self) -> Data:
        """Return one weight for each residual, or one for all."""
        leaves = jax.tree.leaves(self.weights)
        return leaves[0] if np.ndim(leaves[0]) == 0 else _joined(leaves)

    @numpy_in_numpy_out
    def value(self, x: PyTree) -> Any:
        tree = map_parameters(jnp.asarray, checked_pytree("Residuals", "x", x))
        return self._value(_joined(self.fn(tree, *self.args)))

    def evaluate(self, x: Vector) -> Evaluation:
        r, back = jax.vjp(self.vector, x)
        return Evaluation(x, self._value(r), back(self._cotangent(r))[0], self._aux(r))

    def _value(self, r: Column) -> Any:
        rho = self.rho((r / self.scale) ** 2)
        return self.scale**2 * (self.weight() * rho.value).sum() / 2

    def _cotangent(self, r: Column) -> Column:
        """Return v with the gradient J'v."""
        return self.weight() * self.rho((r / self.scale) ** 2).slope * r

    def _aux(self, r: Column) -> Column:
        """Return r, for the square loss times the roots of the weights."""
        return array_namespace(r).sqrt(self.weight()) * r if self.is_squared else r

    def _row_scale(self, aux: Column) -> tuple[Column, Column]:
        """Return what scales each row of J, and residuals with J'r the gradient."""
        xp, r = array_namespace(aux), aux
        if self.is_squared:
            return xp.broadcast_to(xp.sqrt(self.weight()), r.shape), r
        rho = self.rho((r / self.scale) ** 2)
        slope = self.weight() * rho.slope
        weight = slope + 2 * self.weight() * rho.curvature * (r / self.scale) ** 2
        least = LEAST_WEIGHT * xp.max(slope)
        root = xp.sqrt(xp.maximum(weight, xp.where(least > 0, least, 1)))
        root = xp.where(self.weight() > 0, root, 0)
        return root, slope * r / xp.where(root > 0, root, 1)

    def curvature(self, evaluation: Evaluation) -> Curvature:
        """Return the Gauss-Newton matrix."""
        x, aux = evaluation.x, evaluation.aux
        m, d = aux.size, x.size

        def rows() -> JacobianRows:
            root, r = self._row_scale(aux)
            return JacobianRows(root[:, None] * self.jacobian(x), r)

        def times(v: Vector) -> Vector:
            root, _ = self._row_scale(aux)
            _, along = jax.jvp(self.vector, (x,), (v,))
            _, back = jax.vjp(self.vector, x)
            return back(root * root * along)[0]

        def diagonal() -> Vector:
            """Return sum_i J_ij^2, or the mean of (J'z)_j^2 over random signs z."""
            if float(m) * d * min(m, d) <= MOST_OPERATIONS:
                return (rows().jacobian ** 2).sum(0)
            root, _ = self._row_scale(aux)
            _, back = jax.vjp(self.vector, x)
            keys = jax.random.split(jax.random.key(0), PROBES)

            def square(key: Any) -> Vector:
                z = jax.random.rademacher(key, root.shape, root.dtype)
                return back(root * z)[0] ** 2

            return jnp.mean(jax.lax.map(square, keys), 0)

        def dispersion() -> float | None:
            if not self.is_squared:
                return None
            leaves = [leaf for leaf in jax.tree.leaves(self.weights) if leaf.ndim > 0]
            freedom = m - d - sum(map(count_zero_weight, leaves))
            return residual_variance(float(evaluation.value), freedom)

        return Curvature(
            times=times,
            diagonal=diagonal,
            shape=(m, d),
            rows=rows,
            residuals_at=(lambda at: self.evaluate(at).aux) if self.is_squared else None,
            cost=float(min(m, d)),
            dispersion=dispersion,
        )


def _joined(tree: PyTree) -> Column:
    parts = [jnp.ravel(jnp.asarray(leaf)) for leaf in jax.tree.leaves(tree)]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)
