"""An experiment: data, a run, claims and a figure; and the setting in which it is run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from cfgd.apps.data.gas import Gas
from cfgd.apps.page.drawing import Panels
from cfgd.apps.reproduce.kept import Kept
from cfgd.apps.reproduce.report.claim import Claim

Size = Literal["tiny", "quick", "full"]
T = TypeVar("T")


@runtime_checkable
class Meter(Protocol):
    """Where a run says how far it is; `stopped` asks it to end."""

    stopped: bool

    def start(self, total: float) -> None: ...

    def advance(self, amount: float) -> None: ...


class Silent:
    """A meter that nobody looks at."""

    stopped = False

    def start(self, total: float) -> None:
        pass

    def advance(self, amount: float) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Setting:
    """How much is run: `full` is the paper's counts, `quick` two minutes, `tiny` is for tests."""

    size: Size = "quick"
    seeds: int | None = None
    gas: Gas | None = None  # the gas data, read and checked before any run
    kept: Kept | None = None  # where a long experiment keeps what it has finished

    def pick(self, *, tiny: T, quick: T, full: T) -> T:
        return {"tiny": tiny, "quick": quick, "full": full}[self.size]

    def seeds_or(self, *, quick: int, full: int, tiny: int = 1) -> range:
        """The seeds 0, 1, ...: so many as asked for, or as the experiment has by itself."""
        return range(self.seeds or self.pick(tiny=tiny, quick=quick, full=full))


@dataclasses.dataclass(frozen=True)
class Record:
    """What a run leaves: `data` for claims and figure, `parameters` for the reader."""

    data: dict[str, Any]
    parameters: dict[str, Any]
    notes: tuple[str, ...] = ()
    story: str = ""  # the outcome in a sentence, for the head of the page


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
