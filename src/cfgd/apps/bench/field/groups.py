"""The groups of problems of `cfgd bench`, and the parts that are skipped."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cfgd._core.extras import install_command
from cfgd.apps.bench.field import (
    bounded,
    cutest,
    estimators,
    fit_solvers,
    fits,
    glm,
    networks_timed,
    nist,
    pinn,
    target,
)
from cfgd.apps.bench.field.cases import least_squares_makers, network_makers, smooth_makers
from cfgd.apps.bench.field.instance import Instance
from cfgd.apps.data import gas


class BenchOptions(NamedTuple):
    quick: bool
    seeds: int
    data: gas.Gas | None = None
    seconds: float | None = None  # time limit of each run of pinn


def _least_squares(options: BenchOptions) -> Iterator[Instance]:
    for name, make in least_squares_makers(options.quick, options.data):
        digest = options.data.digest if name == "gas" and options.data is not None else None
        for seed in range(options.seeds):
            yield target.make_instance("least-squares", name, make, seed, options.quick, digest)


def _smooth(options: BenchOptions) -> Iterator[Instance]:
    for name, make in smooth_makers(options.quick):
        for seed in range(options.seeds):
            yield target.make_instance("smooth", name, make, seed, options.quick)


def _networks(options: BenchOptions) -> Iterator[Instance]:
    """Yield the networks at equal time and, unless `quick`, at equal work."""
    yield from networks_timed.instances(options.quick, options.seeds)
    for name, make in [] if options.quick else network_makers():
        for seed in range(options.seeds):
            yield target.make_instance("networks", name, make, seed, options.quick)


GROUPS: dict[str, Callable[[BenchOptions], Iterator[Instance]]] = {
    "nist": lambda options: nist.instances(options.quick),
    "fits": lambda options: fits.instances(options.quick),
    "bounds": lambda options: bounded.instances(options.quick),
    "glm": lambda options: glm.instances(options.quick),
    "estimators": lambda options: estimators.instances(options.quick),
    "networks": _networks,
    "pinn": lambda options: pinn.instances(options.quick, options.seeds, options.seconds),
    "least-squares": _least_squares,
    "smooth": _smooth,
    "cutest": lambda options: cutest.instances(options.quick),
    "cutest-bounds": lambda options: cutest.instances(options.quick, "cutest-bounds"),
}
REQUIRED_PACKAGES = {
    "glm": ("sklearn",),
    "estimators": ("sklearn",),
    "networks": ("optax", "optimistix"),
    "least-squares": ("optax", "optimistix"),
    "smooth": ("optax", "optimistix"),
}
QUICK_PARTS = {
    "nist": "every third regression",
    "fits": "one of 25 fits, with one perturbed start",
    "bounds": "every ninth regression",
    "glm": "without the digits data",
    "estimators": "without the digits data and the table of 1,000,000 rows",
    "networks": "h1 at equal time",
    "pinn": "one of seven equations",
    "least-squares": "smaller problems",
    "smooth": "four test functions, smaller linear models",
    "cutest": "every eighth problem",
    "cutest-bounds": "every eighth problem",
}
CUTEST = tuple(cutest.KINDS)  # the groups that need sif2jax
CUTEST_SKIPPED = {
    name: f"skipped, because importing sif2jax takes a minute (--only {name} runs it)"
    for name in CUTEST
}


def select_groups(only: list[str], quick: bool) -> tuple[list[str], list[str]]:
    """Return the groups to run, and sentences that say what is skipped.

    Raises
    ------
    ValueError
        If a group is unknown, or a package that it needs is not installed.
    """
    unknown = [name for name in only if name not in GROUPS]
    if unknown:
        known = ", ".join(GROUPS)
        raise ValueError(f"There is no group {unknown[0]!r} of problems; the groups are {known}.")
    names = [name for name in GROUPS if name in only or not only]
    notices = []
    if quick:
        parts = QUICK_PARTS if only else QUICK_PARTS | CUTEST_SKIPPED
        listed = "; ".join(f"{name}: {parts[name]}" for name in names)
        notices.append(f"--quick runs a part of each group. {listed}.")
        names = [name for name in names if only or name not in CUTEST]
    for name in names:
        for package in REQUIRED_PACKAGES.get(name, ()):
            if importlib.util.find_spec(package) is None:
                raise ValueError(f"The other solvers need {package}: {install_command('bench')}.")
    if "fits" in names and (missing_solvers := fit_solvers.missing_packages()):
        notices.append(f"fits skips solvers that are not installed: {', '.join(missing_solvers)}.")
    if set(CUTEST) & set(names) and not cutest.is_installed():
        missing = "cutest needs sif2jax: pip install sif2jax."
        names = [name for name in names if name not in CUTEST]
        if not names:
            raise ValueError(missing)
        notices.append(missing)
    return names, notices


def make_instances(names: list[str], options: BenchOptions) -> list[Instance]:
    return [instance for name in names for instance in GROUPS[name](options)]
