"""A table of every kind of objective, each with an independent implementation of its function.

`Case.fn` shares no code with the package: plain sums over samples and units, and other formulas for
the losses and activations. The data is asymmetric on purpose: columns of different sizes, both
signs, more and fewer samples than coefficients, weights that differ.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

import cfgd
from cfgd.objectives.base import hessian_diagonal

RNG = np.random.default_rng(20240607)
X = RNG.normal(size=(11, 4)) * [0.3, 1.1, 0.6, 0.9] + [0.1, -0.2, 0.3, 0.0]
X[RNG.random(X.shape) < 0.4] = 0.0  # so that a sparse matrix stores fewer entries
X[:, 2] += (np.arange(11) == 5) * 0.7
Y = RNG.normal(size=11) * 2
LABELS = (RNG.random(11) < 0.4).astype(float)
SIGNS = 2 * LABELS - 1
COUNTS = RNG.poisson(1.7, 11).astype(float)
WEIGHTS = RNG.uniform(0.2, 3, 11)
# how often to repeat each sample: 11 samples again, so that shapes and traces stay the same
REPEATS = np.array([2, 0, 1, 3, 1, 0, 1, 2, 1, 0, 0])
L2 = 0.37
W0 = np.array([0.7, -0.4, 1.2, -0.9])
FORMATS = {
    "dense": np.asarray,
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_matrix,
}


class Case(NamedTuple):
    objective: Any
    fn: Callable[[Any], Any]  # an independent implementation of the objective
    x: np.ndarray
    model: Callable[[Any], Any] | None = None  # the predictions, if f is |model - y|^2 / 2
    gauss_newton: bool = True  # whether there is the diagonal of a Gauss-Newton matrix


# independent implementations of the losses, of (prediction, target)
def squared(p, y):
    return p * p / 2 - p * y + y * y / 2


def logistic(p, y):
    return jnp.logaddexp(0, p) - y * p


def poisson(p, y):
    return jnp.exp(p) - y * p


def huber(p, y):
    near = jnp.clip(p - y, -1, 1)
    return near * (p - y) - near * near / 2


def rounded(p, y):
    """Return a loss that the package does not know and that is not symmetric in p - y."""
    return jnp.sqrt(1 + (p - y) ** 2) - 1 + 0.1 * jnp.exp(0.3 * p)


def rounded_reference(p, y):
    r = p - y
    return r**2 / (jnp.hypot(1.0, r) + 1) + 0.1 * jnp.exp(p) ** 0.3


class LossRow(NamedTuple):
    given: Any  # the argument `loss` of the package
    y: np.ndarray
    reference: Callable[[Any, Any], Any]
    reference_y: np.ndarray


LOSSES = {
    "squared": LossRow("squared", Y, squared, Y),
    "logistic 0/1": LossRow("logistic", LABELS, logistic, LABELS),
    "logistic -1/1": LossRow("logistic", SIGNS, logistic, LABELS),
    "poisson": LossRow("poisson", COUNTS, poisson, COUNTS),
    "huber": LossRow("huber", Y, huber, Y),
    "custom": LossRow(rounded, Y, rounded_reference, Y),
}


class SumOfLosses(eqx.Module):
    """A sum of losses; a module, so that functions with other numbers share one compilation."""

    loss: Callable[[Any, Any], Any]
    X: Any
    y: Any
    weights: Any
    l2: Any

    def __call__(self, w):
        predictions = jnp.sum(self.X * w, 1)
        return jnp.sum(self.weights * self.loss(predictions, self.y)) + self.l2 * jnp.sum(w**2) / 2


def sum_of_losses(loss, X, y, weights, l2):
    return SumOfLosses(
        loss, X, y, np.ones(len(y)) if weights is None else weights, np.asarray(l2, float)
    )


def linear(row, kind="dense", weights=None, l2=0.0):
    objective = cfgd.LinearModel(FORMATS[kind](X), row.y, row.given, l2, weights)
    return Case(objective, sum_of_losses(row.reference, X, row.reference_y, weights, l2), W0)


def least_squares(X, kind="dense", weights=None, l2=0.0):
    y = Y[: len(X)]
    weights = None if weights is None else weights[: len(X)]
    x = np.array([0.7, -0.4, 1.2, -0.9, 0.5])[: X.shape[1]]
    objective = cfgd.LeastSquares(FORMATS[kind](X), y, l2, weights)
    return Case(objective, sum_of_losses(squared, X, y, weights, l2), x)


WIDE = RNG.normal(size=(3, 5)) * [1.0, 0.4, 2.0, 0.7, 1.3]


# independent implementations of the activations
def swish(u):
    return u * jax.nn.sigmoid(u)


ACTIVATIONS = {
    "tanh": ("tanh", lambda u: 1 - 2 / (jnp.exp(2 * u) + 1)),
    "sigmoid": ("sigmoid", lambda u: 1 / (1 + jnp.exp(-u))),
    "softplus": ("softplus", lambda u: jnp.logaddexp(u, 0)),
    "sin": ("sin", lambda u: jnp.cos(u - np.pi / 2)),
    "custom": (swish, lambda u: u / (1 + jnp.exp(-u))),
}
Z = {1: np.linspace(-1.1, 1.3, 9) ** 3 + 0.2, 3: RNG.normal(size=(7, 3)) * [1.0, 0.5, 1.5]}
UNITS = {1: 4, 3: 2}
TARGETS = {1: np.sin(3 * Z[1]) + 0.1, 3: np.tanh(Z[3] @ [1.0, -2.0, 0.5]) + Z[3][:, 1]}


class Network(eqx.Module):
    """N(z_i; x) for all i; x holds p blocks a_1, then a_2, then a_3."""

    activation: Callable[[Any], Any]
    z: Any

    def __call__(self, x):
        z = self.z[:, None] if self.z.ndim == 1 else self.z
        *a_1, a_2, a_3 = jnp.split(x, z.shape[1] + 2)
        inside = a_2 + sum(jnp.outer(z[:, k], block) for k, block in enumerate(a_1))
        return jnp.sum(a_3 * self.activation(inside), 1)


class Misfit(eqx.Module):
    model: Callable[[Any], Any]
    y: Any

    def __call__(self, x):
        return jnp.sum((self.model(x) - self.y) ** 2) / 2


def network(activation, p):
    given, reference_fn = ACTIVATIONS[activation]
    model = Network(reference_fn, Z[p])
    x = np.random.default_rng(p).normal(size=(p + 2) * UNITS[p])
    return Case(
        objective=cfgd.ShallowNetwork(Z[p], TARGETS[p], UNITS[p], given),
        fn=Misfit(model, TARGETS[p]),
        x=x,
        model=model,
    )


A = np.array([[4.0, 1.5, -0.6], [1.5, 2.0, 0.4], [-0.6, 0.4, 1.0]])
B = np.array([1.0, -4.0, 0.7])


def wave(x):
    """Return a function that is no sum of losses and whose second derivatives are all nonzero."""
    return jnp.exp(0.4 * x[0] - 0.3 * x[1]) + x[0] ** 4 / 4 + x[0] * x[1] / 2 + x[1] ** 2


LINEAR = {
    f"{loss}, {kind}": linear(row, kind) for loss, row in LOSSES.items() for kind in FORMATS
} | {
    f"{loss}, {kind}, weights, l2": linear(LOSSES[loss], kind, WEIGHTS, L2)
    for loss in ("squared", "logistic 0/1", "poisson", "huber", "custom")
    for kind in ("dense", "csr")
}
SQUARES = {
    "least squares": least_squares(X),
    "least squares, weights, l2": least_squares(X, "dense", WEIGHTS, L2),
    "least squares, wide": least_squares(WIDE),
    "least squares, wide, weights, l2": least_squares(WIDE, "dense", WEIGHTS, L2),
    "least squares, csr, weights, l2": least_squares(X, "csr", WEIGHTS, L2),
    "least squares, csc, wide": least_squares(WIDE, "csc"),
}
NETWORKS = {
    f"network, {activation}, p = {p}": network(activation, p)
    for activation, p in [
        ("tanh", 1),
        ("tanh", 3),
        ("sigmoid", 3),
        ("softplus", 1),
        ("sin", 3),
        ("custom", 1),
    ]
}
OTHERS = {
    "quadratic": Case(
        cfgd.Quadratic(A, B, 1.5),
        lambda x: (
            sum(A[i, j] * x[i] * x[j] / 2 for i in range(3) for j in range(3))
            + jnp.sum(B * x)
            + 1.5
        ),
        np.array([1.0, -2.0, 1.5]),
        gauss_newton=False,
    ),
    "smooth": Case(cfgd.Smooth(wave), wave, np.array([1.6, -1.2]), gauss_newton=False),
}
CASES = LINEAR | SQUARES | NETWORKS | OTHERS


FAR = 3  # the row of `points_around` that is far away


def points_around(x):
    """Return points t on both sides of every x_j, near and far, and x itself."""
    mixed = np.where(np.arange(x.size) % 2, -1.0, 1.0)
    return np.stack([x, x + 0.3 * mixed, x - 0.7 * mixed, x + 5 * mixed, x - 4 * mixed, 0 * x])


def direction_and_steps(x):
    """Return a direction d and step sizes along it."""
    d = np.cos(1.0 + 2 * np.arange(x.size))
    etas = np.array([0.3, -0.2, 0.0, 1.1, 0.01])
    return d, etas


def steps_per_coordinate(x):
    """Return three rows of step sizes, one number for each coordinate."""
    return 0.4 * np.sin(np.arange(3 * x.size) + 1.0).reshape(3, -1)


def in_float64(fn, *args):
    """Return fn(*args) computed in float64, as NumPy arrays, whatever JAX is configured to."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, fn(*args))


