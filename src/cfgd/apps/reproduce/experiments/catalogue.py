"""The experiments by name, in the order of the paper."""

from __future__ import annotations

from cfgd.apps.reproduce.experiment import Experiment
from cfgd.apps.reproduce.experiments import (
    fig1,
    networks,
    orders,
    quadrature,
    random_data,
    smoothing,
    tikhonov,
    uci,
)

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (fig1, smoothing, tikhonov, random_data, uci, networks, quadrature, orders)
}


def chosen(names: list[str]) -> list[Experiment]:
    """Return the named experiments in the order of the paper, or all.

    Raises
    ------
    ValueError
        If a name is unknown.
    """
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        known = ", ".join(EXPERIMENTS)
        raise ValueError(f"There is no experiment {unknown[0]!r}; the known ones are: {known}.")
    return [EXPERIMENTS[name] for name in EXPERIMENTS if name in names or not names]
