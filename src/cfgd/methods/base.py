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
    """What an iteration reports to the loop."""

    norm2: Scalar  # the squared norm that the tolerance is for: |g|^2 at x_k, or |d|^2
    cost: Number  # in gradients
    reset: Flag  # the direction was no descent direction, and the gradient was taken instead
    status: Count  # code of a Status: running, or the reason why no further step can be made
    moved: Flag  # whether the iteration was made


def status_code(**flags: Flag) -> Count:
    """Return the code of the first status whose flag is set, else that of `running`."""
    code: Any = _CODES["running"]
    for name, flag in reversed(flags.items()):
        code = jnp.where(flag, _CODES[name], code)
    return code


_CODES = {status.name: np.int32(status.code) for status in Status}


class Tuning(NamedTuple):
    """Numbers that replace "best" in a method, and their rate.

    `rate` is the factor by which the error falls per iteration asymptotically; None if it is not
    proved, because the smallest eigenvalue did not converge.
    """

    gamma: float
    eta: np.ndarray  # one for each coordinate
    rate: float | None
    description: str
    cost: float


@dataclasses.dataclass(frozen=True)
class MethodTraits:
    """Properties of a method that the loops depend on.

    Parameters
    ----------
    runs_on_host
        Whether the method is a NumPy solver that calls an oracle and tests for convergence itself;
        otherwise its steps are JAX functions that are compiled into a loop.
    is_scale_invariant
        Whether c f has the same iterates as f for every c > 0.
    patience
        Iterations without a smaller value or gradient after which a run ends; None for no limit. A
        run also waits for half of the iterations that it has made, if these are more.
    seeks_minimiser
        Whether convergence and progress are tested by f and its gradient; otherwise by the
        direction.
    last_iteration
        The iteration at which the method ends by itself, or None.
    advice
        For each status a sentence on how the method's own parameters may help.
    """

    runs_on_host: bool = False
    is_scale_invariant: bool = False
    patience: int | None = None
    seeks_minimiser: bool = True
    last_iteration: int | None = None
    advice: Mapping[Status, str] = dataclasses.field(default_factory=dict)


class Prepared(NamedTuple):
    """A method with numbers in all its fields, flattened for the problem."""

    method: Any
    tuning: Tuning | None = None


class Method(ListsPublicNames, ShowsCall, FastModule):
    """Base class of methods: `step(objective, state) -> (state, info)` makes an iteration.

    The numbers of a method are fields that are declared by `settings.number`, `point` or `points`,
    in the method or in its rules. A sweep can vary every declared field.
    """

    _internal: ClassVar[tuple[str, ...]] = (
        "describe",
        "in_box",
        "init",
        "measure",
        "prepare",
        "restart",
        "step",
        "traits",
    )

    @property
    @abc.abstractmethod
    def traits(self) -> MethodTraits: ...

    @abc.abstractmethod
    def describe(self, objective: Objective) -> str:
        """Return a short description of the method for this objective."""

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
        """Make one iteration; x does not change if the squared norm is at most `floor`."""

    @abc.abstractmethod
    def measure(self, objective: Any, state: Any) -> Scalar:
        """Return the squared norm that the tolerance is for, without a step."""

    def restart(self, state: Any) -> Any:
        """Return the state of a run that restarts from its current point."""
        return state