def answers_of(objective, x, t, d, etas, each):
    """Return what a method asks of an objective, by name."""
    point = objective.evaluate(x)
    line = objective.line(point, d)
    moved, moved_each = line.to(etas[0]), line.to(each[0])
    computed = objective.evaluate(moved.x)
    slopes, curvatures = objective.coordinate_derivatives(point, t)
    has_gauss_newton = objective.traits.diagonal == "Gauss-Newton"
    return {
        "value": objective.value(x),
        "gradient": objective.gradient(x),
        "slopes": slopes,
        "curvatures": curvatures,
        "Hessian diagonal": hessian_diagonal(objective, point),
        "Gauss-Newton diagonal": objective.curvature(point).diagonal()
        if has_gauss_newton
        else None,
        "Hessian times d": objective.hessian_times(point, d),
        "line slope": line.slope,
        "line curvature": line.curvature(),
        "line values": line.values(etas),
        "line values, a step per coordinate": line.values(each),
        "line to": (moved.x, moved.value, moved.gradient),
        "line to, a step per coordinate": (moved_each.x, moved_each.value, moved_each.gradient),
        "evaluate": (point.x, point.value, point.gradient),
        "aux, updated and computed": (moved.aux, computed.aux),
    }


# what `reference_answers_of` returns
COMPARED = (
    *("value", "gradient", "slopes", "curvatures", "Hessian diagonal", "Gauss-Newton diagonal"),
    *("Hessian times d", "line slope", "line curvature", "line values"),
    *("line values, a step per coordinate", "line to", "line to, a step per coordinate"),
    "evaluate",
)


