"""The problems by name, and their numbers of training steps."""

from __future__ import annotations

from collections.abc import Callable

from cfgd.apps.bench.training.boundary_layer import boundary_layer
from cfgd.apps.bench.training.characters import characters
from cfgd.apps.bench.training.images import convolution, digits
from cfgd.apps.bench.training.moons import moons
from cfgd.apps.bench.training.problem import TrainingProblem

# The numbers of steps are multiples of the thirty checkpoints, also when --quick halves them.
PROBLEMS: dict[str, tuple[Callable[[int], TrainingProblem], int]] = {
    "moons": (moons, 600),
    "digits": (digits, 600),
    "characters": (characters, 600),
    "convolution": (convolution, 300),
    "boundary-layer": (boundary_layer, 900),
}
QUICK = ("moons", "digits")


def select_problems(only: list[str], quick: bool) -> list[TrainingProblem]:
    """Return the named problems, or by default all, with `quick` two."""
    unknown = [name for name in only if name not in PROBLEMS]
    if unknown:
        known = ", ".join(PROBLEMS)
        raise ValueError(f"There is no training problem {unknown[0]!r}; the problems are {known}.")
    names = [name for name in PROBLEMS if name in (only or (QUICK if quick else PROBLEMS))]
    problems = []
    for name in names:
        make, steps = PROBLEMS[name]
        problems.append(make(steps // 2 if quick else steps))
    return problems
