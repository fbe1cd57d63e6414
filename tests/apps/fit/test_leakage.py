"""Columns that hold the target in another form, and errors of rounding, are warned of."""

import numpy as np
import pytest
from fit_tables import split_numbers, write
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score, roc_auc_score

from cfgd.apps.fit.report_text import remarks
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit

ROWS = 200


def run(folder, columns, **options):
    path = write(folder / "a.parquet", columns)
    return fit(FitOptions(path, "y", **options), ProgressReporter())


def noisy():
    random = np.random.default_rng(2)
    a, b = random.normal(size=(2, ROWS))
    k = random.choice(["p", "q", "r"], ROWS)
    return random, {"a": a, "b": b, "k": k, "y": a - b + random.normal(size=ROWS)}


def test_ordinary_columns_are_not_warned_of(tmp_path):
    _, columns = noisy()
    result = run(tmp_path, columns)
    assert result.leaks == ()
    assert "Warning" not in " ".join(remarks(result))


def test_a_column_that_is_nearly_the_target_is_named(tmp_path):
    random, columns = noisy()
    columns["later"] = 3e6 + 5 * columns["y"] + 0.02 * random.normal(size=ROWS)
    result = run(tmp_path, columns, seed=1)
    (leak,) = result.leaks
    out = split_numbers(1, ROWS) < 0.2
    x, y = columns["later"][:, None], columns["y"]
    model = LinearRegression().fit(x[~out], y[~out])
    assert leak.column == "later"
    assert leak.value == pytest.approx(r2_score(y[out], model.predict(x[out])), abs=1e-9)
    assert (
        "Warning: the column 'later' alone explains the target, with an R squared of 0.99"
        in (remarks(result)[0])
    )


def test_texts_that_determine_a_number_are_named(tmp_path):
    random, columns = noisy()
    group = np.array(["u", "v", "w", "x"])[random.integers(0, 4, ROWS)]
    effect = {"u": 1.0, "v": 20.0, "w": -7.0, "x": 3.5}
    columns["y"] = np.array([effect[g] for g in group]) + 1e-3 * random.normal(size=ROWS)
    result = run(tmp_path, columns | {"group": group})
    assert [leak.column for leak in result.leaks] == ["group"]
    assert result.leaks[0].value > 0.99999


@pytest.mark.parametrize("is_text", [False, True])
def test_a_column_that_separates_two_classes_is_named(tmp_path, is_text):
    random, columns = noisy()
    y = (columns["y"] > 0).astype(int)
    columns["after"] = np.exp(y + 0.3 * random.random(ROWS))
    columns["after"][:2] = columns["after"][:2][::-1]
    if is_text:
        columns["after"] = np.where(y, "paid", np.where(columns["a"] > 0, "open", "late"))
    columns["y"] = np.where(y, "yes", "no")
    result = run(tmp_path, columns, l2=1.0)
    assert [leak.column for leak in result.leaks] == ["after"]
    out = split_numbers(0, ROWS) < 0.2
    score = (columns["after"] == "paid") * 1.0 if is_text else columns["after"]
    assert result.leaks[0].value == pytest.approx(roc_auc_score(y[out], score[out]))


def test_errors_of_the_size_of_rounding_are_warned_of(tmp_path):
    _, columns = noisy()
    columns["y"] = 2 * columns["a"] - 3 * columns["b"]
    result = run(tmp_path, columns)
    assert result.leaks == ()  # neither column explains it alone
    assert "is of the size of rounding" in " ".join(remarks(result))
