"""The constants of Auto in the explorer's JavaScript are those of the solvers."""

import inspect
import re
from importlib.resources import files

import numpy as np
import pytest

import cfgd
from cfgd.methods.auto import curvature_check, lbfgs, lbfgs_memory, state
from cfgd.methods.paper import step

FOLDER = files("cfgd.apps.explore") / "files" / "method"
# file and name of a constant in the page: module and name of the same one in the library
SAME = {
    ("auto.js", "IDLE"): (lbfgs, "IDLE"),
    ("auto.js", "TOO_IDLE"): (lbfgs, "TOO_IDLE"),
    ("auto.js", "BLIND"): (lbfgs, "CHECK_EVERY"),
    ("auto.js", "MOST_TRIES"): (lbfgs, "MOST_TRIES"),
    ("auto.js", "LONGER"): (lbfgs, "LONGER"),
    ("scaling.js", "FIRST"): (lbfgs_memory, "FIRST_CURVATURE"),
    ("scaling.js", "SMALLEST"): (lbfgs_memory, "SMALLEST"),
    ("scaling.js", "FURTHEST"): (curvature_check, "LONGEST_STEP"),
    ("trial.js", "AWAY"): (state, "TRAVELLED"),
    ("plan.js", "FAR"): (curvature_check, "FAR"),
    ("plan.js", "ASIDE"): (curvature_check, "VALLEY_DISTANCE"),
    ("subspace.js", "TERMINALS"): (lbfgs_memory, "PAIRS"),
    ("subspace.js", "GROWTH"): (lbfgs_memory, "GROWTH"),
    ("step.js", "MOST_SHORTENED"): (step, "MAX_BACKTRACKS"),
}


def constant(file, name):
    found = re.search(rf"^(?:export )?const {name} = ([^;]+);", (FOLDER / file).read_text(), re.M)
    assert found, (file, name)
    return found[1]


@pytest.mark.parametrize(("ours", "theirs"), SAME.items(), ids=map("/".join, SAME))
def test_the_constants_are_the_same(ours, theirs):
    module, name = theirs
    assert float(constant(*ours)) == getattr(module, name)


def test_the_noise_of_curvatures_is_the_same():
    eps, g = np.finfo(float).eps, np.zeros(2)
    assert constant("probe.js", "NOISE") == "8 * EPS ** (2 / 3)"
    assert curvature_check.difference_noise(g) == 8 * eps ** (2 / 3)
    assert constant("probe.js", "ONE_SIDED_NOISE") == "8 * EPS ** (1 / 3)"
    assert curvature_check.one_sided_noise(g) == 8 * eps ** (1 / 3)


def test_both_sides_of_two_coordinates_are_probed():
    assert curvature_check.is_small(2)
    assert float(constant("probe.js", "HALF")) == 2
    assert float(constant("probe.js", "PROBES")) == 4


def test_the_tolerance_is_the_default_one():
    default = inspect.signature(cfgd.minimize).parameters["tolerance"]
    assert float(constant("run.js", "TOLERANCE")) == default.default
