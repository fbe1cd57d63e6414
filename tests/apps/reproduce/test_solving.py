"""The solver as experiments use it: several at a time, and never half a run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import cfgd
from cfgd.apps.reproduce.experiment import Silent
from cfgd.apps.reproduce.experiments import solving

GRADIENT_DESCENT = cfgd.GradientDescent()


def test_side_by_side_ends_all_jobs_when_one_is_interrupted() -> None:
    meter = Silent()

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solving.side_by_side(meter, [interrupted, lambda: None])
    assert meter.stopped


def test_half_a_run_is_not_judged() -> None:
    whole = cfgd.minimize(cfgd.Quadratic(np.eye(2), [0.0, 1.0]), np.ones(2), GRADIENT_DESCENT)
    assert solving.whole(whole) is whole
    with pytest.raises(KeyboardInterrupt):
        solving.whole(dataclasses.replace(whole, status=cfgd.Status.interrupted))
    with pytest.raises(KeyboardInterrupt):
        solving.whole(dataclasses.replace(whole, status=[cfgd.Status.interrupted]))
