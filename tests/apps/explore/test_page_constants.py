"""The numbers of Auto stand in the page as they stand in the library."""

import inspect
import re
from importlib.resources import files

import numpy as np
import pytest

import cfgd
from cfgd.methods.auto import plan, probe, scaling, span, subspace, trial
from cfgd.methods.paper import step

FOLDER = files("cfgd.apps.explore") / "files" / "method"
SAME = {
    "auto.js": (span, ("IDLE", "TOO_IDLE", "BLIND", "MOST_TRIES", "LONGER")),
    "scaling.js": (scaling, ("FIRST", "SMALLEST", "FURTHEST")),
    "trial.js": (trial, ("AWAY",)),
    "plan.js": (plan, ("FAR", "ASIDE")),
    "subspace.js": (subspace, ("TERMINALS", "GROWTH")),
}


def number(file, name):
    found = re.search(rf"^(?:export )?const {name} = ([^;]+);", (FOLDER / file).read_text(), re.M)
    assert found, (file, name)
    return found[1]


@pytest.mark.parametrize("file", SAME)
def test_the_numbers_are_the_same(file):
    module, names = SAME[file]
    for name in names:
        assert float(number(file, name)) == getattr(module, name), name


def test_what_has_another_name_is_the_same():
    assert float(number("step.js", "MOST_SHORTENED")) == step.MAX_BACKTRACKS
    assert float(number("probe.js", "PROBES")) == probe.probes(2)
    eps = np.finfo(float).eps
    assert number("probe.js", "NOISE") == "8 * EPS ** (2 / 3)"
    assert probe.noise(np.zeros(2)) == 8 * eps ** (2 / 3)
    default = inspect.signature(cfgd.minimize).parameters["tolerance"]
    assert float(number("run.js", "TOLERANCE")) == default.default
