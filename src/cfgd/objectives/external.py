"""A function that is not JAX: NumPy, or anything else that gives a value and a gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from cfgd._core import checks
from cfgd._core.either import Unbound, eigenvalues, on_host, replaced
from cfgd._core.linalg import inner
from cfgd._core.pytrees import Structure, checked_pytree
from cfgd._core.types import DType, Numbers, Scalar, Vector, Vectors
from cfgd.objectives.base import Objective, Sight
from cfgd.objectives.curvature import Normal, is_affordable, normal_of
from cfgd.objectives.evaluation import Evaluation, Line, slope_along


class ExternalLine(Line):
    """A value is asked for together with its gradient: the function is called once."""

    def values(self, etas: Numbers) -> Any:
        at: Any = self.objective.evaluate
        if on_host(etas):
            return np.array([at(self.point.x - eta * self.d).value for eta in etas])
        return jax.lax.map(lambda eta: at(self.point.x - eta * self.d).value, etas)


class Remembered:
    """A function that is asked again where it was asked last, as at the end, is called once."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn
        self.x: Any = None
        self.answer: Any = None

    def at(self, structure: Structure | None, x: np.ndarray) -> Any:
        if self.x is None or not np.array_equal(x, self.x):
            self.x = None  # an error leaves nothing
            self.answer = self.fn(as_given(structure, x))
            self.x = np.array(x)
        return self.answer

    def __call__(self, x: np.ndarray) -> Any:
        return self.at(None, x)


# What functions raised on the host, where nobody listens: a run asks after every chunk.
raised: list[Exception] = []


