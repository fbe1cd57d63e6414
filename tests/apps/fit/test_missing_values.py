"""The policy for missing values decides which rows are left out and what is an error."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from messy_tables import fitted

from cfgd.apps.fit.missing_values import (
    POLICIES,
    check_for_fit,
    check_for_prediction,
    left_out_rows,
)

PATH = Path("a.csv")
KINDS = {"number": "number", "text": "text", "y": "number"}
SECOND_ROW = np.array([False, True])
ALLOWED = {(policy, kind) for policy in ("drop", "mean") for kind in KINDS} - {("mean", "y")}


@pytest.mark.parametrize("policy", POLICIES)
def test_only_drop_leaves_out_rows(policy):
    expected = SECOND_ROW if policy == "drop" else ~np.ones(2, bool)
    np.testing.assert_array_equal(left_out_rows(policy, SECOND_ROW), expected)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", KINDS)
def test_a_fit_refuses_what_the_policy_does_not_allow(policy, name):
    missing = {other: SECOND_ROW & (other == name) for other in KINDS}

    def check():
        check_for_fit(PATH, policy, KINDS, "y", missing, rows_before=10)

    if (policy, name) in ALLOWED:
        check()
        return
    with pytest.raises(ValueError, match="use --missing drop") as error:
        check()
    assert f"a.csv: the column '{name}' has a missing value in row 12" in str(error.value)
    assert ("--missing mean" in str(error.value)) == (policy == "refuse" and name != "y")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_prediction_refuses_what_the_policy_does_not_allow(policy):
    def check():
        check_for_prediction(PATH, policy, "a", SECOND_ROW, rows_before=10)

    if policy != "refuse":
        check()
        return
    with pytest.raises(ValueError, match=f"in row 12, and the model was .* --missing {policy}"):
        check()


def test_a_column_that_is_left_out_leaves_out_no_rows(tmp_path):
    """A column of ticks is constant without the rows that have none."""
    random = np.random.default_rng(0)
    x = random.normal(size=60)
    frame = pd.DataFrame({"x": x, "tick": np.where(x > 0, "x", ""), "y": random.normal(size=60)})
    frame.loc[:4, "x"] = np.nan
    frame.to_csv(tmp_path / "a.csv", index=False)
    result = fitted(tmp_path / "a.csv", missing="drop")
    used = frame.dropna()
    want = np.polyfit(used.x, used.y, 1)
    assert result.model.terms == ["x", "intercept"]
    np.testing.assert_allclose(result.model.coefficients, want, rtol=1e-9)
    assert result.statistics.training_count == 55
    ticks = int(np.sum(frame.tick == ""))
    assert (
        "The column 'tick' is left out: it is constant in the training rows ('x'). It has no value "
        f"in {ticks} rows, which --missing mean makes a level of its own."
    ) in result.sentences