def batched_answers_of(objective, x, t, d, etas, each):
    """Return what is computed in batches of samples or coordinates."""
    point = objective.evaluate(x)
    slopes, curvatures = objective.coordinate_derivatives(point, t)
    values = objective.line(point, d).values(etas)
    return {"slopes": slopes, "curvatures": curvatures, "line values": values}


def reference_answers_of(fn, model, x, t, d, etas, each):
    """Return the answers of `answers_of` by automatic differentiation of the reference."""
    smooth = cfgd.Smooth(fn)
    both = jax.value_and_grad(fn)
    H = jax.hessian(fn)(x)
    slopes, curvatures = smooth.coordinate_derivatives(smooth.evaluate(x), t)
    return {
        "value": fn(x),
        "gradient": jax.grad(fn)(x),
        "slopes": slopes,
        "curvatures": curvatures,
        "Hessian diagonal": jnp.diagonal(H),
        "Gauss-Newton diagonal": jnp.diagonal(H)
        if model is None
        else jnp.sum(jax.jacobian(model)(x) ** 2, 0),
        "Hessian times d": H @ d,
        "line slope": jax.grad(fn)(x) @ d,
        "line curvature": d @ H @ d,
        "line values": jax.vmap(lambda eta: fn(x - eta * d))(etas),
        "line values, a step per coordinate": jax.vmap(lambda eta: fn(x - eta * d))(each),
        "line to": (x - etas[0] * d, *both(x - etas[0] * d)),
        "line to, a step per coordinate": (x - each[0] * d, *both(x - each[0] * d)),
        "evaluate": (x, *both(x)),
    }


def arguments(x):
    """Return the arguments of `answers_of` after the objective."""
    return x, points_around(x), *direction_and_steps(x), steps_per_coordinate(x)


compiled_answers = eqx.filter_jit(answers_of)
compiled_reference = eqx.filter_jit(reference_answers_of)


@functools.cache
def answers(name):
    """Return the answers of an objective of the table, compiled."""
    return in_float64(compiled_answers, CASES[name].objective, *arguments(CASES[name].x))


@functools.cache
def reference(name):
    """Return the same answers from the reference of that objective."""
    case = CASES[name]
    found = in_float64(compiled_reference, case.fn, case.model, *arguments(case.x))
    assert found.keys() == set(COMPARED)
    return found


TIGHT = 1e-11  # relative error of the structured objectives


def close(got, want, tolerance=TIGHT):
    """Assert equal shapes, and entries equal to `tolerance` times the largest one."""
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(
        got, want, rtol=0, atol=tolerance * (1 + np.max(np.abs(want), initial=0))
    )


def all_close(got, want, tolerance=TIGHT):
    """Assert that the leaves of two pytrees are close."""
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        close(one, other, tolerance)
