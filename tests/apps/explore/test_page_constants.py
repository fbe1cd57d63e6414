"""The constants in the JavaScript of the explorer are those of the library."""

import json
import re
from importlib.resources import files

import numpy as np
import pytest

from cfgd import zoo
from cfgd.methods.auto import (
    curvature_check,
    flat_directions,
    lbfgs,
    lbfgs_memory,
    line_search,
    longest_step,
    state,
)
from cfgd.methods.paper import step
from cfgd.objectives.base import Traits
from cfgd.solve.options import DEFAULT_TOLERANCE

FOLDER = files("cfgd.apps.explore") / "files" / "method"
# the modules whose constants a file of the page repeats
SAME = [
    ("lbfgs.js", lbfgs, "IDLE TOO_IDLE CHECK_EVERY LONGER EXCESS"),
    ("line_search.js", line_search, "ACCEPT MOST_TRIES HIDDEN_SLOPE HIDDEN_CHANGE SLOPE_AT_END"),
    ("lbfgs_memory.js", lbfgs_memory, "PAIRS GROWTH SMALLEST LEAST_COSINE"),
    ("solver_state.js", state, "TRAVELLED BAD_START RAY RAY_GROWTH NEXT_FALL HIDDEN_UNITS"),
    (
        "flat_directions.js",
        flat_directions,
        "NEARLY_FLAT FIRST_DISTANCE DISTANCES RISES CONFIRM_DISTANCES AGREE NEAR_DISTANCES "
        "SAME_VALLEY MOST_LOOKS ROUNDING_UNITS",
    ),
    (
        "curvature_check.js",
        curvature_check,
        "FAR VALLEY_DISTANCE SMALLEST_PROBE SHARE_FAR NOT_ZERO UNMEASURED_UNITS "
        "OTHER_LENGTH MOST_LENGTHS NEAR_QUADRATIC FEW_UNITS",
    ),
    ("curvature_check.js", longest_step, "LONGEST_STEP"),
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
        wanted = np.array(getattr(module, name), float)
        assert json.loads(constant(file, name)) == wanted.tolist(), name


def test_the_constants_of_the_published_rules_are_the_defaults_of_the_library():
    rule, adam = zoo.Liu2023(0.1), zoo.FracAdam2025(0.1)
    wanted = {"DELTA": rule.delta, "LOWER": rule.lower, "UPPER": rule.upper, "TERMS": adam.terms}
    wanted |= {"B1": adam.b1, "B2": adam.b2, "MEMORY": zoo.Xie2022(0.1).terms}
    for name, value in wanted.items():
        assert float(constant("published.js", name)) == value, name
    assert adam.eps == zoo.Herrera2022(0.1).eps == rule.delta


def test_the_least_curvature_is_that_of_double_precision():
    least = lbfgs.LEAST_CHECKED[np.dtype(np.float64)]
    assert float(constant("lbfgs.js", "LEAST_CHECKED")) == least


def test_a_value_costs_the_same():
    cost = Traits("a function").value_cost
    assert float(constant("step.js", "VALUE_COST")) == cost


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
