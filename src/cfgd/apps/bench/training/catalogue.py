"""The problems by name, and how long each is trained."""

from __future__ import annotations

from collections.abc import Callable

from cfgd.apps.bench.training.characters import characters
from cfgd.apps.bench.training.images import convolution, digits
from cfgd.apps.bench.training.layer import boundary_layer
from cfgd.apps.bench.training.moons import moons
from cfgd.apps.bench.training.problem import Problem

# with the steps of a run; multiples of the thirty places at which a run is looked at
PROBLEMS: dict[str, tuple[Callable[[int], Problem], int]] = {
    "moons": (moons, 600),
    "digits": (digits, 600),
    "characters": (characters, 600),
    "convolution": (convolution, 300),
    "boundary-layer": (boundary_layer, 900),
}
QUICK = ("moons", "digits")


def chosen(only: list[str], quick: bool) -> list[Problem]:
    """The problems that are asked for; quick has two of them, unless others are named."""
    unknown = [name for name in only if name not in PROBLEMS]
    if unknown:
        known = ", ".join(PROBLEMS)
        raise ValueError(f"There is no problem {unknown[0]!r} of training; there are {known}.")
    names = [name for name in PROBLEMS if name in (only or (QUICK if quick else PROBLEMS))]
    found = []
    for name in names:
        make, steps = PROBLEMS[name]
        found.append(make(steps // 2 if quick else steps))
    return found
