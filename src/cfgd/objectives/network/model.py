"""The paper's two-layer network and its misfit."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from cfgd._core import checks
from cfgd._core.arrays import in_precision, numpy_in_numpy_out, precision_of, to_numpy
from cfgd._core.linalg import array_namespace, inner, is_numpy
from cfgd._core.sharding import any_sharded, is_sharded, is_sharded_by_rows, keep_float64, n_shards
from cfgd._core.types import Column, Data, Matrix, Rows, Samples, Scalar, UserInput, Vector, Vectors
from cfgd.objectives.base import BATCH_NUMBERS, DerivativeCost, Objective, Traits, label_of
from cfgd.objectives.curvature import Curvature, JacobianRows
from cfgd.objectives.evaluation import Evaluation, Line, slope_along
from cfgd.objectives.linear.samples import sum_of_parts, targets
from cfgd.objectives.network.activation import Activation, Custom, activation_of
from cfgd.objectives.network.line import NetworkLine

# Least phi'^2 of a unit in the damping of steps. A saturated unit is flat at x and steep at the end
# of a long step; without this limit hundreds of steps failed on the paper's networks.
SATURATED = 1e-3


class Parameters(NamedTuple):
    """The parts of x: a_1 (p, width), a_2 (width,) and a_3 (width,) of the paper."""

    hidden_weights: Float[Array | np.ndarray, "p width"]
    biases: Column
    output_weights: Column


class Features(NamedTuple):
    """The inputs a_1 z + a_2 of the units, and phi and phi' of them."""

    inside: Rows
    phi: Rows
    slope: Rows


class Activations(NamedTuple):
    """`aux` of an evaluation: the features and N(z) - y."""

    inside: Rows
    phi: Rows
    slope: Rows
    misfit: Samples


