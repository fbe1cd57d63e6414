"""Nonlinear least squares: a sum of losses of the residuals of any model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar

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
from cfgd._core.types import Column, Data, Matrix, Rows, UserInput, Vector
from cfgd.objectives.base import Objective, Traits, label_of
from cfgd.objectives.curvature import Curvature, JacobianRows, residual_variance
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.function import array_arguments
from cfgd.objectives.information import Information
from cfgd.objectives.jacobian import jacobian, jacobian_by_samples, jacobian_times
from cfgd.objectives.linear.samples import count_zero_weight, given_weights
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

    Arrays in `args`, `samples` and `weights` are copied. Arrays that `fn` captures are not copied,
    and may become constants of the compiled program. With `samples` the Jacobian costs a few
    gradients, whatever the number of unknowns, because the residuals of a sample depend on this
    sample only.

    The Gauss-Newton matrix is J' diag(w (rho' + 2 rho'' r^2)) J with the Jacobian J of r; a weight
    that is not positive is replaced by a small positive one. `Auto` minimises f by the
    Levenberg-Marquardt method.

    Parameters
    ----------
    fn : callable
        A JAX function fn(x, *args) that returns the residuals r, an array or a pytree of arrays;
        with `samples`, fn(x, *sample, *args) returns those of one sample.
    loss : {"squared", "soft_l1", "huber", "cauchy"}, default "squared"
        rho(z) = z, or one of SciPy's robust losses, for which residuals well beyond `scale` count
        for less: rho is then scale^2 rho(z / scale^2).
    scale : float, default 1.0
        The size of a residual beyond which a robust loss grows slower than the square; positive.
    weights : number, array or pytree, optional
        Weights of at least 0: one number, or in the structure of the residuals; with `samples` one
        number, one for each sample, or with a first axis of samples. 1 by default.
    args : tuple, default ()
        Data that is passed to `fn`: pytrees of arrays.
    samples : tuple of arrays, optional
        Arrays of equal length, with an entry for each sample.

    Raises
    ------
    ValueError
        If `fn` is no function; `loss` is another name; `scale` is not one positive number; a weight
        is negative or not finite; `args` is no tuple; or `samples` are not arrays of equal length.
        `minimize` raises it if `fn` does not return real numbers, or `weights` do not fit them.

    Examples
    --------
    >>> import cfgd, jax.numpy as jnp, numpy as np
    >>> t, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([5.1, 3.0, 1.9, 1.1])
    >>> f = cfgd.Residuals(lambda p: p[0] * jnp.exp(-p[1] * t) - y)
    >>> print(cfgd.minimize(f, [1.0, 1.0]).x.round(4))
    [5.0829 0.5075]
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    samples: tuple[Any, ...] | None
    weights: Any
    scale: Data
    rho: Rho = eqx.field(static=True)

    _internal: ClassVar[tuple[str, ...]] = ("is_squared", "jacobian", "rho", "vector", "weight")

    def __init__(
        self,
        fn: Callable[..., Any],
        loss: str = "squared",
        *,
        scale: UserInput = 1.0,
        weights: UserInput = None,
        args: tuple[Any, ...] = (),
        samples: UserInput = None,
    ) -> None:
        owner = "Residuals"
        checks.function(owner, "fn", fn, "be a function of x")
        self.fn, self.args, self.rho = fn, array_arguments(owner, args), rho_of(owner, loss)
        self.scale = checks.positive(owner, "scale", scale)
        if self.scale.ndim != 0:
            checks.fail(owner, "scale", "be one number", f"shape {self.scale.shape}")
        self.samples = None if samples is None else _checked_samples(owner, samples)
        self.weights = np.ones(())
        if weights is not None:
            self.weights = jax.tree.map(own, checked_pytree(owner, "weights", weights))
            for leaf in jax.tree.leaves(self.weights):
                checks.number(owner, "weights", leaf, "not be negative", lambda v: v >= 0)

    def _argument(self, name: str) -> Any:
        if name == "loss":
            return self.rho.__name__
        return given_weights(self.weights) if name == "weights" else getattr(self, name)

    def raveled(self, structure: Structure) -> Residuals:
        """Return the same residuals as a function of the vector that `structure` makes of x."""
        if structure.is_vector:
            return self
        return eqx.tree_at(lambda f: f.fn, self, FunctionOfVector(self.fn, structure))

    def check(self, owner: str, x: Vector) -> None:
        """Raise unless the residuals are real numbers and the weights have their shapes."""
        known, shapes = (
            checks.checked_signatures(self.fn),
            checks.signature_of((x, *self.args, self.samples, self.weights)),
        )
        if shapes in known:
            return
        with checks.traceable("Residuals", "fn"):
            out = jax.eval_shape(partial(interruptible_trace, self._residuals), x)
        leaves = jax.tree.leaves(out)
        if not leaves or sum(leaf.size for leaf in leaves) == 0:
            checks.fail("Residuals", "fn", "return at least one number", "nothing")
        for leaf in leaves:
            if not jnp.issubdtype(leaf.dtype, jnp.floating):
                checks.fail("Residuals", "fn", "return real numbers", f"dtype {leaf.dtype}")
        given = [np.shape(leaf) for leaf in jax.tree.leaves(self.weights)]
        wanted = [leaf.shape for leaf in leaves]
        per_sample = [] if self.samples is None else [wanted[0][:1]]
        if given not in ([()], wanted, per_sample):
            each = "" if self.samples is None else ", one for each sample"
            text = f"be one number{each} or have the shapes {wanted} of the residuals"
            checks.fail("Residuals", "weights", text, given)
        known.add(shapes)

    @cached_property  # it is read many times in a run
    def traits(self) -> Traits:
        return Traits(
            label_of(self),
            structure="residuals",
            curvature="Gauss-Newton",
            prefers_gradients=self.samples is not None,
        )

    @property
    def is_squared(self) -> bool:
        """Whether the loss is the square, so that f = |r|^2 / 2 of weighted residuals."""
        return self.rho is LOSSES["squared"]

    def vector(self, x: PyTree) -> Column:
        """Return all residuals as one vector; with samples, those of a sample stand together."""
        residuals = self._residuals(x)
        return _joined(residuals) if self.samples is None else _joined_by_samples(residuals)

    def _residuals(self, x: PyTree) -> PyTree:
        """Return the residuals as `fn` returns them, with a first axis of samples if there are."""
        if self.samples is None:
            return self.fn(x, *self.args)
        return jax.vmap(lambda *sample: self.fn(x, *sample, *self.args))(*self.samples)

    def jacobian(self, x: Vector) -> Rows:
        """Return the derivative of `vector`."""
        if self.samples is None:
            return jacobian(self.vector, x)

        def of_sample(x: Vector, sample: tuple[Any, ...]) -> Column:
            return _joined(self.fn(x, *sample, *self.args))

        return jacobian_by_samples(of_sample, x, self.samples)

    def _rows_cost(self, m: int, d: int) -> float:
        """Return the cost of the Jacobian, in gradients: the passes of its mode."""
        if self.samples is None:
            return float(min(m, d))
        return float(min(m // len(self.samples[0]), d))

    def weight(self, m: int) -> Data:
        """Return one weight for each of the m residuals, or one for all."""
        leaves = jax.tree.leaves(self.weights)
        if np.ndim(leaves[0]) == 0:
            return leaves[0]
        if self.samples is None:  # in NumPy where the weights are
            parts = [leaf.reshape(-1) for leaf in leaves]
            return parts[0] if len(parts) == 1 else array_namespace(parts[0]).concatenate(parts)
        weight = _joined_by_samples(leaves)
        return (
            weight if weight.size == m else array_namespace(weight).repeat(weight, m // weight.size)
        )

    @numpy_in_numpy_out
    def value(self, x: PyTree) -> Any:
        tree = map_parameters(jnp.asarray, checked_pytree("Residuals", "x", x))
        return self._value(self.vector(tree))

    def evaluate(self, x: Vector) -> Evaluation:
        r, back = jax.vjp(self.vector, x)
        return Evaluation(x, self._value(r), back(self._cotangent(r))[0], self._aux(r))

    def _value(self, r: Column) -> Any:
        rho = self.rho((r / self.scale) ** 2)
        return self.scale**2 * (self.weight(r.size) * rho.value).sum() / 2

    def _cotangent(self, r: Column) -> Column:
        """Return v with the gradient J'v."""
        return self.weight(r.size) * self.rho((r / self.scale) ** 2).slope * r

    def _aux(self, r: Column) -> Column:
        """Return r, for the square loss times the roots of the weights."""
        return array_namespace(r).sqrt(self.weight(r.size)) * r if self.is_squared else r

    def _row_scale(self, aux: Column) -> tuple[Column, Column]:
        """Return the factor of each row of J, and the residuals r with the gradient J'r."""
        xp, r = array_namespace(aux), aux
        if self.is_squared:
            return xp.broadcast_to(xp.sqrt(self.weight(r.size)), r.shape), r
        rho = self.rho((r / self.scale) ** 2)
        slope = self.weight(r.size) * rho.slope
        weight = slope + 2 * self.weight(r.size) * rho.curvature * (r / self.scale) ** 2
        least = LEAST_WEIGHT * xp.max(slope)
        root = xp.sqrt(xp.maximum(weight, xp.where(least > 0, least, 1)))
        root = xp.where(self.weight(r.size) > 0, root, 0)
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
            _, back = jax.vjp(self.vector, x)
            return back(root * root * jacobian_times(self.vector, x, v))[0]

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

        return Curvature(
            times=times,
            diagonal=diagonal,
            shape=(m, d),
            rows=rows,
            residuals_at=(lambda at: self.evaluate(at).aux) if self.is_squared else None,
            cost=self._rows_cost(m, d),
            information=partial(self._information, evaluation),
        )

    def _information(self, evaluation: Evaluation, H: Callable[[], Matrix]) -> Information | None:
        """Return the information of a fit that ended at an evaluation, whose matrix is H()."""
        if not self.is_squared:
            return None
        m, d = evaluation.aux.size, evaluation.x.size
        leaves = [leaf for leaf in jax.tree.leaves(self.weights) if leaf.ndim > 0]
        unused = sum(map(count_zero_weight, leaves))
        if len(leaves) == 1 and self.samples is not None:
            unused *= m // leaves[0].size  # a weight may be that of all residuals of a sample
        dof = m - d - unused
        return Information.of(H(), residual_variance(float(evaluation.value), dof), dof)


def _checked_samples(owner: str, samples: object) -> tuple[Any, ...]:
    """Return copies of arrays of equal length; a single array is taken as a tuple of one."""
    if not isinstance(samples, tuple):
        samples = (samples,)
    arrays = tuple(own(checks.real(owner, "samples", one)) for one in samples)
    for one in arrays:
        checks.finite(owner, "samples", one)
    lengths = [np.shape(one)[:1] for one in arrays]
    if not lengths or () in lengths or len(set(lengths)) > 1 or lengths[0] == (0,):
        got = f"shapes {[np.shape(one) for one in arrays]}"
        checks.fail(owner, "samples", "be arrays of equal length, which is that of x_i", got)
    return arrays


def _joined_by_samples(tree: PyTree) -> Column:
    """Return arrays with a first axis of samples as one vector, sample after sample."""
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    rows = [leaf.reshape(len(leaf), -1) for leaf in leaves]
    return (rows[0] if len(rows) == 1 else jnp.concatenate(rows, 1)).ravel()


def _joined(tree: PyTree) -> Column:
    parts = [jnp.ravel(jnp.asarray(leaf)) for leaf in jax.tree.leaves(tree)]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)
