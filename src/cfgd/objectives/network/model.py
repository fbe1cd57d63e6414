"""The paper's two-layer network and its misfit."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cfgd._core import checks
from cfgd._core.arrays import in_precision, numpy_in_numpy_out, precision_of, to_numpy
from cfgd._core.either import Unbound, made, on_host, space
from cfgd._core.linalg import inner
from cfgd._core.sharding import is_sharded, is_sharded_by_rows, keep_float64, n_shards
from cfgd._core.types import Column, Data, Rows, Samples, Scalar, Vector, Vectors
from cfgd.objectives.base import CHUNK_NUMBERS, Objective
from cfgd.objectives.curvature import Model
from cfgd.objectives.evaluation import Evaluation, Line, slope_along
from cfgd.objectives.linear.samples import sum_of_parts, targets
from cfgd.objectives.network.activation import Activation, Custom, activation_of
from cfgd.objectives.network.line import NetworkLine
from cfgd.objectives.network.projection import Features

# phi'^2 that a unit is taken to have at least, where steps are damped
SATURATED = 1e-3


class Parameters(NamedTuple):
    """x, readable: a_1 (p, width), a_2 (width,) and a_3 (width,) of the paper."""

    hidden_weights: Float[Array | np.ndarray, "p width"]
    biases: Column
    output_weights: Column


class Seen(NamedTuple):
    """What a point of a network keeps: a_1 z + a_2, phi and phi' of it, and N(z) - y."""

    inside: Rows
    phi: Rows
    slope: Rows
    misfit: Samples


