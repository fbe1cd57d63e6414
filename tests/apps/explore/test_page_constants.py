"""The constants in the JavaScript of the explorer are those of the library."""

import re
from importlib.resources import files

import numpy as np
import pytest

from cfgd.methods.auto import curvature_check, lbfgs, lbfgs_memory, line_search, state
from cfgd.methods.paper import step
from cfgd.solve.options import DEFAULT_TOLERANCE

FOLDER = files("cfgd.apps.explore") / "files" / "method"
# the modules whose constants a file of the page repeats
SAME = [
    ("lbfgs.js", lbfgs, "IDLE TOO_IDLE CHECK_EVERY LONGER"),
    ("lbfgs.js", line_search, "ACCEPT MOST_TRIES HIDDEN_SLOPE HIDDEN_CHANGE SLOPE_AT_END"),
    ("lbfgs_memory.js", lbfgs_memory, "PAIRS GROWTH FIRST_CURVATURE SMALLEST LEAST_COSINE"),
    ("solver_state.js", state, "TRAVELLED"),
    (
        "curvature_check.js",
        curvature_check,
        "FAR VALLEY_DISTANCE LONGEST_STEP SMALLEST_PROBE SHARE_FAR NOT_ZERO FEW_UNITS",
    ),
    ("step.js", step, "MAX_BACKTRACKS"),
]


def constant(file, name):
    found = re.search(rf"^(?:export )?const {name} = ([^;]+);", (FOLDER / file).read_text(), re.M)
    assert found, (file, name)
    return found[1]


@pytest.mark.every_case
@pytest.mark.parametrize(("file", "module", "names"), SAME)
def test_the_constants_are_the_same(file, module, names):
    for name in names.split():
        assert float(constant(file, name)) == getattr(module, name), name


def test_the_noise_of_curvatures_is_the_same():
    eps, g = np.finfo(float).eps, np.zeros(2)
    assert curvature_check.is_small(g.size)  # all coordinates are probed, as on the page
    assert constant("curvature_check.js", "DIFFERENCE_NOISE") == "8 * EPS ** (2 / 3)"
    assert curvature_check.difference_noise(g) == 8 * eps ** (2 / 3)
    assert constant("curvature_check.js", "ONE_SIDED_NOISE") == "8 * EPS ** (1 / 3)"
    assert curvature_check.one_sided_noise(g) == 8 * eps ** (1 / 3)


def test_the_tolerance_is_the_default_one():
    default = DEFAULT_TOLERANCE[np.dtype(np.float64)]
    assert float(constant("run.js", "TOLERANCE")) == default
