"""A function that is not JAX: NumPy, or anything else that gives a value and a gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd import _check
from cfgd.algebra import inner
from cfgd.objective.base import Objective, Sight
from cfgd.objective.line import Line, Point, slope_along
from cfgd.structure import Structure, as_tree
from cfgd.types import Numbers, Scalar, Vector, Vectors


class ExternalLine(Line):
    """A value is asked for together with its gradient: the function is called once."""

    def values(self, etas: Numbers) -> Numbers:
        at = self.objective.at
        return jax.lax.map(lambda eta: at(self.point.x - eta * self.d).value, etas)


# What functions raised on the host, where nobody listens: a run asks after every chunk.
_raised: list[Exception] = []


class External(Objective):
    """f and its gradient from functions of NumPy arrays, called on the host.

    Either one function that returns both, or one for each. `Auto`, `GradientDescent` and
    `Local(External(...), "exact")` work on it; curvatures are differences of gradients. An error
    inside the function ends the run and goes up, with the best point so far as its `solution`.

    >>> import cfgd, numpy as np
    >>> f = cfgd.External(lambda x: np.sum((x - 3) ** 4), lambda x: 4 * (x - 3) ** 3)
    >>> print(cfgd.minimize(f, [0.0, 1.0]).x.round(3))
    [3. 3.]
    """

    fn: Callable[[Any], Any]
    gradient_fn: Callable[[Any], Any] | None
    structure: Structure | None = eqx.field(static=True)

    def __init__(
        self,
        value: Callable[[Any], Any],
        gradient: Callable[[Any], Any] | None = None,
        *,
        _structure: Structure | None = None,
    ) -> None:
        _check.function("External", "value", value, "be a function of x")
        if gradient is not None:
            _check.function("External", "gradient", gradient, "be a function of x")
        self.fn, self.gradient_fn, self.structure = value, gradient, _structure

    def flat(self, structure: Structure) -> External:
        """The same functions, called with what `structure` makes of a vector."""
        return External(self.fn, self.gradient_fn, _structure=structure)

    def check(self, owner: str, x: Vector) -> None:
        """Look once, so that a wrong shape is seen before any work."""
        _raised.clear()
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
        look = partial(_called, self.fn, self.gradient_fn, self.structure)

        def seen(x: Any) -> tuple[np.ndarray, np.ndarray, None] | None:
            value, gradient = look(np.asarray(x))
            return None if _raised else (value, gradient, None)

        return seen

    def error(self) -> Exception | None:
        return _raised.pop() if _raised else None

    def on_host(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value and gradient at a vector; NaN where the function raised."""
        return _called(self.fn, self.gradient_fn, self.structure, x)

    def at(self, x: Vector) -> Point:
        # as words of 32 bits: JAX calls from a thread of its own, where float64 would be rounded
        words = jax.lax.bitcast_convert_type(x, jnp.uint32)
        shape = jax.ShapeDtypeStruct((1 + x.size, *words.shape[1:]), jnp.uint32)

        def called(words: Any) -> np.ndarray:
            value, gradient = self.on_host(np.asarray(words).view(x.dtype).reshape(x.shape))
            return np.append(value, gradient).view(np.uint32).reshape(shape.shape)

        both = jax.pure_callback(called, shape, words, vmap_method="sequential")
        both = jax.lax.bitcast_convert_type(both, x.dtype)
        return Point(x, both[0], both[1:])

    def value(self, x: Any) -> Any:
        tree = as_tree("External", "x", x)
        structure = Structure.of(tree)
        return float(self.flat(structure).on_host(np.asarray(structure.ravel(tree)))[0])

    def line(self, point: Point, d: Vector, slope: Scalar | None = None) -> Line:
        return ExternalLine(self, point, d, slope_along(point, d, slope))

    def hessian_times(self, point: Point, v: Vector) -> Vector:
        size = jnp.sqrt(inner(v, v))
        reach = jnp.maximum(jnp.sqrt(inner(point.x, point.x)), 1e-3)
        h = jnp.finfo(v.dtype).eps ** (1 / 3) * reach / jnp.where(size > 0, size, 1)
        ahead, behind = self.at(point.x + h * v), self.at(point.x - h * v)
        return (ahead.gradient - behind.gradient) / (2 * h)

    def slopes(self, point: Point, t: Vectors) -> tuple[Vectors, Vectors]:
        s, d = t.shape
        eps = jnp.finfo(t.dtype).eps

        def along(job: Any) -> tuple[Scalar, Scalar]:
            j, t_j = job
            h = eps ** (1 / 3) * jnp.maximum(jnp.abs(t_j), 1e-3)
            low, here, high = (
                self.at(point.x.at[j].set(t_j + shift)).gradient[j] for shift in (-h, 0 * h, h)
            )
            return here, (high - low) / (2 * h)

        jobs = jnp.tile(jnp.arange(d), s), t.reshape(-1)
        slopes, curvatures = jax.lax.map(along, jobs)
        return slopes.reshape(s, d), curvatures.reshape(s, d)

    def slopes_cost(self, s: int, d: int) -> float:
        return 3.0 * s * d


def _called(
    value_fn: Callable[[Any], Any],
    gradient_fn: Callable[[Any], Any] | None,
    structure: Structure | None,
    x: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Value and gradient at a vector; NaN where the function raised."""
    x = np.array(x)  # the user's own: he may write into it
    at = x if structure is None or structure.is_vector else structure.unravel(x)
    try:
        if gradient_fn is None:
            value, gradient = value_fn(at)
        else:
            value, gradient = value_fn(at), gradient_fn(at)
        if type(gradient) is np.ndarray:
            gradient = np.asarray(gradient, x.dtype).reshape(-1)
        else:
            leaves = jax.tree.leaves(gradient)
            gradient = np.concatenate([np.ravel(np.asarray(leaf, x.dtype)) for leaf in leaves])
        value = np.asarray(value, x.dtype)
        if value.shape != ():
            _check.fail("External", "value", "return a scalar", f"shape {value.shape}")
        if gradient.shape != x.shape:
            wanted = f"return a gradient of {x.size} numbers"
            _check.fail("External", "gradient", wanted, gradient.size)
        return value, gradient
    except Exception as error:
        _raised.append(error)
        return np.asarray(np.nan, x.dtype), np.full_like(x, np.nan)
