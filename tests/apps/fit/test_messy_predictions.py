# ruff: noqa: E501 - each file is one line
"""Predictions for files that are written in another way than the training data."""

import json

import numpy as np
import pandas as pd
import pytest
from messy_tables import MEMORY, city_table, fitted, write
from typer.testing import CliRunner

from cfgd.apps.cli import app
from cfgd.apps.fit.model import read_model
from cfgd.apps.fit.prediction import predict

pytestmark = pytest.mark.every_case


def run(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "500"})
    assert done.exit_code == 0, done.output
    return done.output


def test_predictions_of_a_messy_file(tmp_path):
    """Fitted to semicolons with decimal commas, and applied to plain CSV with other dates and texts."""
    random = np.random.default_rng(1)
    rows = 60
    frame = pd.DataFrame({
        "kunde": [f"K{i:03d}" for i in range(rows)],
        "preis": (1000 + 500 * random.random(rows)).round(2),
        "wann": pd.Timestamp("2024-01-05") + pd.to_timedelta(random.integers(0, 300, rows), "D"),
        "stadt": random.choice(["Bonn", "Bonn", "Köln"], rows),
        "bezahlt": random.choice(["yes", "no"], rows),
    })  # fmt: skip
    frame.loc[0, "wann"] = pd.Timestamp("2024-01-05")
    frame["y"] = 0.01 * frame.preis + random.normal(size=rows).round(3)
    messy = frame.assign(
        preis=[f"{v:,.2f} €".translate(str.maketrans(",.", ".,")) for v in frame.preis],
        wann=frame.wann.dt.strftime("%d.%m.%Y"),
    )
    messy.to_csv(tmp_path / "train.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    said = run("fit", tmp_path / "train.csv", "--target", "y", "--test", 0, "--out", tmp_path)
    for sentence in (
        "train.csv is read as semicolon-separated Latin-1 with decimal commas.",
        "The column 'preis' is a number, without the sign €.",
        "The column 'wann' is a date, read as days since 2024-01-05.",
        "The column 'bezahlt' is read as 1 for 'yes' and 0 for 'no'.",
        "The column 'kunde' is left out as an id: it has a different text in every row (--keep kunde uses it).",
    ):
        assert sentence in said
    model = read_model(tmp_path / "model.json")
    assert model.terms == ["preis", "wann", "stadt = Köln", "bezahlt", "intercept"]
    days = (frame.wann - pd.Timestamp("2024-01-05")).dt.days
    X = np.column_stack(
        [frame.preis, days, frame.stadt == "Köln", frame.bezahlt == "yes", np.ones(rows)]
    ).astype(float)
    w = np.linalg.lstsq(X, frame.y)[0]
    np.testing.assert_allclose(model.coefficients, w, rtol=1e-6)

    new = pd.DataFrame(
        {
            "kunde": ["007", "=1+1"],
            "preis": [1.5, 2],
            "wann": ["2025-01-05", "2024-01-06"],
            "stadt": ["Rom", "Köln"],
            "bezahlt": ["True", "no"],
        }
    )
    new.to_csv(tmp_path / "new.csv", index=False)
    said = run("predict", tmp_path / "model.json", tmp_path / "new.csv", "-o", tmp_path / "p.csv")
    assert (
        "Warning: 1 row has a level of 'stadt' that no training row has; it is treated as 'Bonn'."
        in said
    )
    written = pd.read_csv(tmp_path / "p.csv", dtype={"kunde": str})
    assert list(written) == ["kunde", "prediction"]
    assert written.kunde.tolist() == ["007", "'=1+1"]
    X = np.array([[1.5, 366, 0, 1, 1], [2, 1, 1, 0, 1]])
    np.testing.assert_allclose(written.prediction, X @ w, rtol=1e-6)
    for name in ("stadt", "wann"):
        run(
            "predict",
            tmp_path / "model.json",
            tmp_path / "new.csv",
            "-o",
            tmp_path / "q.csv",
            "--id",
            name,
        )
        assert list(pd.read_csv(tmp_path / "q.csv")) == [name, "kunde", "prediction"]


def test_what_the_model_does_not_tell_about_a_file_is_asked_or_said(tmp_path):
    """Days and months where the training data had neither first, and thousands."""
    random = np.random.default_rng(0)
    when = [f"2024-{m:02d}-{d:02d}" for m in (1, 3, 5) for d in range(1, 21)]
    x = random.normal(size=60).round(2)
    frame = pd.DataFrame({"when": when, "x": x, "y": x + random.normal(size=60)})
    frame.loc[5, "x"] = np.nan
    frame.to_csv(tmp_path / "a.csv", index=False)
    fitted(tmp_path / "a.csv", missing="drop").model.save(tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")

    def predicted(**columns):
        new = pd.DataFrame({"when": when[:3], "x": [1, 2, 3]} | columns)
        new.to_csv(tmp_path / "b.csv", index=False)
        written = predict(model, tmp_path / "b.csv", tmp_path / "p.csv", MEMORY, lambda rows: None)
        return written.sentences, pd.read_csv(tmp_path / "p.csv").prediction.to_numpy()

    sentences, plain = predicted()
    assert sentences == []
    american = ["01/01/2024", "01/02/2024", "01/13/2024"]
    np.testing.assert_allclose(predicted(when=american)[1][:2], plain[:2], rtol=1e-12)
    with pytest.raises(ValueError, match="nothing tells whether '01/02/2024' has the month or the"):
        predicted(when=["01/01/2024", "01/02/2024", "01/03/2024"])
    sentences, found = predicted(x=["1,000", "2,000", ""])
    assert sentences == [
        "In 'x' the sign ',' separates thousands, since other numbers have decimal points.",
        "Warning: 1 row has a missing value, and no prediction.",
    ]
    assert np.isnan(found[2])


def test_a_pool_takes_texts_that_no_training_row_has(tmp_path):
    city_table().to_csv(tmp_path / "a.csv", index=False)
    model = fitted(tmp_path / "a.csv").model
    model.save(tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")
    pd.DataFrame({"x": [0, 0, 0], "city": ["Rom", "Aa", "Ulm"]}).to_csv(
        tmp_path / "b.csv", index=False
    )
    written = predict(model, tmp_path / "b.csv", tmp_path / "p.csv", MEMORY, lambda rows: None)
    assert written.sentences == [
        "Warning: 1 row has a level of 'city' that no training row has; it is treated as 'other'."
    ]
    found = pd.read_csv(tmp_path / "p.csv").prediction
    w = dict(zip(model.terms, model.coefficients, strict=True))
    pool, ulm = w["intercept"] + w["city = other"], w["intercept"] + w["city = Ulm"]
    np.testing.assert_allclose(found, [pool, pool, ulm], rtol=1e-12)


def test_models_without_a_field_for_reading_are_read(tmp_path):
    """As model.json was before files were read as they are."""
    saved = {
        "format": "cfgd model 1", "target": "y", "loss": "squared", "labels": [], "missing": "refuse",
        "columns": [{"name": "x", "kind": "number", "mean": 0.5}, {"name": "t", "kind": "text", "base": "a", "levels": ["b"]}],
        "terms": [{"term": term, "coefficient": [w], "standard error": None} for term, w in (("x", 2.0), ("t = b", 3.0), ("intercept", 1.0))],
        "facts": {},
    }  # fmt: skip
    write(tmp_path, "model.json", json.dumps(saved))
    write(tmp_path, "a.csv", "x;t\n1,5;b\n2;a\n2;c\n")
    predict(
        read_model(tmp_path / "model.json"),
        tmp_path / "a.csv",
        tmp_path / "p.csv",
        MEMORY,
        lambda rows: None,
    )
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv").prediction, [7, 5, 5])
