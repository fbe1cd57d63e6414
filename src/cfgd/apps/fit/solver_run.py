"""How a run of the solver ended, with what is reported of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from cfgd.status import Status


@dataclasses.dataclass(frozen=True)
class SolverRun:
    """The run that found the coefficients.

    `history` has `iteration`, `value` and `gradient_norm`; `evaluations` counts gradients, of
    streamed rows the passes over the file. `is_determined` says that the run has shown that there
    is one minimum.
    """

    status: Status
    iterations: int
    evaluations: float
    history: Mapping[str, Any]
    details: str = ""
    is_determined: bool = False

    @property
    def success(self) -> bool:
        """Whether the run converged."""
        return self.status is Status.converged
