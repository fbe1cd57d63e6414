"""The diagonal D of the curvature, or what stands in its place: how it is found, and how often."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from cfgd._core import checks
from cfgd.integrations.optax import diagonal
from cfgd.integrations.optax.batch import Batch, is_held, is_none
from cfgd.integrations.optax.diagonal import times
from cfgd.methods.paper.direction import fractional_gradient
from cfgd.methods.paper.order import beta_of


class Curvature(abc.ABC):
    """`init` makes what is kept from step to step, `next` renews it, `direction` uses it.

    A rule is not a number: `optax.inject_hyperparams` leaves its fields alone.
    """

    def init(self, params: Any) -> Any:
        """Nothing is kept."""
        return ()

    def next(self, kept: Any, k: Any, batch: Batch) -> Any:
        return kept

    @abc.abstractmethod
    def direction(self, gamma: Any, g: Any, c: Any, kept: Any, batch: Batch) -> Any: ...


def local_model(gamma: Any, g: Any, x: Any, c: Any, D: Any) -> Any:
    """d = g + gamma D (x - c), leaf by leaf and in the dtype of g."""

    def one(g: Any, x: Any, c: Any, D: Any) -> Any:
        return None if g is None else (g + gamma * times(D, x - c)).astype(g.dtype)

    return jax.tree.map(one, g, x, c, D, is_leaf=is_none)


@dataclasses.dataclass(frozen=True)
class Given(Curvature):
    """D as it is given: a number, or numbers in the structure of the parameters.

    Nothing is asked of `update`. With a number D and the step eta the direction is heavy ball, with
    the momentum -eta gamma D.

    >>> import jax.numpy as jnp
    >>> from cfgd.integrations.optax import Given, scale_by_caputo
    >>> caputo, p = scale_by_caputo(gamma=-0.5, curvature=Given(2.0)), jnp.zeros(2)
    >>> _, state = caputo.update(jnp.ones(2), caputo.init(p), p)
    >>> print(caputo.update(jnp.ones(2), state, p + 0.1)[0])  # 1 - 0.5 * 2 * 0.1
    [0.9 0.9]
    """

    diagonal: Any

    def direction(self, gamma: Any, g: Any, c: Any, kept: Any, batch: Batch) -> Any:
        return local_model(gamma, g, batch.params, c, self._like(batch.owner, batch.params))

    def _like(self, owner: str, params: Any) -> Any:
        D = self.diagonal
        if jax.tree_util.all_leaves([D]) and jnp.ndim(D) == 0:
            return jax.tree.map(lambda x: D, params)

        def one(x: Any, D: Any) -> Any:
            if not is_held(x) and jnp.shape(D) != jnp.shape(x):
                raise ValueError
            return x if is_held(x) else D

        try:
            return jax.tree.map(one, params, D, is_leaf=is_held)
        except (ValueError, TypeError) as error:
            wanted = "be a number or have the structure and the shapes of the parameters"
            checks.fail(owner, "curvature", wanted, jax.tree.map(jnp.shape, D), error)


@dataclasses.dataclass(frozen=True)
class Measured(Curvature):
    """D is measured at every `every`-th step and kept as a running mean in between.

    A measurement is the mean of v * Bv over `probes` vectors v of random signs, unbiased for the
    diagonal of a matrix B; None takes every coordinate in their place, which is exact and a product
    for each parameter. Which signs are drawn follows from `seed` and from how many measurements
    there were, so that nothing of it has to be saved.

    The n-th measurement has the weight max(1/n, 1 - decay) in the mean: all the same at first, so
    that the mean is unbiased from the beginning, and later those before it are forgotten. `decay=0`
    keeps the last one alone. What is not finite is left out.
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
        """v -> Bv at the parameters of the batch."""

    def init(self, params: Any) -> Any:
        return jax.tree.map(jnp.zeros_like, params)

    def next(self, kept: Any, k: Any, batch: Batch) -> Any:
        def renewed(kept: Any) -> Any:
            n = k // self.every + 1
            weight = jnp.maximum(1 / n, 1 - self.decay)

            def one(new: Any, mean: Any) -> Any:
                if is_held(new):
                    return mean
                moved = mean + weight.astype(new.real.dtype) * (new - mean)
                return jnp.where(jnp.isfinite(moved), moved, mean).astype(mean.dtype)

            return jax.tree.map(one, self._measured(n, batch), kept, is_leaf=is_held)

        if self.every == 1:
            return renewed(kept)
        return jax.lax.cond(k % self.every == 0, renewed, lambda kept: kept, kept)

    def _measured(self, n: Any, batch: Batch) -> Any:
        product = self.product(batch)
        if self.probes is None:
            return diagonal.by_coordinates(product, batch.x)
        key = jax.random.fold_in(jax.random.key(self.seed), n)
        return diagonal.probed(product, batch.x, key, self.probes)

    def direction(self, gamma: Any, g: Any, c: Any, kept: Any, batch: Batch) -> Any:
        return local_model(gamma, g, batch.params, c, kept)


@dataclasses.dataclass(frozen=True)
class Hutchinson(Measured):
    """D = E[v * Hv] for the Hessian H of `value_fn`, the loss of the batch.

    A measurement every `every`-th step, of `probes` vectors v of random signs that follow from
    `seed`; D is their running mean, in which what is older counts for less by `decay`.

    >>> import jax, jax.numpy as jnp
    >>> from cfgd.integrations.optax import Hutchinson, scale_by_caputo
    >>> loss = lambda p: jnp.sum(p**4)
    >>> caputo, p = scale_by_caputo(curvature=Hutchinson(every=5)), jnp.array([1.0, 2.0])
    >>> updates, _ = caputo.update(jax.grad(loss)(p), caputo.init(p), p, value_fn=loss)
    >>> print(updates)
    [ 4. 32.]
    """

    def product(self, batch: Batch) -> diagonal.Product:
        return diagonal.hessian(batch.value, batch.x)


@dataclasses.dataclass(frozen=True)
class GaussNewton(Measured):
    """The same for Gauss-Newton's matrix J' L'' J of a loss L of a model with the Jacobian J.

    `update` is given `model_fn`, the predictions of the batch as a function of the parameters, and
    `loss_fn`, the loss as a function of the predictions; the fields are those of `Hutchinson`.

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
        return diagonal.gauss_newton(batch.model, batch.loss, batch.x)


@dataclasses.dataclass(frozen=True)
class Exact(Hutchinson):
    """The diagonal of the Hessian itself, at every step and without a mean: for small models.

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
    """No local model: the formula itself, with the loss moved along each parameter.

    d_j = E[f_j'(T_j)] + beta (x_j - c_j) E[f_j''(T_j)] by `nodes` points, beta = gamma +
    (1 - alpha)/(2 - alpha), as `cfgd.fractional_gradient` has it: about nodes * d gradients, so for
    small models. `update` is given `value_fn`; the gradient that it is given says which parameters
    move, and is not used otherwise.

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

    def direction(self, gamma: Any, g: Any, c: Any, kept: Any, batch: Batch) -> Any:
        x = batch.x
        if any(jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves(x)):
            wanted = "be real for the curvature quadrature"
            checks.fail(f"{batch.owner}.update", "params", wanted, "complex numbers")
        c = jax.tree.map(lambda x, c: x if is_held(x) else c, x, c, is_leaf=is_held)
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
    """The rule of that name, a rule, or what is given for D."""
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
