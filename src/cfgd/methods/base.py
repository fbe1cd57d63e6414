"""The contract between a method and the loops that run it."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from cfgd._core.modules import FastModule
from cfgd._core.public_names import ListsPublicNames
from cfgd._core.pytrees import Structure
from cfgd._core.representation import ShowsCall
from cfgd._core.types import Count, DType, Flag, Number, Numbers, Scalar, Vector
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status


class State(FastModule):
    """What the next iteration of a compiled loop needs.

    `eta` and `gamma` are the numbers of the last iteration: NaN before the first one, None where
    the method has no such number.
    """

    k: Count
    evaluation: Evaluation
    eta: Scalar
    gamma: Numbers | None


class Info(FastModule):
    """What the loop reads of an iteration."""

    norm2: Scalar  # |g|^2 at x_k; |d|^2 where a run is judged by its direction
    cost: Number  # in gradients
    reset: Flag  # the direction had no descent and the gradient was taken
    status: Count  # code of a Status: running, or why no further step can be made
    moved: Flag  # whether the iteration was made


def status_code(**flags: Flag) -> Count:
    """Return the code of the first status whose flag is set, else that of `running`."""
    code: Any = _CODES["running"]
    for name, flag in reversed(flags.items()):
        code = jnp.where(flag, _CODES[name], code)
    return code


_CODES = {status.name: np.int32(status.code) for status in Status}


class Tuning(NamedTuple):
    """Numbers chosen for a method in place of "best", and what is known of them.

    `rate` is the factor by which the error falls per iteration in the long run; None where it is
    not proved, because the smallest eigenvalue did not converge.
    """

    gamma: float
    eta: np.ndarray  # one for each coordinate
    rate: float | None
    description: str
    cost: float


@dataclasses.dataclass(frozen=True)
class MethodTraits:
    """What the loops know of a method.

    Parameters
    ----------
    runs_on_host
        Whether the method is a solver of NumPy that asks an oracle, and decides itself when a run
        has converged; else its steps are JAX and compiled into a loop.
    is_scale_invariant
        Whether c f is minimised along the same points as f, for every c > 0.
    patience
        Iterations without a smaller value or gradient that end a run; None for no such end. A run
        waits for at least as many, and for half of those that it has made.
    seeks_minimiser
        Whether runs are judged by f and its gradient, and not by the direction alone.
    last_iteration
        Where the method ends by itself, or None.
    advice
        What else may help against an ending, of the method's own parameters.
    """

    runs_on_host: bool = False
    is_scale_invariant: bool = False
    patience: int | None = None
    seeks_minimiser: bool = True
    last_iteration: int | None = None
    advice: Mapping[Status, str] = dataclasses.field(default_factory=dict)


class Prepared(NamedTuple):
    """A method with numbers in all its fields, laid out for the problem."""

    method: Any
    tuning: Tuning | None = None


class Method(ListsPublicNames, ShowsCall, FastModule):
    """How a step is made: `step(objective, state) -> (state, info)`, which every loop calls.

    Its numbers stand in fields that say what they are (`settings.number`, `point`, `points`), in
    the method or in its rules: that is all a sweep needs to vary them.
    """

    _internal: ClassVar[tuple[str, ...]] = (
        *("describe", "in_box", "init", "measure", "prepare", "restart", "step", "traits"),
    )

    @property
    @abc.abstractmethod
    def traits(self) -> MethodTraits: ...

    @abc.abstractmethod
    def describe(self, objective: Objective) -> str:
        """Return what the method does to this objective, in a few words."""

    def prepare(
        self,
        objective: Objective,
        structure: Structure,
        d: int,
        dtype: DType,
        settings: int | None = None,
    ) -> Prepared:
        """Return the method for points of d coordinates, or raise where it does not apply.

        `settings` is the number of settings of a sweep; every "best" is replaced by a number.
        """
        return Prepared(self)

    def in_box(self) -> Method:
        """Return the method for a problem with bounds."""
        return self

    @abc.abstractmethod
    def init(self, objective: Any, x0: Vector) -> Any:
        """Return the state at the start."""

    @abc.abstractmethod
    def step(self, objective: Any, state: Any, floor: Any = 0.0, tolerance: Any = 0.0) -> Any:
        """Make one iteration; x stays where it is if the squared norm is at most `floor`."""

    @abc.abstractmethod
    def measure(self, objective: Any, state: Any) -> Scalar:
        """Return the squared norm that the tolerance is about, without a step."""

    def restart(self, state: Any) -> Any:
        """Return the state of a run that starts anew from where it is."""
        return state
