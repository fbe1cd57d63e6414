"""A random problem and what is known about it: the input of the judge."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Problem:
    """One call of `minimize`, with the same objective as a plain function and its known truth.

    Attributes
    ----------
    plain : callable
        The objective as plain JAX, plain(x, *data); evaluated in float64 by the judge.
    size : array
        How far each coordinate moves between points that differ, as the family was made.
    scale : float
        A change of the value that a user would call large.
    truth : str
        "minimum": bounded below, every descent ends at a point; "infimum": values fall
        towards 0 at infinity; "unbounded": values fall below every number; "boundary": the
        least value lies on the edge of the domain; "bounded": values are not negative, and the
        least one may lie at infinity.
    is_smooth : bool
        Whether second derivatives mean anything at a solution.
    noise : float
        Errors of the values that are part of the objective.
    """

    objective: Any
    x0: np.ndarray
    plain: Callable[..., Any]
    data: tuple[Any, ...]
    size: np.ndarray
    scale: float = 1.0
    truth: str = "minimum"
    is_smooth: bool = True
    noise: float = 0.0
    args: tuple[Any, ...] = ()
    method: Any = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


def plain_problem(function, x0, *data, size=1.0, scale=1.0, **known) -> Problem:
    """Return the problem of a JAX function f(x, *data)."""
    x0 = np.asarray(x0)
    data = tuple(np.asarray(entry, x0.dtype) for entry in data)
    size = np.broadcast_to(np.asarray(size, float), x0.shape)
    return Problem(function, x0, function, data, size=size, scale=float(scale), args=data, **known)


def rotation(random, d):
    """Return a random orthogonal matrix."""
    return np.linalg.qr(random.normal(size=(d, d)))[0]


def log_uniform(random, low, high, *shape):
    """Return random numbers 10^u with u uniform between `low` and `high`."""
    return 10.0 ** random.uniform(low, high, *shape)
