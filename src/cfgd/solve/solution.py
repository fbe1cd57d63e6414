"""What a run gives back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from cfgd.status import Status


@dataclasses.dataclass(frozen=True)
class Solution:
    """The best point seen, what is known of it, and how the run ended.

    `x` is the best point by value; for `NonAdaptive`, which does not minimise f, the last one.
    `evaluations` counts gradients and what is worth one. `resets` says how often an adaptive
    method took c = x because its own step would have had no length. `rate`, where it is proved, is
    the factor by which the error falls per iteration in the long run. From `sweep` every field has
    a leading axis of settings; `solution[i]` is the solution of one of them.
    """

    x: Any
    value: Any
    gradient_norm: Any
    iterations: Any
    evaluations: Any
    status: Any
    history: Mapping[str, Any] = dataclasses.field(repr=False)
    resets: Any = 0
    seconds: float = 0.0
    how: str = ""
    rate: float | None = None

    @property
    def message(self) -> Any:
        """The cause of the end and its remedy."""
        if isinstance(self.status, Status):
            return self.status.value
        return [status.value for status in self.status]

    @property
    def summary(self) -> Any:
        """What was done, in one line."""
        if not isinstance(self.status, Status):
            return [one.summary for one in self]
        return (
            f"{self.how}: {self.iterations} iterations, {self.resets} resets, "
            f"{self.evaluations:g} gradients in {self.seconds:.3g} s; {self.status.name}"
        )

    @property
    def success(self) -> Any:
        if isinstance(self.status, Status):
            return self.status is Status.converged
        return np.array([status is Status.converged for status in self.status])

    def __len__(self) -> int:
        if isinstance(self.status, Status):
            raise TypeError("A solution of one setting has no length.")
        return len(self.status)

    def __getitem__(self, i: int) -> Solution:
        """The solution of setting i of a sweep."""
        len(self)

        def pick(tree: Any) -> Any:
            return jax.tree.map(lambda leaf: leaf[i], tree)

        history = {k: v if k == "iteration" else pick(v) for k, v in self.history.items()}
        changes = {
            name: pick(getattr(self, name))
            for name in ("x", "value", "gradient_norm", "iterations", "evaluations", "resets")
        }
        return dataclasses.replace(self, **changes, status=self.status[i], history=history)

    def __iter__(self) -> Iterator[Solution]:
        return (self[i] for i in range(len(self)))


class ConvergenceError(RuntimeError):
    """Raised by `minimize(..., throw=True)`; its `solution` is what would have been returned."""

    def __init__(self, solution: Solution) -> None:
        super().__init__(solution.message)
        self.solution = solution
