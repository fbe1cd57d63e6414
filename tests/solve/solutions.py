"""Example solutions, and a comparison of solutions bit for bit."""

import copy
import dataclasses

import numpy as np

import cfgd
from cfgd.objectives.information import Information
from cfgd.status import Status

STATUSES = [Status.converged, Status.stalled, Status.converged]
PLAIN = {
    "x": np.array([0.1, -1e-300]),
    "value": -1.25,
    "gradient_norm": 3.14159e-9,
    "iterations": 28,
    "evaluations": 57.0,
    "status": Status.converged,
    "history": {"iteration": np.array([0, 28]), "value": np.array([3.0, -1.25])},
    "resets": 2,
    "seconds": 1.5,
    "how": "Auto: L-BFGS",
    "rate": 0.1,
    "compile_seconds": 1.25,
    "details": "The norm fell from 2 to 3.14e-09.",
}
SWEPT = {
    **PLAIN,
    "x": np.arange(6.0).reshape(3, 2) / 7,
    "value": np.array([np.nan, -2.0, 1.0]),
    "gradient_norm": np.array([np.inf, 0.125, 1.0]),
    "iterations": np.array([1, 30, 2], np.int32),
    "evaluations": np.array([2.0, 60.0, 4.0]),
    "resets": np.array([0, 1, 0], np.int32),
    "status": STATUSES,
    "history": {"iteration": np.array([0, 20]), "value": np.arange(6.0).reshape(3, 2)},
    "rate": None,
    "details": ["From 1 to 2.", "", "From 3 to 4."],
}


KNOWN = Information(np.array([[1.0, 0.25], [0.25, 1.0]]), np.array([3.0, 0.5]), 0.125)


def one(**changes):
    return cfgd.Solution(**copy.deepcopy(PLAIN | changes))


def swept(**changes):
    return cfgd.Solution(**copy.deepcopy(SWEPT | changes))


def assert_same(got, wanted):
    """Compare two trees bit for bit, types and dtypes included."""
    assert type(got) is type(wanted)
    if isinstance(wanted, dict):
        assert list(got) == list(wanted)
        got, wanted = list(got.values()), list(wanted.values())
    if isinstance(wanted, list | tuple):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            assert_same(a, b)
    elif hasattr(wanted, "dtype"):
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()
    else:
        assert repr(got) == repr(wanted)


def assert_same_solution(got, wanted):
    for field in dataclasses.fields(cfgd.Solution):
        assert_same(getattr(got, field.name), getattr(wanted, field.name))
