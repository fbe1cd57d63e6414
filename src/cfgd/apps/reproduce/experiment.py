"""An experiment of the paper: a run, claims and a figure; and the settings of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from cfgd.apps.data.gas import Gas
from cfgd.apps.page.drawing import Panels
from cfgd.apps.reproduce.report.claim import Claim
from cfgd.apps.reproduce.run_cache import RunCache

Size = Literal["tiny", "quick", "full"]
T = TypeVar("T")


@runtime_checkable
class Meter(Protocol):
    """A progress meter of a run. A run ends early with KeyboardInterrupt if `stopped` is set."""

    stopped: bool

    def start(self, total: float) -> None: ...

    def advance(self, amount: float) -> None: ...


class SilentMeter:
    """A meter that shows nothing."""

    stopped = False

    def start(self, total: float) -> None:
        pass

    def advance(self, amount: float) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Setting:
    """How much is run: `full` as in the paper, `quick` in two minutes, `tiny` for tests."""

    size: Size = "quick"
    seeds: int | None = None
    gas: Gas | None = None  # the gas data, read and checked before any run
    run_cache: RunCache | None = None  # where a long experiment saves its finished runs

    def pick(self, *, tiny: T, quick: T, full: T) -> T:
        """Return the value for this size."""
        return {"tiny": tiny, "quick": quick, "full": full}[self.size]

    def seeds_or(self, *, quick: int, full: int, tiny: int = 1) -> range:
        """Return the seeds 0, 1, ...: as many as the user set, or the experiment's default."""
        return range(self.seeds or self.pick(tiny=tiny, quick=quick, full=full))


@dataclasses.dataclass(frozen=True)
class Record:
    """The result of a run: `data` for claims and figure, `parameters` for the reader."""

    data: dict[str, Any]
    parameters: dict[str, Any]
    notes: tuple[str, ...] = ()
    conclusion: str = ""  # the outcome in a sentence, for the top of the page


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments. `summary` is a line, `about` a paragraph."""

    name: str
    title: str
    where: str
    summary: str
    about: str
    run: Callable[[Setting, Meter], Record]
    claims: Sequence[Claim]
    panels: Panels
    needs_gas: bool = False  # whether it runs on the gas data, `Setting.gas`
    missing: str = ""  # what it needs and the paper does not give
