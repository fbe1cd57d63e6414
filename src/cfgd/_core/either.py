"""One formula for two computers: JAX where a loop is compiled, NumPy where it runs right here.

Compiling a step takes seconds and NumPy's step a tenth of a millisecond: for a function that is
looked at a hundred times the latter is what users wait less for. On the host flags are NumPy's
booleans, and decide at once which branch is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import lapack

from cfgd._core.types import Flag, Vector

T = TypeVar("T")


HOST = (np.ndarray, np.generic)
# columns that LAPACK reflects at once
BLOCK = 64


def on_host(x: Any) -> bool:
    return isinstance(x, HOST)


def space(x: Any) -> Any:
    """The module whose functions take x."""
    return np if isinstance(x, HOST) else jnp


def chosen(flag: Flag, new: T, old: T) -> T:
    """One of two trees of the same structure."""
    if isinstance(flag, np.bool_):
        return new if flag else old
    return jax.tree.map(lambda a, b: jnp.where(flag, a, b), new, old)


def branch(flag: Flag, then: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """What one of two functions gives."""
    if isinstance(flag, np.bool_):
        return then() if flag else otherwise()
    return jax.lax.cond(flag, then, otherwise)


def smaller(a: T, b: T) -> T:
    """Of two numbers; NumPy's own function is made for arrays."""
    return chosen(a < b, a, b)  # type: ignore[operator]


def masked(flag: Flag, v: Vector) -> Vector:
    """v, or zeros."""
    if isinstance(flag, np.bool_):
        return v if flag else np.zeros_like(v)
    return v * flag


def repeat(goes: Callable[[T], Flag], once: Callable[[T], T], at: T, on_host: bool) -> T:
    """`once` again and again, while `goes` says so."""
    if not on_host:
        return jax.lax.while_loop(goes, once, at)
    while goes(at):
        at = once(at)
    return at


def mapped(fn: Callable[[Any], Any], rows: Any) -> Any:
    """`fn` of every row, as one batch."""
    return np.array([fn(row) for row in rows]) if on_host(rows) else jax.vmap(fn)(rows)


def put(rows: Any, j: Any, row: Any) -> Any:
    """`rows` with row j replaced; on the host in place, for they may be large."""
    if not on_host(rows):
        return rows.at[j].set(row)
    rows[j] = row
    return rows


def kept_rows(rows: Any, keep: Any) -> Any:
    """`rows` with zeros in place of those that are not kept; on the host in place."""
    if not on_host(rows):
        return keep[:, None] * rows
    rows[~keep] = 0
    return rows


def shifted(R: Any, column: Any, corner: Any) -> Any:
    """A triangle without its first row and column, and with one more of each at the end.

    On the host in place, as above.
    """
    if on_host(R):
        R[:-1, :-1], R[:, -1], R[-1, -1] = R[1:, 1:], column, corner
        return R
    new = jnp.zeros_like(R).at[:-1, :-1].set(R[1:, 1:])
    return new.at[:, -1].set(column).at[-1, -1].set(corner)


class Plain:
    """Beside an equinox module without methods: attributes are read as of any object, at once."""

    __getattribute__ = object.__getattribute__


class Unbound:
    """An equinox module as any object: attributes are read at once, and methods are bound once.

    So are modules among its fields.
    """

    def __init__(self, module: Any) -> None:
        self._kind = type(module)
        for name, field in vars(module).items():
            self.__dict__[name] = Unbound(field) if isinstance(field, eqx.Module) else field

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._kind, name)
        if isinstance(found, property):
            assert found.fget is not None
            found = found.fget(self)
        elif callable(found):
            found = partial(found, self)
        self.__dict__[name] = found
        return found


def made(cls: type[T], **fields: Any) -> T:
    """An equinox module; its own constructor takes longer than a step on the host."""
    new = object.__new__(cls)
    new.__dict__.update(fields)
    return new


def replaced(module: T, **fields: Any) -> T:
    """The module with other values in some fields."""
    return made(type(module), **(module.__dict__ | fields))


# ------------------------------------------------------------------ linear algebra


def triangular_solved(R: Any, b: Vector, transposed: bool = False) -> Vector:
    """R^-1 b or R'^-1 b for an upper triangular R."""
    if on_host(R):
        return _of(R, "trtrs")(R, b, trans=int(transposed))[0]
    solve = jax.lax.linalg.triangular_solve
    return solve(R, b[:, None], left_side=True, transpose_a=transposed)[:, 0]


def reflected(A: Any) -> tuple[Any, Any]:
    """QR of A, in LAPACK's form: R above, reflections below, and their factors. On the host."""
    found = _of(A, "geqrf")(A, lwork=BLOCK * A.shape[1], overwrite_a=1)
    return found[0], found[1]


def basis(reflections: Any, tau: Any) -> Any:
    """The columns of Q that they make."""
    return _of(tau, "orgqr")(reflections, tau, lwork=BLOCK * len(tau))[0]


def raised(A: Any, by: Any) -> Any:
    """A with so much more on its diagonal."""
    if not on_host(A):
        return A + by * jnp.eye(len(A), dtype=A.dtype)
    new = A.copy()
    new.flat[:: len(A) + 1] += by
    return new


def factored(A: Any) -> Callable[[Any], Any]:
    """b -> A^-1 b for a symmetric positive definite A; NaN where it is not."""
    if not on_host(A):
        L = jnp.linalg.cholesky(A, symmetrize_input=False)
        return lambda b: jax.scipy.linalg.cho_solve((L, True), b)
    triangle, failed = _of(A, "potrf")(A, lower=1, clean=0)
    if failed:
        return lambda b: np.full_like(b, np.nan)
    return lambda b: _of(A, "potrs")(triangle, b, lower=1)[0]


def eigenvalues(A: Any) -> tuple[Any, Any]:
    """Of a symmetric matrix, ascending, with their vectors; NaN where there are none."""
    if not on_host(A):
        return jnp.linalg.eigh(A, symmetrize_input=False)
    if not np.all(np.isfinite(A)):
        return np.full_like(A[0], np.nan), np.full_like(A, np.nan)
    values, vectors = np.linalg.eigh(A)
    return values, vectors


def _of(A: Any, name: str) -> Any:
    return _ROUTINES[A.dtype.char, name]


_ROUTINES = {
    (char, name): getattr(lapack, letter + name)
    for char, letter in (("f", "s"), ("d", "d"))
    for name in ("trtrs", "potrf", "potrs", "geqrf", "orgqr")
}
