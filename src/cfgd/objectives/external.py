"""Functions that are not JAX: NumPy, or anything else that gives a value and a gradient."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from cfgd._core import checks
from cfgd._core.interruptible import interruptible
from cfgd._core.linalg import inner, is_numpy, symmetric_eigen
from cfgd._core.pytrees import Structure, checked_pytree, match_array_type
from cfgd._core.types import AnyArray, DType, Numbers, Scalar, Vector, Vectors
from cfgd.objectives.base import DerivativeCost, Objective, Traits, label_of
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation, Line, LineCosts, slope_along


@dataclasses.dataclass(frozen=True, eq=False)
class ExternalLine(Line):
    """A line whose values are computed together with gradients: the function is called once."""

    @property
    def costs(self) -> LineCosts:
        return LineCosts(value=self.objective.traits.value_cost)

    def values(self, etas: Numbers) -> Any:
        evaluate: Any = self.objective.evaluate
        x = self.evaluation.x
        if is_numpy(etas):
            return np.array([evaluate(x - eta * self.d).value for eta in etas])
        return jax.lax.map(lambda eta: evaluate(x - eta * self.d).value, etas)


class Remembered:
    """A function with a cache of one: called again with the same x, it returns the last result.

    The result is a copy, because a function may return the same buffer every time. Point and result
    are replaced together, so that runs in several threads can share the function.
    """

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn
        self.last: tuple[np.ndarray, Any] | None = None

    def at(self, structure: Structure | None, x: np.ndarray) -> Any:
        last = self.last
        if last is None or not np.array_equal(x, last[0]):
            last = np.array(x), copy.deepcopy(interruptible(self.fn, as_given(structure, x)))
            self.last = last
        return last[1]

    def __call__(self, x: np.ndarray) -> Any:
        return self.at(None, x)

    def __eq__(self, other: object) -> bool:
        # two objectives of the same functions are equal, whatever is in the cache
        return isinstance(other, Remembered) and self.fn == other.fn

    def __hash__(self) -> int:
        return hash(self.fn)


# Errors of functions that JAX called from a compiled loop, where they cannot be raised, by the
# number of the run: runs in several threads may share one compiled program. The loop looks for them
# after every program.
_errors: dict[int, BaseException] = {}
_run_numbers = itertools.count(1)
# the number for calls outside of runs
NO_RUN = 0


def for_one_run(objective: Any) -> tuple[Any, int]:
    """Return an objective whose functions report errors under a new number, and that number."""
    number = next(_run_numbers) % 2**32 or next(_run_numbers)

    def numbered(part: Any) -> Any:
        return part.in_run(number) if isinstance(part, External) else part

    is_external = lambda part: isinstance(part, External)  # noqa: E731
    return jax.tree.map(numbered, objective, is_leaf=is_external), number


def pop_error(run: int) -> BaseException | None:
    """Remove and return the error that a function raised inside a compiled loop of this run."""
    return _errors.pop(run, None)


class External(Objective):
    """f and its gradient from functions of NumPy arrays, called on the host.

    Give either one function that returns both, or one for each. `Auto`, `GradientDescent` and
    `Local(External(...), "exact")` work on it. Curvatures are differences of gradients, or those of
    `hessian`, a function that returns the matrix, dense or sparse: `Auto` then takes
    Levenberg-Marquardt steps on it where it can be factorised, in up to 1,250 dimensions. An error
    inside a function ends the run and is raised with the best point so far as its `solution`.

    A function gets a copy of x, into which it may write, and its result is copied: it may return
    the same buffer every time. `check_gradient` compares a gradient with differences.

    Parameters
    ----------
    value : callable
        A function of x that returns f(x), or, without `gradient`, f(x) and the gradient.
    gradient : callable, optional
        A function of x that returns the gradient.
    hessian : callable, optional
        A function of x that returns the matrix of second derivatives, dense or sparse.

    Raises
    ------
    ValueError
        If an argument is no function; when it is evaluated, if `value` does not return one number,
        `gradient` not one for each number in x, or `hessian` not a square matrix of that size.

    Examples
    --------
    >>> import cfgd, numpy as np
    >>> f = cfgd.External(lambda x: np.sum((x - 3) ** 4), lambda x: 4 * (x - 3) ** 3)
    >>> print(cfgd.minimize(f, [0.0, 1.0]).x.round(3))
    [3. 3.]
    """

    fn: Callable[[Any], Any]
    gradient_fn: Callable[[Any], Any] | None
    hessian_fn: Remembered | None
    structure: Structure | None = eqx.field(static=True)
    run: AnyArray  # number of the run that gets the errors; an array, so as not to be compiled in

    _internal: ClassVar[tuple[str, ...]] = (
        "fn",
        "gradient_fn",
        "hessian_fn",
        "in_run",
        "run",
        "structure",
    )

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
        self.structure = None
        self.run = np.asarray(NO_RUN, np.uint32)

    def _argument(self, name: str) -> Any:
        fn = {"value": self.fn, "gradient": self.gradient_fn, "hessian": self.hessian_fn}[name]
        return fn.fn if isinstance(fn, Remembered) else fn

    @property
    def traits(self) -> Traits:
        d = None if self.structure is None else self.structure.size
        has_hessian = self.hessian_fn is not None
        diagonal = 1.0 if has_hessian else 3.0  # a Hessian counts as d gradients
        return Traits(
            label_of(self),
            curvature="Hessian" if has_hessian else None,
            size=None if d is None else (d, d),
            runs_user_code=True,
            derivative_cost=DerivativeCost(per_coordinate=3.0),
            diagonal_cost=DerivativeCost(per_coordinate=diagonal),
        )

    def raveled(self, structure: Structure) -> External:
        """Return the same functions, called with the pytree that `structure` makes of a vector."""
        return self._with(structure=structure)

    def in_run(self, run: int) -> External:
        """Return the same functions, whose errors inside compiled loops are stored for a run."""
        return self._with(run=np.asarray(run, np.uint32))

    def _with(self, **changes: Any) -> External:
        other = object.__new__(type(self))
        for name, entry in {**vars(self), **changes}.items():
            object.__setattr__(other, name, entry)
        return other

    def check(self, owner: str, x: Vector) -> None:
        """Evaluate once, so that a wrong shape is found before any work."""
        self._call(np.asarray(x))

    def on_host(self) -> External:
        return self

    # ------------------------------------------------------------------ values and gradients

    def value(self, x: Any) -> Any:
        return float(self._call_with_tree(x)[0])

    def gradient(self, x: Any) -> Any:
        """Return the gradient at x; an error of a function is raised as it is."""
        if any(map(checks.is_traced, jax.tree.leaves(x))):
            return super().gradient(x)
        return self._call_with_tree(x)[1]

    def _call_with_tree(self, x: Any) -> tuple[np.ndarray, Any]:
        """Return the value, and the gradient in the form of x."""
        tree = checked_pytree(type(self).__name__, "x", x)
        structure = Structure.of(tree)
        if self.shape is not None and structure.shapes != (self.shape,):
            got = getattr(tree, "shape", "a pytree")
            checks.fail(type(self).__name__, "x", f"have shape {self.shape}", got)
        flat = self.raveled(structure)
        value, gradient = flat._call(np.asarray(structure.ravel(tree)))
        gradient = match_array_type(structure.unravel(gradient), tree)
        return value, structure.parameters(gradient)

    def evaluate(self, x: Vector) -> Evaluation:
        if is_numpy(x):
            value, gradient = self._call(x)
            return Evaluation(x, value[()], gradient)
        f = self.in_run(NO_RUN)  # without the traced number, which must not outlive the trace
        both = self._call_from_jax(lambda x: np.append(*f._call(x)), (1 + x.size,), x)
        return Evaluation(x, both[0], both[1:])

    def _call(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return value and gradient at a vector, checked and copied."""
        if self.gradient_fn is None:
            both = interruptible(self.fn, as_given(self.structure, x))
            if not isinstance(both, tuple | list) or len(both) != 2:
                wanted = "return f(x) and the gradient, as there is no function of the gradient"
                checks.fail("External", "value", wanted, checks.describe(both))
            value, gradient = both
            value = np.array(value, x.dtype)
        else:
            # a copy before the gradient is computed, which may use the same buffer
            value = np.array(interruptible(self.fn, as_given(self.structure, x)), x.dtype)
            gradient = interruptible(self.gradient_fn, as_given(self.structure, x))
        if value.shape != ():
            checks.fail("External", "value", "return a scalar", f"shape {value.shape}")
        return value, _as_vector("gradient", "a gradient", gradient, x)

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        return ExternalLine(self, evaluation, d, slope_along(evaluation, d, slope))

    def coordinate_derivatives(self, evaluation: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        """Return gradients where one coordinate is moved, and their central differences."""
        s, d = t.shape
        eps = jnp.finfo(t.dtype).eps

        def along(job: Any) -> tuple[Scalar, Scalar]:
            j, t_j = job
            h = eps ** (1 / 3) * jnp.maximum(jnp.abs(t_j), 1e-3)
            low, centre, high = (
                self.evaluate(evaluation.x.at[j].set(t_j + shift)).gradient[j]
                for shift in (-h, 0.0, h)
            )
            return centre, (high - low) / (2 * h)

        jobs = jnp.tile(jnp.arange(d), s), t.reshape(-1)
        slopes, curvatures = jax.lax.map(along, jobs)
        return slopes.reshape(s, d), curvatures.reshape(s, d)

    # ------------------------------------------------------------------ curvature

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        if self.hessian_fn is not None:
            f = self.in_run(NO_RUN)
            return self._call_from_jax(lambda x, v: f._hessian(x) @ v, v.shape, evaluation.x, v)
        size = jnp.sqrt(inner(v, v))
        reach = jnp.maximum(jnp.sqrt(inner(evaluation.x, evaluation.x)), 1e-3)
        h = jnp.finfo(v.dtype).eps ** (1 / 3) * reach / jnp.where(size > 0, size, 1)
        ahead, behind = self.evaluate(evaluation.x + h * v), self.evaluate(evaluation.x - h * v)
        return (ahead.gradient - behind.gradient) / (2 * h)

    def curvature(self, evaluation: Evaluation) -> Curvature | None:
        """Return the Hessian; where it is indefinite, with the absolute values of its eigenvalues.

        Steps on that matrix leave saddles.
        """
        x, f = evaluation.x, self.in_run(NO_RUN)
        if self.hessian_fn is None:
            return None
        call = self._call_from_jax
        return Curvature(
            times=lambda v: self.hessian_times(evaluation, v),
            diagonal=lambda: call(lambda x: f._hessian(x).diagonal(), x.shape, x),
            shape=2 * x.shape,
            matrix=lambda: call(lambda x: _positive(f._hessian(x)), 2 * x.shape, x),
            cost=float(x.size),
        )

    def _hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the Hessian at a vector, checked and symmetric."""
        assert self.hessian_fn is not None
        H = dense(self.hessian_fn.at(self.structure, x), x.dtype)
        if H.shape != 2 * x.shape:
            checks.fail("External", "hessian", f"return a matrix {2 * x.shape}", H.shape)
        return (H + H.T) / 2

    def _call_from_jax(
        self, fn: Callable[..., np.ndarray], shape: tuple[int, ...], *given: Any
    ) -> Any:
        return call_from_jax(fn, shape, self.run, *given)


def call_from_jax(
    fn: Callable[..., np.ndarray], shape: tuple[int, ...], run: Any, *given: Any
) -> Any:
    """Call fn with vectors: at once for NumPy arrays, by a callback for JAX arrays.

    Inside the callback of a run an error cannot be raised: it is stored for `pop_error`, and the
    result is NaN. Outside of runs JAX raises its own error, which contains the text of this one.
    """
    if is_numpy(given[0]):
        return fn(*given)
    dtype = given[0].dtype
    # as words of 32 bits: JAX calls from another thread, where float64 would be rounded
    words = [jax.lax.bitcast_convert_type(x, jnp.uint32) for x in given]
    back = jax.ShapeDtypeStruct((*shape, *words[0].shape[1:]), jnp.uint32)

    def called(run: Any, *words: Any) -> np.ndarray:
        vectors = (np.asarray(word).view(dtype).reshape(-1) for word in words)
        try:
            # after an error the program runs to its end without calling the function again
            answer = np.full(shape, np.nan, dtype) if int(run) in _errors else fn(*vectors)
        except BaseException as error:  # KeyboardInterrupt and SystemExit, too
            if int(run) == NO_RUN:
                raise
            _errors.setdefault(int(run), error)  # the first one is the cause of later ones
            answer = np.full(shape, np.nan, dtype)
        return np.ascontiguousarray(answer).view(np.uint32).reshape(back.shape)

    number = jnp.asarray(run, jnp.uint32)
    answer = jax.pure_callback(called, back, number, *words, vmap_method="sequential")
    return jax.lax.bitcast_convert_type(answer, dtype)


def _positive(H: np.ndarray) -> np.ndarray:
    """Return H with absolute eigenvalues, in coordinates in which its diagonal is 1."""
    size = np.sqrt(abs(H.diagonal()))
    root = np.where(size > 0, size, 1)
    scaled = H / root / root[:, None]
    try:
        np.linalg.cholesky(scaled)
        return H
    except np.linalg.LinAlgError:
        values, vectors = symmetric_eigen(scaled)
        return (vectors * abs(values)) @ vectors.T * root * root[:, None]


def dense(matrix: Any, dtype: DType) -> np.ndarray:
    """Return a matrix, perhaps sparse, as an array."""
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix, dtype)


def as_given(structure: Structure | None, x: np.ndarray) -> Any:
    """Return a copy of x in the form of the user's x0, into which the user may write."""
    x = np.array(x)
    return x if structure is None or structure.is_vector else structure.unravel(x)


def _as_vector(field: str, what: str, given: Any, x: np.ndarray) -> np.ndarray:
    """Return a copy of the result of a function, as a vector like x."""
    if type(given) is np.ndarray:
        vector = np.array(given, x.dtype).reshape(-1)
    else:
        leaves = jax.tree.leaves(given)
        vector = np.concatenate([np.ravel(np.asarray(leaf, x.dtype)) for leaf in leaves])
    if vector.shape != x.shape:
        checks.fail("External", field, f"return {what} of {x.size} numbers", vector.size)
    return vector