class ShallowNetwork(Objective):
    r"""f(x) = sum_i (N(z_i; x) - y_i)^2 / 2 for a network with one hidden layer (section 4.3).

    $$ N(z; x) = \sum_{j=1}^{n} a_{3,j}\, \phi(a_{1,j} \cdot z + a_{2,j}) $$

    x holds a_1 (for p inputs, p blocks of n), then a_2, then a_3.

    A change of a coordinate of unit j changes N by a_3j times the change of its phi (the paper's
    appendix on complexity), so that all coordinate slopes at s nodes cost about s gradients. `z`
    and `y` are copied.

    Parameters
    ----------
    z : array
        The inputs of m samples, of shape (m,) or (m, p).
    y : array
        The targets, of shape (m,).
    width : int
        The number n of hidden units, at least 1.
    activation : str or callable, default "tanh"
        phi: "tanh", "sigmoid", "softplus", "sin", or any JAX function of one number.

    Raises
    ------
    ValueError
        If `z` has another shape than (m,) or (m, p); `y` does not have a number for each input; an
        entry is not finite; `width` is not an integer of at least 1; or `activation` is an unknown
        name, or a function that does not return one number.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), section 4.3.

    Examples
    --------
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
    shards: int = eqx.field(static=True)  # the number of shards of the samples

    _internal: ClassVar[tuple[str, ...]] = (
        "features",
        "from_features",
        "hidden",
        "hidden_rows",
        "layers",
        "shards",
    )

    @keep_float64
    def __init__(self, z: Any, y: Any, width: int, activation: Any = "tanh") -> None:
        owner = "ShallowNetwork"
        z = checks.array(owner, "z", z)
        if z.ndim not in (1, 2) or z.size == 0:
            checks.fail(owner, "z", "have shape (m,) or (m, p)", f"shape {tuple(z.shape)}")
        if is_sharded(z) and not is_sharded_by_rows(z):
            checks.fail(owner, "z", "be sharded by rows with a NamedSharding", z.sharding)
        self.y = targets(owner, y, len(z), z.dtype, z)
        self.z, self.shards = _with_one(z), n_shards(z)
        self.width = checks.integer(owner, "width", width)
        self.activation = activation_of(owner, activation, precision_of(self.z, self.y))

    def _argument(self, name: str) -> Any:
        if name == "z":
            shape = (len(self.z), self.z.shape[1] - 1)[: max(1, self.z.shape[1] - 1)]
            return jax.ShapeDtypeStruct(shape, self.z.dtype)
        if name == "activation":
            activation: Any = self.activation
            return activation.fn if isinstance(activation, Custom) else activation.__name__
        return getattr(self, name)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dimension,)

    @property
    def dimension(self) -> int:
        """The number of weights."""
        return (self.z.shape[1] + 1) * self.width

    @property
    def hidden(self) -> int:
        """The number of coordinates in the hidden layer; those of the output layer follow."""
        return self.z.shape[1] * self.width

    @property
    def traits(self) -> Traits:
        return Traits(
            label_of(self),
            structure="residuals",
            curvature="Gauss-Newton",
            diagonal="Gauss-Newton",
            size=(len(self.z), self.dimension),
            n_nonlinear=self.hidden,
            derivative_cost=DerivativeCost(per_node=1.0),
            diagonal_cost=DerivativeCost(per_node=1.0),
            product_cost=1.0,
        )

    def check(self, owner: str, x: Vector) -> None:
        """Accept every x: the value is a number by construction."""

    def init(self, rng: Any, scale: Any = 1.0) -> np.ndarray:
        """Draw a start from normal distributions with one or two standard deviations.

        The paper does not document its starts, on which the result depends. Starts that are used in
        this project are `scale=1.0`, standard normal for all weights, and `scale=(5.0, 0.02**0.5)`,
        N(0, 25) for the hidden layer and N(0, 0.02) for the output layer.

        Parameters
        ----------
        rng : int, numpy.random.Generator or JAX key
            The source of the random numbers.
        scale : float or pair of floats, default 1.0
            One standard deviation, or that of the hidden layer and that of the output layer.

        Returns
        -------
        array
            The start, of shape (dimension,).
        """
        scale = checks.positive("init", "scale", scale)
        if scale.shape not in ((), (2,)):
            checks.fail("init", "scale", "be a number or two", f"shape {scale.shape}")
        hidden, output = np.broadcast_to(scale, (2,))
        dtype = precision_of(self.z, self.y)
        with in_precision(dtype):
            key = jax.random.wrap_key_data(checks.key("init", "rng", rng))
            draw = np.asarray(jax.random.normal(key, (self.dimension,), dtype))
        return draw * np.where(np.arange(self.dimension) < self.hidden, hidden, output).astype(
            dtype
        )

    def parameters(self, x: PyTree) -> Parameters:
        """Return the vector x as hidden weights, biases and output weights.

        Parameters
        ----------
        x : array
            All weights as one vector.

        Returns
        -------
        tuple of arrays
            `hidden_weights` (p, n), `biases` (n,) and `output_weights` (n,), by these names.
        """
        weights, output = self.layers(x)
        return Parameters(weights[:-1], weights[-1], output)

    @numpy_in_numpy_out
    def predict(self, x: PyTree, z: UserInput) -> Any:
        """Return N(z; x) for inputs (m,) or (m, p).

        Parameters
        ----------
        x : array
            All weights as one vector.
        z : array
            Inputs of shape (m,) or (m, p).

        Returns
        -------
        array
            One number for each input.
        """
        x, z = checks.floating("predict", "x", x), checks.floating("predict", "z", z)
        p, in_numpy = self.z.shape[1] - 1, not isinstance(self.activation, Custom)
        if not (in_numpy and is_numpy(x) and is_numpy(z)):  # else NumPy compiles nothing
            x, z = jnp.asarray(x), jnp.asarray(z)
        checks.shape("predict", "x", x, (self.dimension,))
        if z.ndim not in (1, 2) or (1 if z.ndim == 1 else z.shape[1]) != p:
            checks.fail("predict", "z", f"have shape (m,) or (m, {p})", f"shape {z.shape}")
        weights, output = self.layers(x)
        return self.activation(_with_one(z) @ weights)[0] @ output

    def layers(self, x: Data) -> tuple[Any, Any]:
        """Return the weights into the units (a row per input, then the biases) and out of them."""
        return x[: self.hidden].reshape(-1, self.width), x[self.hidden :]

    @numpy_in_numpy_out
    def value(self, x: PyTree) -> Any:
        weights, output = self.layers(jnp.asarray(checks.floating("ShallowNetwork", "x", x)))
        misfit = self.activation(self.z @ weights)[0] @ output - self.y
        return inner(misfit, misfit) / 2

    def evaluate(self, x: Vector) -> Evaluation:
        return self.from_features(x, self.features(x[: self.hidden]))

    def features(self, w: Vector) -> Features:
        """Return the features of the hidden weights w."""
        inside: Any = self.z @ w.reshape(-1, self.width)
        phi, slope, _ = self.activation(inside)
        return Features(inside, phi, slope)

    def from_features(self, x: Vector, features: Features) -> Evaluation:
        """Return the evaluation at x, whose features are known."""
        _, output = self.layers(x)
        _, phi, slope = features
        misfit = phi @ output - self.y
        back = misfit[:, None] * slope
        hidden = (self.z.T @ back * output).reshape(-1)
        gradient = array_namespace(x).concatenate([hidden, misfit @ phi])
        return Evaluation(x, inner(misfit, misfit) / 2, gradient, Activations(*features, misfit))

    def coordinate_derivatives(self, evaluation: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        """Return f_j' and f_j'' by updating the misfit, in chunks of samples of bounded memory."""
        _, output = self.layers(evaluation.x)
        (m, q), n = self.z.shape, self.width
        shift = (t - evaluation.x)[:, : self.hidden].reshape(-1, q, n, 1)
        a = output[:, None]
        # samples last and a node at a time: contiguous sums over arrays that stay in the cache
        z, inside, phi = self.z.T[:, None], evaluation.aux.inside.T, evaluation.aux.phi.T
        misfit = evaluation.aux.misfit

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

        size = max(1, min(m, BATCH_NUMBERS // (8 * self.hidden)))
        first, second = sum_of_parts(part, m, size, (z, inside, phi, misfit), self.shards)
        phi = evaluation.aux.phi
        squares = jnp.sum(phi * phi, 0)
        out_slope = (
            evaluation.gradient[self.hidden :] + squares * (t - evaluation.x)[:, self.hidden :]
        )
        out_curvature = jnp.broadcast_to(squares, (len(t), n))
        return (
            jnp.concatenate([first.reshape(len(t), -1), out_slope], 1),
            jnp.concatenate([second.reshape(len(t), -1), out_curvature], 1),
        )

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        change = self.z @ self.layers(d)[0]
        return NetworkLine(self, evaluation, d, slope_along(evaluation, d, slope), change)

    def curvature(self, evaluation: Evaluation) -> Curvature:
        """Return the Gauss-Newton matrix of the misfit."""
        xp = array_namespace(evaluation.x)
        _, output = self.layers(evaluation.x)
        _, phi, slope, misfit = evaluation.aux

        def times(v: Vector) -> Vector:
            weights_v, output_v = self.layers(v)
            along = (slope * (self.z @ weights_v)) @ output + phi @ output_v
            hidden = self.z.T @ (along[:, None] * slope * output)
            return xp.concatenate([hidden.reshape(-1), along @ phi])

        def diagonal() -> Vector:
            hidden = (self.z**2).T @ slope**2 * output**2
            return xp.concatenate([hidden.reshape(-1), (phi**2).sum(0)])

        def rows() -> JacobianRows:
            """dN/da_1 = a_3 phi' z, dN/da_2 = a_3 phi', dN/da_3 = phi."""
            return JacobianRows(xp.concatenate([self.hidden_rows(slope, output), phi], 1), misfit)

        def matrix() -> Matrix:
            J = rows().jacobian
            return J.T @ J

        def extra_damping() -> Vector:
            hidden = SATURATED * (self.z**2).sum(0)[:, None] * output**2
            return xp.concatenate([hidden.reshape(-1), xp.zeros_like(output)])

        return Curvature(
            times=times,
            diagonal=diagonal,
            shape=(len(self.z), self.dimension),
            rows=rows,
            matrix=matrix,
            residuals_at=lambda x: self.evaluate(x).aux.misfit,
            cost=1.0,
            product_cost=1.0,
            extra_damping=extra_damping,
        )

    def hidden_rows(self, slope: Data, output: Data) -> Any:
        """Return the derivatives of N in the hidden weights: dN/da_1 and dN/da_2."""
        inside = slope * output
        return (self.z[:, :, None] * inside[:, None]).reshape(len(self.z), -1)

    def on_host(self) -> ShallowNetwork | None:
        return None if isinstance(self.activation, Custom) or any_sharded(self) else to_numpy(self)

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        """Return the derivative of the gradient along v, without another pass of activations."""
        (_, output), (weights_v, output_v) = self.layers(evaluation.x), self.layers(v)
        inside, phi, slope, misfit = evaluation.aux
        _, _, curvature = self.activation(inside)
        inside_v = self.z @ weights_v
        phi_v = slope * inside_v
        misfit_v = phi_v @ output + phi @ output_v
        bend = (misfit_v[:, None] * slope + misfit[:, None] * curvature * inside_v) * output
        hidden = self.z.T @ (bend + misfit[:, None] * slope * output_v)
        return array_namespace(evaluation.x).concatenate(
            [hidden.reshape(-1), misfit_v @ phi + misfit @ phi_v]
        )


def _with_one(z: Data) -> Data:
    kit = jnp if isinstance(z, jax.Array) else np
    z = z[:, None] if z.ndim == 1 else z
    return kit.concatenate([z, kit.ones((len(z), 1), z.dtype)], 1)
