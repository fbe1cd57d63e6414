"""What every method is to the solver: a start, a step, and a few words about itself."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx

from cfgd.best import Tuning
from cfgd.objective.base import Objective
from cfgd.structure import Structure


class Info(eqx.Module):
    """What is worth seeing of an iteration."""

    norm2: Any  # |g|^2 at x_k; |d|^2 where the terminal stays
    reset: Any  # c = x was taken because the step would have been zero
    cost: Any  # in gradients
    indefinite: Any  # d'Ad < 0 was met on a quadratic
    stuck: Any  # no step along the gradient itself
    eta: Any  # the numbers that the step chose or was given
    gamma: Any


class Iteration(eqx.Module):
    """One `step(objective, state) -> (state, info)`; every loop calls it.

    A state has `k`, `point`, and the numbers `eta` (and `gamma`) that the last step chose.
    """

    @abc.abstractmethod
    def start(self, objective: Objective, x0: Any) -> Any: ...

    @abc.abstractmethod
    def step(self, objective: Objective, state: Any, floor: Any = 0.0) -> tuple[Any, Info]:
        """One iteration; x stays where it is if the squared norm is at most `floor`."""

    @abc.abstractmethod
    def measure(self, objective: Objective, state: Any) -> Any:
        """The squared norm that the tolerance is about, without a step."""

    def forget(self, state: Any) -> Any:
        """The state of a run that starts anew from the point where it is."""
        return state

    @abc.abstractmethod
    def describe(self, objective: Objective) -> str:
        """What the method does to this objective, in a few words."""

    def fit(self, structure: Structure, d: int, rows: int | None = None) -> Iteration:
        """The method for points of d coordinates, or a clear error."""
        return self

    def tuned(self, objective: Objective, d: int, dtype: Any) -> tuple[Iteration, Tuning | None]:
        """The method with numbers for what it was asked to choose itself."""
        return self, None

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
