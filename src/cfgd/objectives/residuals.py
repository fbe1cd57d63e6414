"""Nonlinear least squares: a sum of losses of the residuals of any model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out
from cfgd._core.either import space
from cfgd._core.pytrees import FunctionOfVector, Structure, checked_pytree
from cfgd._core.types import Column, Data, Rows, Vector
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Model, is_affordable
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.function import passed
from cfgd.objectives.linear.samples import count_zero_weight
from cfgd.objectives.robust import LOSSES, Rho, rho_of

# of its largest weight, what a residual counts for at least where its loss is not convex
LEAST = 1e-10
# estimates of the diagonal where it is too costly to compute
PROBES = 16


class Residuals(Objective):
    r"""f(x) = sum_i w_i rho(r_i^2) / 2 for a JAX function r = fn(x, *args).

    `fn` returns an array or a pytree of arrays. `loss` is "squared", rho(z) = z, or one of SciPy's
    robust losses "soft_l1", "huber" and "cauchy", for which residuals well beyond `scale` count for
    less: rho is then scale^2 rho(z / scale^2). `weights` go with the residuals, and take their
    structure or are one number.

    Its matrix of Gauss and Newton is J' diag(w (rho' + 2 rho'' r^2)) J with J the derivative of r;
    where that weight is not positive, a small one takes its place. `Auto` takes the step of
    Levenberg and Marquardt on it.

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
        scale: Any = 1.0,
        weights: Any = None,
        args: tuple[Any, ...] = (),
    ) -> None:
        owner = "Residuals"
        checks.function(owner, "fn", fn, "be a function of x")
        self.fn, self.args, self.rho = fn, passed(owner, args), rho_of(owner, loss)
        self.scale = checks.positive(owner, "scale", scale)
        if self.scale.ndim != 0:
            checks.fail(owner, "scale", "be one number", f"shape {self.scale.shape}")
        self.weights = np.ones(())
        if weights is not None:
            self.weights = checked_pytree(owner, "weights", weights)
            for leaf in jax.tree.leaves(self.weights):
                checks.number(owner, "weights", leaf, "not be negative", lambda v: v >= 0)

    def raveled(self, structure: Structure) -> Residuals:
        """The same residuals of the vector that `structure` makes of a pytree."""
        if structure.is_vector:
            return self
        return eqx.tree_at(lambda f: f.fn, self, FunctionOfVector(self.fn, structure))

    def check(self, owner: str, x: Vector) -> None:
        """Refuse residuals that are no real numbers, and weights that do not go with them."""
        known, shapes = (
            checks.checked_signatures(self.fn),
            checks.signature_of((x, *self.args, self.weights)),
        )
        if shapes in known:
            return
        with checks.traceable("Residuals", "fn"):
            out = jax.eval_shape(self.fn, x, *self.args)
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
    def is_function(self) -> bool:
        return True

    @property
    def is_squared(self) -> bool:
        return self.rho is LOSSES["squared"]

    def times(self, factor: Any) -> Residuals:
        return eqx.tree_at(
            lambda f: f.weights, self, jax.tree.map(lambda w: factor * w, self.weights)
        )

    # ------------------------------------------------------------------ r, f and the matrix

    def vector(self, x: Vector) -> Column:
        """All residuals in a row."""
        return _joined(self.fn(x, *self.args))

    def weight(self) -> Data:
        """One for each residual, or one for all."""
        leaves = jax.tree.leaves(self.weights)
        return leaves[0] if np.ndim(leaves[0]) == 0 else _joined(leaves)

    def residuals(self, point: Evaluation) -> Column | None:
        return point.aux if self.is_squared else None

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        tree = jax.tree.map(jnp.asarray, checked_pytree("Residuals", "x", x))
        return self._value(_joined(self.fn(tree, *self.args)))

    def _value(self, r: Column) -> Any:
        rho = self.rho((r / self.scale) ** 2)
        return self.scale**2 * (self.weight() * rho.value).sum() / 2

    def evaluate(self, x: Vector) -> Evaluation:
        r, back = jax.vjp(self.vector, x)
        return Evaluation(x, self._value(r), back(self._pull(r))[0], self._carried(r))

    def _pull(self, r: Column) -> Column:
        """What J' is applied to for the gradient."""
        return self.weight() * self.rho((r / self.scale) ** 2).slope * r

    def _carried(self, r: Column) -> Column:
        return space(r).sqrt(self.weight()) * r if self.is_squared else r

    def _weighted(self, r: Column) -> tuple[Column, Column]:
        """Of each row the root of its weight in the matrix, and its residual for J'r = g.

        `r` is what a point carries: with the weight in it where the loss is squared.
        """
        xp = space(r)
        if self.is_squared:
            return xp.broadcast_to(xp.sqrt(self.weight()), r.shape), r
        rho = self.rho((r / self.scale) ** 2)
        slope = self.weight() * rho.slope
        weight = slope + 2 * self.weight() * rho.curvature * (r / self.scale) ** 2
        least = LEAST * xp.max(slope)
        root = xp.sqrt(xp.maximum(weight, xp.where(least > 0, least, 1)))
        root = xp.where(self.weight() > 0, root, 0)
        return root, slope * r / xp.where(root > 0, root, 1)

    def jacobian(self, x: Vector) -> Rows:
        """The derivative of r, by the side that is shorter."""
        r = jax.eval_shape(self.vector, x)
        of = jax.jacfwd if x.size <= r.size else jax.jacrev
        return of(self.vector)(x)

    @property
    def has_model(self) -> bool:
        return True

    def model_shape(self, point: Evaluation) -> tuple[int, ...]:
        return point.aux.size, point.x.size

    def model(self, point: Evaluation) -> Model:
        root, r = self._weighted(point.aux)
        J: Any = root[:, None] * self.jacobian(point.x)
        return Model(J, r=r)

    def model_times(self, point: Evaluation, v: Vector) -> Vector:
        root, _ = self._weighted(point.aux)
        _, along = jax.jvp(self.vector, (point.x,), (v,))
        _, back = jax.vjp(self.vector, point.x)
        return back(root * root * along)[0]

    def dispersion(self, value: float, freedom: int) -> float | None:
        if not self.is_squared:
            return None
        freedom -= sum(
            count_zero_weight(leaf) for leaf in jax.tree.leaves(self.weights) if leaf.ndim > 0
        )
        return 2 * value / freedom if freedom > 0 else np.inf

    @property
    def has_gauss_newton(self) -> bool:
        return True

    def gauss_newton_diagonal(self, point: Evaluation) -> Vector:
        """Where J is too large to be written down, the mean of (J'z)^2 for some z of -1 and 1."""
        if is_affordable(self.model_shape(point)):
            return (self.model(point).J ** 2).sum(0)
        root, _ = self._weighted(point.aux)
        _, back = jax.vjp(self.vector, point.x)
        keys = jax.random.split(jax.random.key(0), PROBES)

        def square(key: Any) -> Vector:
            z = jax.random.rademacher(key, root.shape, root.dtype)
            return back(root * z)[0] ** 2

        return jnp.mean(jax.lax.map(square, keys), 0)


def _joined(tree: Any) -> Column:
    parts = [jnp.ravel(jnp.asarray(leaf)) for leaf in jax.tree.leaves(tree)]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)
