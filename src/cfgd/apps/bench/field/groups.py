"""The groups of the table: what is measured, and what is left out."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cfgd.apps.bench.field import clocked, cutest, estimators, glm, nist, target
from cfgd.apps.bench.field.cases import least_squares_makers, network_makers, smooth_makers
from cfgd.apps.bench.field.instance import Instance
from cfgd.apps.data import gas


class Choice(NamedTuple):
    quick: bool
    seeds: int
    data: gas.Gas | None = None


def _least_squares(of: Choice) -> Iterator[Instance]:
    for name, make in least_squares_makers(of.quick, of.data):
        digest = of.data.digest if name == "gas" and of.data is not None else None
        for seed in range(of.seeds):
            yield target.instance("least-squares", name, make, seed, of.quick, digest)


def _smooth(of: Choice) -> Iterator[Instance]:
    for name, make in smooth_makers(of.quick):
        for seed in range(of.seeds):
            yield target.instance("smooth", name, make, seed, of.quick)


def _networks(of: Choice) -> Iterator[Instance]:
    """In equal time and, where there is some, with equal work."""
    yield from clocked.instances(of.quick, of.seeds)
    for name, make in [] if of.quick else network_makers():
        for seed in range(of.seeds):
            yield target.instance("networks", name, make, seed, of.quick)


GROUPS: dict[str, Callable[[Choice], Iterator[Instance]]] = {
    "nist": lambda of: nist.instances(of.quick),
    "glm": lambda of: glm.instances(of.quick),
    "estimators": lambda of: estimators.instances(of.quick),
    "networks": _networks,
    "least-squares": _least_squares,
    "smooth": _smooth,
    "cutest": lambda of: cutest.instances(of.quick),
}
NEEDED = {
    "glm": ("sklearn",),
    "estimators": ("sklearn",),
    "networks": ("optax", "optimistix"),
    "least-squares": ("optax", "optimistix"),
    "smooth": ("optax", "optimistix"),
}
QUICK = {
    "nist": "two of three regressions of nist",
    "glm": "the digits of glm",
    "estimators": "the digits and the million rows of estimators",
    "networks": "h2, h3 and equal work of networks",
    "least-squares": "what is large of least-squares",
    "smooth": "most of smooth",
    "cutest": "seven of eight problems of cutest",
}
SLOW = "cutest (to import sif2jax takes a minute; --only cutest has it)"


def chosen(only: list[str], quick: bool) -> tuple[list[str], list[str]]:
    """The groups that are run, and a sentence for each thing that is left out."""
    unknown = [name for name in only if name not in GROUPS]
    if unknown:
        known = ", ".join(GROUPS)
        raise ValueError(f"There is no group {unknown[0]!r} of problems; the groups are {known}.")
    names = [name for name in GROUPS if name in only or not only]
    said = []
    if quick:
        words = QUICK if only else QUICK | {"cutest": SLOW}
        said.append(f"--quick leaves out {'; '.join(words[name] for name in names)}.")
        names = [name for name in names if only or name != "cutest"]
    for name in names:
        for package in NEEDED.get(name, ()):
            if importlib.util.find_spec(package) is None:
                raise ValueError(f"The rivals need {package}: pip install 'cfgd[bench]'.")
    if "cutest" in names and not cutest.is_installed():
        missing = "cutest needs sif2jax: pip install sif2jax."
        if names == ["cutest"]:
            raise ValueError(missing)
        names.remove("cutest")
        said.append(missing)
    return names, said


def instances(names: list[str], of: Choice) -> list[Instance]:
    return [instance for name in names for instance in GROUPS[name](of)]
