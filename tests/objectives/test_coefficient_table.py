"""The table of coefficients, beside the numbers of SciPy's distributions."""

import numpy as np
import pytest
from scipy import stats

from cfgd.objectives.linear.coefficient_table import CoefficientTable

ESTIMATES, ERRORS = np.array([1.5, -0.2, 3.0]), np.array([0.5, 0.4, np.inf])


def table(**more):
    return CoefficientTable(("a", "b", "c"), ESTIMATES, ERRORS, **more)


@pytest.mark.parametrize(
    ("more", "law"), [({"distribution": "t", "dof": 5}, stats.t(5)), ({}, stats.norm())]
)
@pytest.mark.every_case
def test_statistics_p_values_and_intervals(more, law):
    found = table(**more)
    np.testing.assert_allclose(found.statistics[:2], [3.0, -0.5])
    np.testing.assert_allclose(found.p_values[:2], 2 * law.sf([3.0, 0.5]), rtol=1e-12)
    reach = law.ppf(0.95) * ERRORS[:2]
    np.testing.assert_allclose(
        found.intervals(0.9)[:2], np.stack([ESTIMATES[:2] - reach, ESTIMATES[:2] + reach], 1)
    )
    assert np.isnan(found.p_values[2])
    assert found.intervals()[2].tolist() == [-np.inf, np.inf]


def test_penalised_estimates_have_no_interval_and_no_p_value():
    found = table(is_penalised=True)
    assert np.all(np.isnan(found.p_values))
    assert np.all(np.isnan(found.intervals()))
    assert "P>" not in str(found)
    assert "std err" in str(found)


def test_the_text_has_a_section_for_each_class():
    pair = np.stack([ESTIMATES, 2 * ESTIMATES], 1), np.stack([ERRORS, ERRORS], 1)
    found = CoefficientTable(
        ("a", "b", "c"), *pair, classes=("red", "blue"), title="Colours", facts=(("rows", "7"),)
    )
    lines = str(found).splitlines()
    assert lines[0] == "Colours"
    assert lines[1].split() == ["rows:", "7"]
    headings = [i for i, line in enumerate(lines) if line.endswith("---")]
    assert [lines[i].split()[0] for i in headings] == ["red", "blue"]
    assert lines[headings[1] + 1].split()[:2] == ["a", "3.0000"]
    assert lines[-1].split() == ["c", "6.0000", "-", "-", "-", "-", "-"]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="distribution"):
        table(distribution="F")
    with pytest.raises(ValueError, match="errors"):
        CoefficientTable(("a",), [1.0], [1.0, 2.0])


def test_a_fact_that_is_too_long_for_half_a_line_has_its_own():
    """No name runs into its value, and no line is wider than the table."""
    facts = (
        ("Target", "y"),
        ("Rows", "7"),
        ("accuracy", "0.5"),
        ("area under the ROC curve (held out)", "0.726967"),
        ("Standard errors", "classical"),
        ("log loss", "1"),
    )
    lines = str(table(facts=facts)).splitlines()[:4]
    assert [line.split(":")[0] for line in lines] == [
        "Target", "accuracy", "area under the ROC curve (held out)", "Standard errors",
    ]  # fmt: skip
    assert lines[2].split(":")[1].strip() == "0.726967"
    assert "curve (held out): " in lines[2]
    assert max(map(len, lines)) == len(str(table()).splitlines()[1])
