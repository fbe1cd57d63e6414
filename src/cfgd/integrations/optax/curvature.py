"""Rules for the direction of `scale_by_caputo`: where the diagonal D of the curvature comes from.

`local_model` repeats for pytrees what `methods.paper.direction.direction` computes for vectors on a
`cfgd.Local`; `Quadrature` calls the core's `fractional_gradient`. The tests compare the iterates
with those of `cfgd.AdaptiveTerminal`.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from cfgd._core import checks
from cfgd.integrations.optax import diagonal
from cfgd.integrations.optax.batch import Batch, is_masked, is_none
from cfgd.integrations.optax.diagonal import times
from cfgd.methods.paper.direction import fractional_gradient
from cfgd.methods.paper.order import beta_of


class Curvature(abc.ABC):
    """A rule: `init` makes its state, `update` renews the state, `direction` uses it.

    A rule is no pytree, so that `optax.inject_hyperparams` does not trace its fields.
    """

    def init(self, params: Any) -> Any:
        """Return the initial state; () for a rule without one."""
        return ()

    def update(self, state: Any, k: Any, batch: Batch) -> Any:
        """Return the state for step k."""
        return state

    @abc.abstractmethod
    def direction(self, gamma: Any, g: Any, c: Any, state: Any, batch: Batch) -> Any:
        """Return d for the gradient g and the terminal c."""


def local_model(gamma: Any, g: Any, x: Any, c: Any, D: Any) -> Any:
    """Return d = g + gamma D (x - c), leaf by leaf and in the dtype of g.

    On vectors the core computes this with `direction` of `methods.paper.direction` on a `Local`.
    """

    def of_leaf(g: Any, x: Any, c: Any, D: Any) -> Any:
        return None if g is None else (g + gamma * times(D, x - c)).astype(g.dtype)

    return jax.tree.map(of_leaf, g, x, c, D, is_leaf=is_none)


@dataclasses.dataclass(frozen=True)
class Given(Curvature):
    """A given D: a number, or a pytree of numbers in the structure of the parameters.

    `update` needs no function. With a number D and the step eta, `cfgd` is the heavy-ball method
    with the momentum -eta gamma D.

    Parameters
    ----------
    diagonal : number or pytree
        D, in the structure of the parameters or one number.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from cfgd.integrations.optax import Given, scale_by_caputo
    >>> caputo, p = scale_by_caputo(gamma=-0.5, curvature=Given(2.0)), jnp.zeros(2)
    >>> _, state = caputo.update(jnp.ones(2), caputo.init(p), p)
    >>> print(caputo.update(jnp.ones(2), state, p + 0.1)[0])  # 1 - 0.5 * 2 * 0.1
    [0.9 0.9]
    """

    diagonal: Any

    def direction(self, gamma: Any, g: Any, c: Any, state: Any, batch: Batch) -> Any:
        return local_model(
            gamma, g, batch.params, c, self._diagonal_like(batch.owner, batch.params)
        )

    def _diagonal_like(self, owner: str, params: Any) -> Any:
        """Return D in the structure of the parameters; masked ones stay masked."""
        D = self.diagonal
        if jax.tree_util.all_leaves([D]) and jnp.ndim(D) == 0:
            return jax.tree.map(lambda x: D, params)

        def of_leaf(x: Any, D: Any) -> Any:
            if not is_masked(x) and jnp.shape(D) != jnp.shape(x):
                raise ValueError
            return x if is_masked(x) else D

        try:
            return jax.tree.map(of_leaf, params, D, is_leaf=is_masked)
        except (ValueError, TypeError) as error:
            wanted = "be a number or have the structure and the shapes of the parameters"
            checks.fail(owner, "curvature", wanted, jax.tree.map(jnp.shape, D), error)


@dataclasses.dataclass(frozen=True)
class Measured(Curvature):
    """Base of the rules that measure D at every `every`-th step; the state is a running mean.

    A measurement is the mean of v * Bv over `probes` vectors v of random signs, which is unbiased
    for the diagonal of a matrix B. With `probes=None` it is exact, from one product for each
    parameter. The signs depend on `seed` and on the number of measurements so far, so that a
    resumed run draws the same ones.

    The n-th measurement has the weight max(1/n, 1 - decay) in the mean: equal weights at first,
    which keeps the mean unbiased, and an exponential mean later. `decay=0` uses the last
    measurement only. Entries that are not finite are left out.
    """

    every: int = 10
    decay: float = 0.9
    probes: int | None = 1
    seed: int = 0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        checks.integer(owner, "every", self.every)
        inside = "lie in [0, 1]"
        checks.number(owner, "decay", self.decay, inside, lambda v: (v >= 0) & (v <= 1))
        if self.probes is not None:
            checks.integer(owner, "probes", self.probes)
        checks.integer(owner, "seed", self.seed, least=0)

    @abc.abstractmethod
    def product(self, batch: Batch) -> diagonal.Product:
        """Return v -> Bv at the parameters of the batch."""

    def init(self, params: Any) -> Any:
        return jax.tree.map(jnp.zeros_like, params)

    def update(self, state: Any, k: Any, batch: Batch) -> Any:
        def measure(mean: Any) -> Any:
            n = k // self.every + 1
            weight = jnp.maximum(1 / n, 1 - self.decay)

            def of_leaf(new: Any, mean: Any) -> Any:
                if is_masked(new):
                    return mean
                moved = mean + weight.astype(new.real.dtype) * (new - mean)
                return jnp.where(jnp.isfinite(moved), moved, mean).astype(mean.dtype)

            return jax.tree.map(of_leaf, self._measured(n, batch), mean, is_leaf=is_masked)

        if self.every == 1:
            return measure(state)
        return jax.lax.cond(k % self.every == 0, measure, lambda mean: mean, state)

    def _measured(self, n: Any, batch: Batch) -> Any:
        product = self.product(batch)
        if self.probes is None:
            return diagonal.by_coordinates(product, batch.trainable)
        key = jax.random.fold_in(jax.random.key(self.seed), n)
        return diagonal.probed(product, batch.trainable, key, self.probes)

    def direction(self, gamma: Any, g: Any, c: Any, state: Any, batch: Batch) -> Any:
        return local_model(gamma, g, batch.params, c, state)


@dataclasses.dataclass(frozen=True)
class Hutchinson(Measured):
    """D = E[v * Hv] for the Hessian H of `value_fn`, the loss of the batch.

    Parameters
    ----------
    every : int, default 10
        Number of steps between two measurements.
    decay : float, default 0.9
        Decay of the running mean of the measurements, in [0, 1]; 0 uses the last one only.
    probes : int or None, default 1
        Number of random vectors v in a measurement; None takes all coordinates, which is exact.
    seed : int, default 0
        Seed of the random signs.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from cfgd.integrations.optax import Hutchinson, scale_by_caputo
    >>> loss = lambda p: jnp.sum(p**4)
    >>> caputo, p = scale_by_caputo(curvature=Hutchinson(every=5)), jnp.array([1.0, 2.0])
    >>> updates, _ = caputo.update(jax.grad(loss)(p), caputo.init(p), p, value_fn=loss)
    >>> print(updates)
    [ 4. 32.]
    """

    def product(self, batch: Batch) -> diagonal.Product:
        return diagonal.hessian(batch.value, batch.trainable)


@dataclasses.dataclass(frozen=True)
class GaussNewton(Measured):
    """`Hutchinson` for the Gauss-Newton matrix J' L'' J of a loss L and a model's Jacobian J.

    `update` needs `model_fn`, the predictions of the batch as a function of the parameters, and
    `loss_fn`, the loss as a function of the predictions.

    Parameters
    ----------
    every : int, default 10
        Number of steps between two measurements.
    decay : float, default 0.9
        Decay of the running mean of the measurements, in [0, 1]; 0 uses the last one only.
    probes : int or None, default 1
        Number of random vectors v in a measurement; None takes all coordinates, which is exact.
    seed : int, default 0
        Seed of the random signs.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from cfgd.integrations.optax import GaussNewton, scale_by_caputo
    >>> model, loss = lambda p: p**2, lambda z: jnp.sum((z - 1) ** 2)
    >>> caputo, p = scale_by_caputo(gamma=-0.5, curvature=GaussNewton()), jnp.array([1.0, 2.0])
    >>> g = jax.grad(lambda p: loss(model(p)))(p)
    >>> updates, _ = caputo.update(g, caputo.init(p), p, model_fn=model, loss_fn=loss)
    >>> print(updates)
    [ 0. 24.]
    """

    def product(self, batch: Batch) -> diagonal.Product:
        return diagonal.gauss_newton(batch.model, batch.loss, batch.trainable)


@dataclasses.dataclass(frozen=True)
class Exact(Hutchinson):
    """The exact diagonal of the Hessian at every step, without a mean: for small models.

    Parameters
    ----------
    every : int, default 1
        Number of steps between two measurements.
    decay : float, default 0.0
        Decay of the running mean of the measurements, in [0, 1]; 0 uses the last one only.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from cfgd.integrations.optax import Exact, scale_by_caputo
    >>> loss = lambda p: jnp.sum(p**4)
    >>> caputo, p = scale_by_caputo(gamma=-0.5, curvature=Exact()), jnp.array([1.0, 2.0])
    >>> updates, _ = caputo.update(jax.grad(loss)(p), caputo.init(p), p, value_fn=loss)
    >>> print(updates)
    [ 4. 32.]
    """

    every: int = 1
    decay: float = 0.0
    probes: int | None = dataclasses.field(default=None, init=False)
    seed: int = dataclasses.field(default=0, init=False)


@dataclasses.dataclass(frozen=True)
class Quadrature(Curvature):
    """The fractional gradient by quadrature, without a local model: for small models.

    d_j = E[f_j'(T_j)] + beta (x_j - c_j) E[f_j''(T_j)] with `nodes` quadrature points and beta =
    gamma + (1 - alpha)/(2 - alpha), by `cfgd.fractional_gradient`. It costs about nodes * d
    gradients for d parameters. `update` needs `value_fn`; its gradient only tells which parameters
    move.

    Parameters
    ----------
    alpha : float, default 0.5
        The order, in (0, 1).
    nodes : int, default 10
        The number of quadrature nodes, at least 1.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from cfgd.integrations.optax import Quadrature, scale_by_caputo
    >>> loss = lambda p: jnp.sum(p**4)
    >>> caputo, p = scale_by_caputo(curvature=Quadrature(nodes=3)), jnp.array([1.0, 2.0])
    >>> updates, _ = caputo.update(jax.grad(loss)(p), caputo.init(p), p, value_fn=loss)
    >>> print(updates)
    [ 4. 32.]
    """

    alpha: float = 0.5
    nodes: int = 10

    def __post_init__(self) -> None:
        checks.in_open_unit_interval("Quadrature", "alpha", self.alpha)
        checks.integer("Quadrature", "nodes", self.nodes)

    def direction(self, gamma: Any, g: Any, c: Any, state: Any, batch: Batch) -> Any:
        x = batch.trainable
        if any(jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves(x)):
            wanted = "be real for the curvature quadrature"
            checks.fail(f"{batch.owner}.update", "params", wanted, "complex numbers")
        c = jax.tree.map(lambda x, c: x if is_masked(x) else c, x, c, is_leaf=is_masked)
        beta = beta_of(self.alpha, gamma)
        d = fractional_gradient(batch.value, x, c, self.alpha, beta, self.nodes)
        return jax.tree.map(
            lambda g, d: g if g is None else d.astype(g.dtype), g, d, is_leaf=is_none
        )


NAMED = {
    "hutchinson": Hutchinson(),
    "gauss_newton": GaussNewton(),
    "exact": Exact(),
    "quadrature": Quadrature(),
}


def curvature_of(owner: str, given: Any) -> Curvature:
    """Return the rule of a given name, a given rule, or `Given` for a given D."""
    if isinstance(given, Curvature):
        return given
    if isinstance(given, str) and given in NAMED:
        return NAMED[given]
    wanted = f"be one of {', '.join(NAMED)}, a rule, a number or a pytree of numbers"
    leaves = jax.tree.leaves(given)
    if not leaves or not all(
        isinstance(leaf, int | float) or hasattr(leaf, "dtype") for leaf in leaves
    ):
        checks.fail(owner, "curvature", wanted, repr(given))
    return Given(given)