class External(Objective):
    """f and its gradient from functions of NumPy arrays, called on the host.

    Either one function that returns both, or one for each. `Auto`, `GradientDescent` and
    `Local(External(...), "exact")` work on it. Curvatures are differences of gradients, or those of
    `hessian`, a function that returns the matrix, dense or sparse: `Auto` then takes Tikhonov steps
    on it where it can be factored, in up to 1,250 dimensions. An error inside a function ends the
    run and goes up, with the best point so far as its `solution`.

    >>> import cfgd, numpy as np
    >>> f = cfgd.External(lambda x: np.sum((x - 3) ** 4), lambda x: 4 * (x - 3) ** 3)
    >>> print(cfgd.minimize(f, [0.0, 1.0]).x.round(3))
    [3. 3.]
    """

    fn: Callable[[Any], Any]
    gradient_fn: Callable[[Any], Any] | None
    hessian_fn: Remembered | None
    structure: Structure | None = eqx.field(static=True)
    factor: float = eqx.field(static=True)  # f is so many times what the functions say

    def __init__(
        self,
        value: Callable[[Any], Any],
        gradient: Callable[[Any], Any] | None = None,
        hessian: Callable[[Any], Any] | None = None,
    ) -> None:
        checks.function("External", "value", value, "be a function of x")
        if gradient is not None:
            checks.function("External", "gradient", gradient, "be a function of x")
        if hessian is not None:
            checks.function("External", "hessian", hessian, "be a function of x")
        self.fn, self.gradient_fn = value, gradient
        self.hessian_fn = None if hessian is None else Remembered(hessian)
        self.structure, self.factor = None, 1.0

    def raveled(self, structure: Structure) -> External:
        """The same functions, called with what `structure` makes of a vector."""
        return replaced(self, structure=structure)

    def times(self, factor: Any) -> External:
        return replaced(self, factor=self.factor * float(factor))

    def check(self, owner: str, x: Vector) -> None:
        """Look once, so that a wrong shape is seen before any work."""
        raised.clear()
        self.on_host(np.asarray(x))
        error = self.error()
        if error is not None:
            raise error

    @property
    def is_plain(self) -> bool:
        return True

    @property
    def sight(self) -> Sight:
        # bound once: equinox would do it at every call
        look = partial(_seen, self.fn, self.gradient_fn, self.structure, self.factor)

        def seen(x: Any) -> tuple[np.ndarray, np.ndarray, None] | None:
            value, gradient = look(np.asarray(x))
            return None if raised else (value, gradient, None)

        return seen

    def error(self) -> Exception | None:
        return raised.pop() if raised else None

    def on_host(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value and gradient at a vector; NaN where the function raised."""
        return _seen(self.fn, self.gradient_fn, self.structure, self.factor, x)

    def evaluate(self, x: Vector) -> Evaluation:
        both = asked(lambda x: np.append(*self.on_host(x)), (1 + x.size,), x)
        return Evaluation(x, both[0], both[1:])

    def value(self, x: Any) -> Any:
        tree = checked_pytree("External", "x", x)
        structure = Structure.of(tree)
        return float(self.raveled(structure).on_host(np.asarray(structure.ravel(tree)))[0])

    def line(self, point: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        return ExternalLine(self, point, d, slope_along(point, d, slope))

    # ------------------------------------------------------------------ curvature

    def hessian_on_host(self, x: np.ndarray) -> np.ndarray:
        """H; NaN where the function raised."""
        return _matrix(self.hessian_fn, self.structure, self.factor, x)

    def hessian_times(self, point: Evaluation, v: Vector) -> Vector:
        if self.hessian_fn is not None:
            return asked(lambda x, v: self.hessian_on_host(x) @ v, v.shape, point.x, v)
        size = jnp.sqrt(inner(v, v))
        reach = jnp.maximum(jnp.sqrt(inner(point.x, point.x)), 1e-3)
        h = jnp.finfo(v.dtype).eps ** (1 / 3) * reach / jnp.where(size > 0, size, 1)
        ahead, behind = self.evaluate(point.x + h * v), self.evaluate(point.x - h * v)
        return (ahead.gradient - behind.gradient) / (2 * h)

    def diagonal_at(self, point: Evaluation) -> Vector:
        if self.hessian_fn is None:
            return super().diagonal_at(point)
        return asked(lambda x: self.hessian_on_host(x).diagonal(), point.x.shape, point.x)

    def coordinate_derivatives(self, point: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        s, d = t.shape
        eps = jnp.finfo(t.dtype).eps

        def along(job: Any) -> tuple[Scalar, Scalar]:
            j, t_j = job
            h = eps ** (1 / 3) * jnp.maximum(jnp.abs(t_j), 1e-3)
            low, here, high = (
                self.evaluate(point.x.at[j].set(t_j + shift)).gradient[j]
                for shift in (-h, 0 * h, h)
            )
            return here, (high - low) / (2 * h)

        jobs = jnp.tile(jnp.arange(d), s), t.reshape(-1)
        slopes, curvatures = jax.lax.map(along, jobs)
        return slopes.reshape(s, d), curvatures.reshape(s, d)

    def slopes_cost(self, s: int, d: int) -> float:
        return 3.0 * s * d

    def diagonal_cost(self, d: int) -> float:
        return super().diagonal_cost(d) if self.hessian_fn is None else float(d)

    # ------------------------------------------------------------------ the Hessian as a model

    @property
    def has_hessian(self) -> bool:
        return self.hessian_fn is not None

    @property
    def has_model(self) -> bool:
        d = None if self.structure is None else self.structure.size
        return self.hessian_fn is not None and d is not None and is_affordable((d, d))

    def in_numpy(self) -> Unbound | None:
        return Unbound(self) if self.has_model else None

    def model_shape(self, point: Evaluation) -> tuple[int, ...] | None:
        return point.x.size, point.x.size

    def normal(self, point: Evaluation, old: Vector) -> Normal:
        """Of the Hessian; where it is not positive, of its absolute value, which leaves saddles."""
        H = asked(lambda x: _positive(self.hessian_on_host(x)), 2 * point.x.shape, point.x)
        return normal_of(H, old)

    def model_times(self, point: Evaluation, v: Vector) -> Vector:
        return self.hessian_times(point, v)

    def gauss_newton_diagonal(self, point: Evaluation) -> Vector:
        return self.diagonal_at(point)


def asked(fn: Callable[..., np.ndarray], shape: tuple[int, ...], *given: Any) -> Any:
    """fn of vectors: called at once on the host, and by JAX where it computes with them."""
    if on_host(given[0]):
        return fn(*given)
    dtype = given[0].dtype
    # as words of 32 bits: JAX calls from a thread of its own, where float64 would be rounded
    words = [jax.lax.bitcast_convert_type(x, jnp.uint32) for x in given]
    back = jax.ShapeDtypeStruct((*shape, *words[0].shape[1:]), jnp.uint32)

    def called(*words: Any) -> np.ndarray:
        vectors = (np.asarray(word).view(dtype).reshape(-1) for word in words)
        return np.ascontiguousarray(fn(*vectors)).view(np.uint32).reshape(back.shape)

    answer = jax.pure_callback(called, back, *words, vmap_method="sequential")
    return jax.lax.bitcast_convert_type(answer, dtype)


def _positive(H: np.ndarray) -> np.ndarray:
    """H with the absolute values of its eigenvalues, in coordinates in which its diagonal is 1."""
    size = np.sqrt(abs(H.diagonal()))
    root = np.where(size > 0, size, 1)
    scaled = H / root / root[:, None]
    try:
        np.linalg.cholesky(scaled)
        return H
    except np.linalg.LinAlgError:
        values, vectors = eigenvalues(scaled)
        return (vectors * abs(values)) @ vectors.T * root * root[:, None]


def _seen(
    value_fn: Callable[[Any], Any],
    gradient_fn: Callable[[Any], Any] | None,
    structure: Structure | None,
    factor: float,
    x: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Value and gradient at a vector; NaN where the function raised."""
    try:
        if gradient_fn is None:
            value, gradient = value_fn(as_given(structure, x))
        else:
            value, gradient = value_fn(as_given(structure, x)), gradient_fn(as_given(structure, x))
        value = np.asarray(value, x.dtype)
        if value.shape != ():
            checks.fail("External", "value", "return a scalar", f"shape {value.shape}")
        gradient = _vector("gradient", "a gradient", gradient, x)
        return (value, gradient) if factor == 1 else (np.asarray(factor * value), factor * gradient)
    except Exception as error:
        raised.append(error)
        return np.asarray(np.nan, x.dtype), np.full_like(x, np.nan)


def _matrix(
    hessian_fn: Any, structure: Structure | None, factor: float, x: np.ndarray
) -> np.ndarray:
    """The Hessian at a vector; NaN where the function raised."""
    try:
        H = dense(hessian_fn.at(structure, x), x.dtype)
        if H.shape != 2 * x.shape:
            checks.fail("External", "hessian", f"return a matrix {2 * x.shape}", H.shape)
        return factor * (H + H.T) / 2
    except Exception as error:
        raised.append(error)
        return np.full(2 * x.shape, np.nan, x.dtype)


def dense(matrix: Any, dtype: DType) -> np.ndarray:
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix, dtype)


def as_given(structure: Structure | None, x: np.ndarray) -> Any:
    """x as the user gave it, and his own: he may write into it."""
    x = np.array(x)
    return x if structure is None or structure.is_vector else structure.unravel(x)


def _vector(field: str, what: str, given: Any, x: np.ndarray) -> np.ndarray:
    """What a function returned, as a vector like x."""
    if type(given) is np.ndarray:
        vector = np.asarray(given, x.dtype).reshape(-1)
    else:
        leaves = jax.tree.leaves(given)
        vector = np.concatenate([np.ravel(np.asarray(leaf, x.dtype)) for leaf in leaves])
    if vector.shape != x.shape:
        checks.fail("External", field, f"return {what} of {x.size} numbers", vector.size)
    return vector
