"""How much of the networks is run, in each size."""

from __future__ import annotations

import dataclasses

from cfgd.apps.data.network_functions import FUNCTIONS
from cfgd.apps.data.network_starts import FAMILY
from cfgd.apps.reproduce.experiment import Setting
from cfgd.apps.reproduce.experiments.network_choice import EARLY, FINALISTS, LATE
from cfgd.apps.reproduce.experiments.network_rivals import SOLVERS, WORK
from cfgd.apps.reproduce.experiments.network_runs import GAMMA, GAMMAS, HOWS, READINGS, Run, work_of

FAMILY_ROWS = (20, 1)  # of losses, and of test errors


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much of what is run.

    In full size the family of h1 goes to the iterations of the paper's numbers, as the rule needs;
    that of h2 and h3 to a fifth of them, and the panels to the paper's 1e5: 35 minutes on two
    cores.
    """

    starts: tuple[str, ...]
    family: dict[str, int]  # iterations
    panel: int
    causes: int
    seeds: range
    rows: tuple[int, int]  # of the panels: of losses, and of test errors
    rule: bool  # whether the run is long enough for it

    @classmethod
    def of(cls, setting: Setting) -> Plan:
        few = ("1/1", "2/1", "3/1", "5/0.14", "Xavier")
        starts = setting.pick(tiny=few[1:2], quick=few, full=tuple(FAMILY))
        early = setting.pick(tiny=20, quick=200, full=EARLY)
        other = setting.pick(tiny=20, quick=200, full=EARLY // 5)
        return cls(
            starts,
            {"h1": early, "h2": other, "h3": other},
            setting.pick(tiny=40, quick=1_000, full=LATE),
            other,
            setting.seeds_or(quick=2, full=5),
            setting.pick(tiny=(4, 2), quick=(40, 10), full=(100, 50)),
            setting.size == "full",
        )

    def of_family(self, function: str) -> list[Run]:
        return [
            Run(function, start, seed, how, gamma, self.family[function])
            for start in self.starts
            for seed in self.seeds
            for how, gamma in (("descent", 0.0), *((one, GAMMA[function]) for one in READINGS))
        ]

    def of_panel(self, function: str, start: str, formula: str) -> list[Run]:
        """The middle gamma from all seeds; the others, for the figure, from the first."""
        first, *_ = self.seeds
        return [
            Run(function, start, seed, how, gamma, self.panel)
            for seed in self.seeds
            for how, gamma in (("descent", 0.0), *((formula, one) for one in GAMMAS[function]))
            if seed == first or gamma in (0.0, GAMMA[function])
        ]

    def of_finals(self, start: str, formula: str) -> list[Run]:
        return [
            run for run in self.of_panel("h1", start, formula) if run.gamma in (0.0, GAMMA["h1"])
        ]

    def of_causes(self, function: str, start: str) -> list[Run]:
        return [
            Run(
                function,
                start,
                seed,
                how,
                GAMMA[function] if how != "descent" else 0.0,
                self.causes,
            )
            for seed in self.seeds
            for how in HOWS
        ]


def total_work(plan: Plan) -> float:
    """Known beforehand up to the names of the starts; panels that are finals count once."""
    runs = [one for function in FUNCTIONS for one in plan.of_family(function)]
    runs += [one for f in FUNCTIONS for one in plan.of_panel(f, "", "printed")]
    runs += [one for f in FUNCTIONS for one in plan.of_causes(f, "")]
    again = (FINALISTS - 1) if plan.rule else 0
    solvers = WORK * len(FUNCTIONS) * len(plan.seeds) * len(SOLVERS)
    return work_of(runs) + again * work_of(plan.of_finals("", "printed")) + solvers