class ShallowNetwork(Objective):
    r"""f(x) = sum_i (N(z_i; x) - y_i)^2 / 2 for a network with one hidden layer (section 4.3).

    $$ N(z; x) = \sum_{j=1}^{n} a_{3,j}\, \phi(a_{1,j} \cdot z + a_{2,j}) $$

    `z` are m inputs, (m,) or (m, p); `width` is n. x holds a_1 (for p inputs, p blocks of n), then
    a_2, then a_3. `activation` is "tanh", "sigmoid", "softplus", "sin" or any JAX function.

    A coordinate of unit j changes N by a_3j times the change of phi alone (the paper's Appendix
    on complexity), so all slopes at s nodes cost about s gradients.

    >>> import cfgd, numpy as np
    >>> z = np.linspace(-1, 1, 5)
    >>> network = cfgd.ShallowNetwork(z, np.sin(z), width=3)
    >>> x = network.init(0)
    >>> print(network.dimension, network.predict(x, z).shape)
    9 (5,)
    """

    z: Data  # (m, p + 1): the inputs and a one, whose weight is the bias
    y: Data
    width: int = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)
    shards: int = eqx.field(static=True)  # parts in which samples are spread over devices

    @keep_float64
    def __init__(self, z: Any, y: Any, width: int, activation: Any = "tanh") -> None:
        owner = "ShallowNetwork"
        z = checks.array(owner, "z", z)
        if z.ndim not in (1, 2) or z.size == 0:
            checks.fail(owner, "z", "have shape (m,) or (m, p)", f"shape {tuple(z.shape)}")
        if is_sharded(z) and not is_sharded_by_rows(z):
            checks.fail(owner, "z", "be spread by rows, as a NamedSharding says", z.sharding)
        self.y = targets(owner, y, len(z), z.dtype, z)
        self.z, self.shards = _with_one(z), n_shards(z)
        self.width = checks.integer(owner, "width", width)
        self.activation = activation_of(owner, activation, precision_of(self.z, self.y))

    @property
    def dimension(self) -> int:
        return (self.z.shape[1] + 1) * self.width

    def check(self, owner: str, x: Vector) -> None:
        """Nothing to refuse: the value is a number by construction."""

    @property
    def has_gauss_newton(self) -> bool:
        return True

    @property
    def hidden(self) -> int:
        """How many coordinates lie in the hidden layer; the output layer's come after them."""
        return self.z.shape[1] * self.width

    def init(self, key: Any, scale: Any = 1.0) -> np.ndarray:
        """A normal start of the given deviation, or of (hidden, output) deviations.

        The paper does not say how it starts and the start decides the outcome. Documented starts:
        `scale=1.0`, all standard normal, and `scale=(5.0, 0.02**0.5)`, N(0, 25) for the hidden
        layer and N(0, 0.02) for the output layer. `key` is a JAX key or an integer.
        """
        scale = checks.positive("init", "scale", scale)
        if scale.shape not in ((), (2,)):
            checks.fail("init", "scale", "be a number or two", f"shape {scale.shape}")
        hidden, output = np.broadcast_to(scale, (2,))
        dtype = precision_of(self.z, self.y)
        with in_precision(dtype):
            key = jax.random.wrap_key_data(checks.key("init", key))
            draw = np.asarray(jax.random.normal(key, (self.dimension,), dtype))
        return draw * np.where(np.arange(self.dimension) < self.hidden, hidden, output).astype(
            dtype
        )

    def parameters(self, x: Any) -> Parameters:
        """The vector x as hidden weights, biases and output weights."""
        weights, output = self.layers(x)
        return Parameters(weights[:-1], weights[-1], output)

    @numpy_in_numpy_out
    def predict(self, x: Any, z: Any) -> Any:
        """N(z; x) for inputs (m,) or (m, p)."""
        x, z = checks.floating("predict", "x", x), checks.floating("predict", "z", z)
        p, host = self.z.shape[1] - 1, not isinstance(self.activation, Custom)
        if not (host and on_host(x) and on_host(z)):  # else NumPy compiles nothing
            x, z = jnp.asarray(x), jnp.asarray(z)
        checks.shape("predict", "x", x, (self.dimension,))
        if z.ndim not in (1, 2) or (1 if z.ndim == 1 else z.shape[1]) != p:
            checks.fail("predict", "z", f"have shape (m,) or (m, {p})", f"shape {z.shape}")
        weights, output = self.layers(x)
        return self.activation(_with_one(z) @ weights)[0] @ output

    def layers(self, x: Data) -> tuple[Any, Any]:
        """The weights into the units, a row for each input and one of biases; those out of them."""
        return x[: self.hidden].reshape(-1, self.width), x[self.hidden :]

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        weights, output = self.layers(jnp.asarray(checks.floating("ShallowNetwork", "x", x)))
        misfit = self.activation(self.z @ weights)[0] @ output - self.y
        return inner(misfit, misfit) / 2

    def evaluate(self, x: Vector) -> Evaluation:
        return self.seen_at(x, self.features(x[: self.hidden]))

    def features(self, w: Vector) -> Features:
        """Of the hidden coordinates."""
        inside: Any = self.z @ w.reshape(-1, self.width)
        phi, slope, _ = self.activation(inside)
        return Features(inside, phi, slope)

    def seen_at(self, x: Vector, features: Features) -> Evaluation:
        """The point whose features are known."""
        _, output = self.layers(x)
        inside, phi, slope = features
        misfit = phi @ output - self.y
        back = misfit[:, None] * slope
        gradient = space(x).concatenate([(self.z.T @ back * output).reshape(-1), misfit @ phi])
        seen, value = Seen(inside, phi, slope, misfit), inner(misfit, misfit) / 2
        return made(Evaluation, x=x, value=value, gradient=gradient, aux=seen)

    def coordinate_derivatives(self, point: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        """f_j' and f_j'' by the misfit update, in chunks of samples whose memory is bounded."""
        _, output = self.layers(point.x)
        (m, q), n = self.z.shape, self.width
        shift = (t - point.x)[:, : self.hidden].reshape(-1, q, n, 1)
        a = output[:, None]
        # samples last and a node at a time: contiguous sums over arrays that stay in the cache
        z, inside, phi = self.z.T[:, None], point.aux.inside.T, point.aux.phi.T
        misfit = point.aux.misfit

        def part(
            new: Samples,
            z: Float[Array, "q 1 m"],
            inside: Float[Array, "n m"],
            phi: Float[Array, "n m"],
            misfit: Samples,
        ) -> tuple[Float[Array, "s q n"], Float[Array, "s q n"]]:
            def at_node(
                shift: Float[Array, "q n 1"],
            ) -> tuple[Float[Array, "q n"], Float[Array, "q n"]]:
                phi_t, slope, curvature = self.activation(inside + z * shift)
                misfit_t = misfit + a * (phi_t - phi)
                change = z * slope  # of N, up to a_3
                bend = misfit_t * z * z * curvature + a * change * change
                return output * ((misfit_t * change) @ new), output * (bend @ new)

            return jax.lax.map(at_node, shift)

        size = max(1, min(m, CHUNK_NUMBERS // (8 * self.hidden)))
        first, second = sum_of_parts(part, m, size, (z, inside, phi, misfit), self.shards)
        phi = point.aux.phi
        squares = jnp.sum(phi * phi, 0)
        out_slope = point.gradient[self.hidden :] + squares * (t - point.x)[:, self.hidden :]
        out_curvature = jnp.broadcast_to(squares, (len(t), n))
        return (
            jnp.concatenate([first.reshape(len(t), -1), out_slope], 1),
            jnp.concatenate([second.reshape(len(t), -1), out_curvature], 1),
        )

    def gauss_newton_diagonal(self, point: Evaluation) -> Vector:
        _, output = self.layers(point.x)
        hidden = (self.z**2).T @ point.aux.slope**2 * output**2
        return space(hidden).concatenate([hidden.reshape(-1), (point.aux.phi**2).sum(0)])

    def in_numpy(self) -> Unbound | None:
        return None if isinstance(self.activation, Custom) else Unbound(to_numpy(self))

    @property
    def has_model(self) -> bool:
        return True

    def residuals(self, point: Evaluation) -> Column:
        return point.aux.misfit

    def model_shape(self, point: Evaluation) -> tuple[int, ...]:
        return len(self.z), self.dimension

    def model(self, point: Evaluation) -> Model:
        """dN/da_1 = a_3 phi' z, dN/da_2 = a_3 phi', dN/da_3 = phi."""
        _, output = self.layers(point.x)
        hidden = self.hidden_rows(point.aux.slope, output)
        J = space(point.x).concatenate([hidden, point.aux.phi], 1)
        return Model(J, r=point.aux.misfit)

    def hidden_rows(self, slope: Data, output: Data) -> Any:
        """dN/da_1 and dN/da_2."""
        inside = slope * output
        return (self.z[:, :, None] * inside[:, None]).reshape(len(self.z), -1)

    def damping(self, point: Evaluation, diagonal: Vector) -> Vector:
        """The diagonal with slopes phi'^2 that are larger by a little.

        A saturated unit is flat here and steep a step away: its own curvature would let it go
        anywhere, and hundreds of steps then fail.
        """
        _, output = self.layers(point.x)
        more = SATURATED * (self.z**2).sum(0)[:, None] * output**2
        xp = space(diagonal)
        return diagonal + xp.concatenate([more.reshape(-1), 0 * output])

    def model_cost(self, shape: tuple[int, ...]) -> float:
        return 1.0

    def model_times(self, point: Evaluation, v: Vector) -> Vector:
        (_, output), (weights_v, output_v) = self.layers(point.x), self.layers(v)
        _, phi, slope, _ = point.aux
        along = (slope * (self.z @ weights_v)) @ output + phi @ output_v
        hidden = self.z.T @ (along[:, None] * slope * output)
        return space(point.x).concatenate([hidden.reshape(-1), along @ phi])

    def line(self, point: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        change = self.z @ self.layers(d)[0]
        return NetworkLine(self, point, d, slope_along(point, d, slope), change)

    def hessian_times(self, point: Evaluation, v: Vector) -> Vector:
        """The derivative of the gradient along v; it takes no new activation's worth of work."""
        (_, output), (weights_v, output_v) = self.layers(point.x), self.layers(v)
        inside, phi, slope, misfit = point.aux
        _, _, curvature = self.activation(inside)
        inside_v = self.z @ weights_v
        phi_v = slope * inside_v
        misfit_v = phi_v @ output + phi @ output_v
        bend = (misfit_v[:, None] * slope + misfit[:, None] * curvature * inside_v) * output
        hidden = self.z.T @ (bend + misfit[:, None] * slope * output_v)
        return space(point.x).concatenate([hidden.reshape(-1), misfit_v @ phi + misfit @ phi_v])

    def slopes_cost(self, s: int, d: int) -> float:
        return float(s)

    @property
    def product_cost(self) -> float:
        return 1.0


def _with_one(z: Data) -> Data:
    kit = jnp if isinstance(z, jax.Array) else np
    z = z[:, None] if z.ndim == 1 else z
    return kit.concatenate([z, kit.ones((len(z), 1), z.dtype)], 1)
