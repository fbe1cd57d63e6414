"""One thing that is measured: a problem with a seed, all solvers on it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from cfgd.apps.bench.field.standing import Run

Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Instance:
    """`measure` runs all solvers; it is told whom to tell what is going on."""

    group: str
    problem: str
    seed: int
    measure: Callable[[Say], list[Run]]
    data: str | None = None  # the digest of a file that it needs

    @property
    def name(self) -> str:
        """What its file is called."""
        words = f"{self.group} {self.problem} {self.seed}"
        return re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-")
