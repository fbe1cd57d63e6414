"""Rules for the terminal c_k, the point where the memory starts.

Only these rules store earlier points of a run.

>>> import cfgd
>>> print(cfgd.terminal.Lagged(2).is_moving, cfgd.terminal.Fixed(0.0).is_moving)
True False
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd._core import checks
from cfgd._core.arrays import own
from cfgd._core.pytrees import checked_pytree
from cfgd._core.types import Count, UserInput, Vector, Vectors
from cfgd.methods.paper.settings import Rule, point, points

__all__ = ["CurrentPoint", "Fixed", "Lagged", "Terminal"]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__


class Terminal(Rule):
    """Base class of rules for the terminal.

    A subclass defines `init`, which returns the memory at the start of a run, and `next`, which
    returns c_k and the memory of the next iteration. It sets `is_gradient` or `is_fixed` to True
    if that holds.

    Attributes
    ----------
    is_gradient : bool
        Whether c_k = x_k, so that the direction is the gradient.
    is_fixed : bool
        Whether c_k does not depend on x_k, so that a run converges to a Tikhonov solution.
    is_moving : bool
        Whether c_k depends on x_k and differs from it: neither of the two above.

    Examples
    --------
    >>> import cfgd
    >>> class Half(cfgd.terminal.Terminal):  # half way to the origin
    ...     def init(self, x0):
    ...         return None
    ...     def next(self, memory, x, k):
    ...         return x / 2, memory
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> method = cfgd.Fractional(Half(), cfgd.order.Constant(gamma=-0.5), cfgd.ExactStep())
    >>> print(cfgd.minimize(f, [1.0, -10.0], method).success)
    True
    """

    is_gradient: ClassVar[bool] = False
    is_fixed: ClassVar[bool] = False

    _internal: ClassVar[tuple[str, ...]] = ("forget", "init", "next")

    @property
    def is_moving(self) -> bool:
        """Whether c_k moves with x_k, and differs from it."""
        return not (self.is_gradient or self.is_fixed)

    @abc.abstractmethod
    def init(self, x0: Vector) -> Any:
        """Return the memory at the start of a run from x0."""

    @abc.abstractmethod
    def next(self, memory: Any, x: Vector, k: Count) -> tuple[Vector, Any]:
        """Return c_k for x = x_k, and the memory of iteration k + 1."""

    def forget(self, memory: Any, x: Vector) -> Any:
        """Return the memory of a run that restarts from x."""
        return self.init(x)


class CurrentPoint(Terminal):
    """c_k = x_k, without memory: the direction is the gradient.

    >>> import cfgd
    >>> print(cfgd.terminal.CurrentPoint().is_gradient)
    True
    """

    is_gradient: ClassVar[bool] = True

    def init(self, x0: Vector) -> None:
        return None

    def next(self, memory: None, x: Vector, k: Count) -> tuple[Vector, None]:
        return x, memory


Here = CurrentPoint  # the name in earlier versions


class Fixed(Terminal):
    """c_k = c for all k (sections 3.1 and 3.3 of the paper).

    Parameters
    ----------
    terminal : number, array or pytree
        The terminal c: of the structure of x0, or one number for all coordinates.

    Attributes
    ----------
    point : number, array or pytree
        A copy of the terminal.

    Examples
    --------
    >>> import cfgd
    >>> print(cfgd.terminal.Fixed([1.0, 2.0]).point, cfgd.terminal.Fixed(0.0).is_fixed)
    [1. 2.] True
    """

    point: Any = point()
    is_fixed: ClassVar[bool] = True

    def __init__(self, terminal: UserInput) -> None:
        self.point = jax.tree.map(own, checked_pytree("Fixed", "terminal", terminal))

    def name_of(self, field: str) -> str:
        return "terminal"

    def _argument(self, name: str) -> Any:
        return self.point

    def init(self, x0: Vector) -> None:
        return None

    def next(self, memory: None, x: Vector, k: Count) -> tuple[Vector, None]:
        return jnp.broadcast_to(self.point, x.shape), memory


class Lagged(Terminal):
    """c_k = x_{k - lag} (section 3.2 of the paper), with `past` = (x_{-1}, ..., x_{-lag}).

    Without `past` the earlier points are x_0 itself, and the first step is a gradient step. The
    memory is a ring buffer: row k mod lag holds x_{k - lag} until x_k replaces it.

    Parameters
    ----------
    lag : int, default 1
        How many iterations the terminal lies back, at least 1.
    past : array or list of points, optional
        The points before x0, (x_{-1}, ..., x_{-lag}). By default they are x0.

    Examples
    --------
    >>> import cfgd
    >>> print(cfgd.terminal.Lagged(2).lag)
    2
    """

    lag: int = eqx.field(static=True)
    past: Any = points(count="lag")

    def __init__(self, lag: int = 1, past: UserInput = None) -> None:
        self.lag = checks.integer("Lagged", "lag", lag)
        past = None if past is None else checked_pytree("Lagged", "past", past)
        self.past = jax.tree.map(own, past)

    def init(self, x0: Vector) -> Vectors:
        if self.past is None:
            return jnp.broadcast_to(x0, (self.lag, *x0.shape))
        return jnp.broadcast_to(self.past, (self.lag, *x0.shape))[::-1]

    def next(self, memory: Vectors, x: Vector, k: Count) -> tuple[Vector, Vectors]:
        if self.lag == 1:
            return memory[0], x[None]
        row = k % self.lag
        return memory[row], memory.at[row].set(x)

    def forget(self, memory: Vectors, x: Vector) -> Vectors:
        return jax.tree.map(lambda points: jnp.broadcast_to(x, points.shape), memory)
