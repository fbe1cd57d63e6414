"""Levels of columns of texts: rare ones are pooled, the most frequent one is the reference."""

import numpy as np
import pandas as pd
import pytest
from messy_tables import city_table, fitted

from cfgd.apps.fit.report_text import remarks

pytestmark = pytest.mark.every_case


def test_rare_levels_are_pooled_and_the_reference_is_the_most_frequent(tmp_path):
    frame = city_table()
    frame.to_csv(tmp_path / "a.csv", index=False)
    model = fitted(tmp_path / "a.csv").model
    assert model.terms == ["x", "city = Köln", "city = Ulm", "city = other", "intercept"]
    assert (model.columns[1].base, model.columns[1].rare) == ("Bonn", ("Aa", "Bb"))
    other = frame.city.isin(["Aa", "Bb"])
    X = np.column_stack(
        [frame.x, frame.city == "Köln", frame.city == "Ulm", other, np.ones(400)]
    ).astype(float)
    np.testing.assert_allclose(model.coefficients, np.linalg.lstsq(X, frame.y)[0], rtol=1e-6)


@pytest.mark.slow
def test_reference_and_rare_can_be_given(tmp_path):
    city_table().to_csv(tmp_path / "a.csv", index=False)
    model = fitted(tmp_path / "a.csv", reference=("city=Ulm",), rare=0).model
    assert model.terms == ["x", "city = Aa", "city = Bb", "city = Bonn", "city = Köln", "intercept"]
    with pytest.raises(
        ValueError, match=r"^--reference: no training row has 'city' = 'Rom', only 'Aa', "
    ):
        fitted(tmp_path / "a.csv", reference=("city=Rom",))
    with pytest.raises(
        ValueError, match=r"^--reference: 'x' is no column of texts; there are 'city'\.$"
    ):
        fitted(tmp_path / "a.csv", reference=("x=1",))


@pytest.mark.slow
def test_the_reference_level_does_not_depend_on_the_seed(tmp_path):
    """Two levels have 50 and 49 of 99 rows: in many training rows the second is more frequent."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": random.normal(size=99), "t": ["a"] * 49 + ["b"] * 50, "y": random.normal(size=99)}
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    models = [fitted(tmp_path / "a.csv", test=0.4, seed=seed).model for seed in range(4)]
    assert {model.columns[1].base for model in models} == {"b"}


def test_missing_texts_are_a_level_with_missing_mean(tmp_path):
    frame = city_table()
    frame.loc[10:60, "city"] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    result = fitted(tmp_path / "a.csv", missing="mean", rare=0)
    model = result.model
    said = [sentence for sentence in remarks(result) if sentence.startswith("Missing")]
    assert said == ["Missing texts are the level '(missing)': 'city' (51 rows)."]
    levels = ["(missing)", "Aa", "Bb", "Köln", "Ulm"]
    assert model.terms == ["x", *(f"city = {level}" for level in levels), "intercept"]
    city = frame.city.fillna("(missing)")
    X = np.column_stack([frame.x, *(city == level for level in levels), np.ones(400)]).astype(float)
    np.testing.assert_allclose(model.coefficients, np.linalg.lstsq(X, frame.y)[0], rtol=1e-6)


def test_imputed_numbers_are_counted(tmp_path):
    frame = city_table()
    frame.loc[3:9, "x"] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    sentence = "Missing numbers are replaced by the mean of their column: 'x' (7 rows)."
    assert sentence in remarks(fitted(tmp_path / "a.csv", missing="mean"))
    said = remarks(fitted(tmp_path / "a.csv", missing="drop"))
    assert not any(each.startswith("Missing") for each in said)


@pytest.mark.parametrize(
    ("l2", "noise", "is_said"), [(0.0, 0.05, True), (1.0, 0.05, False), (0.0, 2.0, False)]
)
def test_high_collinearity_has_a_remedy(tmp_path, l2, noise, is_said):
    random = np.random.default_rng(0)
    u = random.normal(size=200)
    near = u + noise * random.normal(size=200)
    y = u + random.normal(size=200)
    pd.DataFrame({"u": u, "near": near, "y": y}).to_csv(tmp_path / "a.csv", index=False)
    said = " ".join(remarks(fitted(tmp_path / "a.csv", l2=l2)))
    assert ("with --drop, or add a penalty with --l2" in said) == is_said


def test_a_column_with_few_rows_for_each_level_is_warned_of(tmp_path):
    random = np.random.default_rng(0)
    rows = {"x": random.normal(size=60), "y": random.normal(size=60)}
    for levels, is_warned in ((25, True), (12, False)):
        frame = pd.DataFrame(rows | {"code": [f"k{i % levels}" for i in range(60)]})
        frame.to_csv(tmp_path / "a.csv", index=False)
        said = " ".join(remarks(fitted(tmp_path / "a.csv", rare=0)))
        warning = f"Warning: the column 'code' has {levels} levels in 60 training rows: "
        assert (warning in said) == is_warned
