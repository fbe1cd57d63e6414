"""Runs of the solver in experiments: in threads, and refused if interrupted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import cfgd
from cfgd.apps.reproduce.experiment import SilentMeter
from cfgd.apps.reproduce.experiments import solving

GRADIENT_DESCENT = cfgd.GradientDescent()


def test_interrupt_in_one_thread_stops_all_jobs() -> None:
    meter = SilentMeter()

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solving.run_in_threads(meter, [interrupted, lambda: None])
    assert meter.stopped


def test_interrupted_run_is_refused() -> None:
    solution = cfgd.minimize(cfgd.Quadratic(np.eye(2), [0.0, 1.0]), np.ones(2), GRADIENT_DESCENT)
    assert solving.check_uninterrupted(solution) is solution
    with pytest.raises(KeyboardInterrupt):
        solving.check_uninterrupted(dataclasses.replace(solution, status=cfgd.Status.interrupted))
    with pytest.raises(KeyboardInterrupt):
        solving.check_uninterrupted(dataclasses.replace(solution, status=[cfgd.Status.interrupted]))
