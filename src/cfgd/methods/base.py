"""What every method is to the solver: a start, a step, and a few words about itself."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from cfgd._core.either import Plain, chosen
from cfgd._core.pytrees import Structure
from cfgd._core.types import Count, DType, Flag, Number, Numbers, Scalar, Vector
from cfgd.methods.paper.settings import Rule, lay_out
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status


class State(Plain, eqx.Module):
    """What the next iteration needs; `eta` and `gamma` are the numbers of the last one.

    Both are NaN before the first iteration; a method without one has None.
    """

    k: Count
    point: Evaluation
    eta: Scalar
    gamma: Numbers | None


class Info(Plain, eqx.Module):
    """What is worth seeing of an iteration."""

    norm2: Scalar  # |g|^2 at x_k; |d|^2 where a run is judged by its direction
    cost: Number  # in gradients
    reset: Flag  # the direction had no step in it and the gradient was taken
    ending: Count  # the code of a Status: running, or why no further step can be made
    moved: Flag  # whether it was an iteration: not a try that failed, nor a look around


def ending(**ends: Flag) -> Count:
    """The code of the first status whose flag is set, else that of `running`."""
    code: Any = _CODES["running"]
    for name, flag in reversed(ends.items()):
        code = chosen(flag, _CODES[name], code)
    return code


_CODES = {status.name: np.int32(status.code) for status in Status}


class Tuning(NamedTuple):
    """The numbers that a method was given in place of "best", and what is known of them.

    `rate` is the factor by which the error falls per iteration in the long run; None where the
    smallest eigenvalue did not settle, for then it is not proved.
    """

    gamma: float
    eta: np.ndarray  # one for each coordinate
    rate: float | None
    words: str
    cost: float


class Method(Plain, eqx.Module):
    """One `step(objective, state) -> (state, info)`; every loop calls it.

    Its numbers stand in fields that say what they are (`settings.number`, `point`, `points`), in
    the method or in its rules: that is all a sweep needs to vary them.
    """

    @abc.abstractmethod
    def start(self, objective: Objective, x0: Vector) -> State: ...

    @abc.abstractmethod
    def step(
        self, objective: Objective, state: Any, floor: Number = 0.0, tolerance: Number = 0.0
    ) -> tuple[Any, Info]:
        """One iteration; x stays where it is if the squared norm is at most `floor`."""

    @abc.abstractmethod
    def measure(self, objective: Objective, state: Any) -> Scalar:
        """The squared norm that the tolerance is about, without a step."""

    @property
    def judges(self) -> bool:
        """Whether the method says itself that it has converged.

        Such a method looks at every point anew, the start included: its first state is blank.
        """
        return False

    def from_outside(self, objective: Objective) -> bool:
        """Whether a run is walked from Python, with nothing compiled but the objective."""
        return False

    @property
    def scale_free(self) -> bool:
        """Whether c f is walked on as f is, for every c > 0."""
        return False

    @property
    def patience(self) -> int | None:
        """Iterations without a smaller value or gradient that may end a run; None for no such end.

        A run waits for at least as many, and for half of those that it has made.
        """
        return None

    def confirms(self, objective: Objective, point: Evaluation, tolerance: Number) -> Flag:
        """Whether a point that meets the tolerance, and was looked at, is a solution."""
        return jnp.ones((), bool)

    @property
    def advice(self) -> Mapping[Status, str]:
        """What else may help against an ending, of the method's own parameters."""
        return {}

    def forget(self, objective: Objective, state: Any) -> Any:
        """The state of a run that starts anew from the point where it is."""
        return state

    @abc.abstractmethod
    def describe(self, objective: Objective) -> str:
        """What the method does to this objective, in a few words."""

    def owner_of(self, rule: eqx.Module) -> str:
        """In whose call the user gave a rule its numbers, for messages."""
        return rule.owner(None) if isinstance(rule, Rule) else type(rule).__name__

    @property
    def is_open(self) -> bool:
        """Whether numbers are left to the method to choose."""
        return False

    def tuned(self, objective: Objective, d: int, dtype: DType) -> tuple[Method, Tuning | None]:
        """The method with every "best" replaced by numbers."""
        return self, None

    def laid_out(self, structure: Structure, d: int, rows: int | None = None) -> Method:
        """The method for points of d coordinates, of so many rows in a sweep, or a clear error."""
        return lay_out(self, structure, d, rows)

    def on(self, objective: Objective) -> Method:
        """The method that walks on this objective."""
        return self

    def view(self, objective: Objective) -> Objective:
        """The objective in the form that the method walks on best, or a clear error."""
        return objective

    def direction_cost(self, objective: Objective, d: int) -> float:
        """What a direction costs beyond the gradient, in gradients."""
        return 0.0

    def start_cost(self, objective: Objective, d: int) -> float:
        """What a start costs, in gradients."""
        return 1.0

    @property
    def seeks_minimiser(self) -> bool:
        """Whether runs are judged by f and its gradient, and not by the direction alone."""
        return True

    @property
    def last_iteration(self) -> int | None:
        """Where the method ends by itself."""
        return None
