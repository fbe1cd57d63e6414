"""Several files in one fit give the model of one file with all rows."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
from fit_tables import skewed_columns, targets, write
from pyarrow import csv, parquet

from cfgd.apps.fit.model import read_model
from cfgd.apps.fit.prediction import predict
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit

ROWS = 900
ENDS = (0, 250, 260, ROWS)  # of three files, one of which is short


def table(loss="squared"):
    random, columns, eta = skewed_columns(ROWS)
    columns["large"][::11] = np.nan
    return columns | {"weight": random.integers(1, 4, ROWS), "y": targets(loss, random, eta)}


def write_files(folder, columns, ending=".parquet"):
    folder.mkdir()
    for k, (begin, end) in enumerate(itertools.pairwise(ENDS)):
        part = {name: of[begin:end] for name, of in columns.items()}
        write(folder / f"part{k}{ending}", part)
    return folder


def fit_data(data, **options):
    return fit(FitOptions(data, "y", missing="mean", **options), ProgressReporter())


def saved(result, path):
    result.model.save(path)
    return json.loads(path.read_text(encoding="utf-8"))


def assert_same_models(one, other):
    """All but the name of the data agrees: texts are equal, and numbers to 1e-6."""
    if isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            if name != "data":
                assert_same_models(one[name], other[name])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same_models(a, b)
    elif isinstance(one, float):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-9)
    else:
        assert one == other


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".feather"])
def test_a_folder_is_one_table(tmp_path, ending):
    """In memory and streamed, with categories, missing values and weights."""
    columns = table()
    folder = write_files(tmp_path / "data", columns, ending)
    (folder / "_SUCCESS").write_text("")
    options = {"weights": "weight", "errors": "hc3"}
    whole = fit_data(write(tmp_path / "whole.parquet", columns), **options)
    expected = saved(whole, tmp_path / "whole.json")
    for memory in (None, 15_000.0):
        found = fit_data(folder, memory=memory, **options)
        assert found.streamed == (memory is not None)
        assert_same_models(expected, saved(found, tmp_path / "found.json"))


@pytest.mark.parametrize("kind", ["pattern", "list"])
def test_predictions_of_several_files_are_in_their_order(tmp_path, kind):
    columns = table("logistic")
    folder = write_files(tmp_path / "data", columns)
    whole = write(tmp_path / "whole.parquet", columns)
    data = folder / "*.parquet" if kind == "pattern" else tuple(sorted(folder.iterdir()))
    result = fit_data(data, drop=("weight",))
    name = {"pattern": "*.parquet", "list": "part0.parquet and 2 others"}[kind]
    assert result.model.facts["data"] == name
    result.model.save(tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")
    for source, out in ((data, "files.csv"), (whole, "whole.csv")):
        predict(model, source, tmp_path / out, 1e9, lambda rows: None)
    assert (tmp_path / "files.csv").read_text() == (tmp_path / "whole.csv").read_text()


def test_numbers_of_several_types_and_columns_in_another_order_are_read_alike(tmp_path):
    """A column of integers becomes one of floats in the files in which a value is missing."""
    x = np.arange(60.0) ** 2 % 17
    y = 3 * x + np.arange(60) % 5
    first = pa.table({"x": pa.array(x[:30].astype(int)), "y": y[:30]})
    second = pa.table({"y": y[30:], "x": pa.array([None, *x[31:]])})
    parquet.write_table(first, tmp_path / "a.parquet")
    parquet.write_table(second, tmp_path / "b.parquet")
    found = fit_data(tmp_path, test=0.0)
    filled = np.where(np.arange(60) == 30, np.delete(x, 30).mean(), x)
    expected = np.polyfit(filled, y, 1)
    np.testing.assert_allclose(found.model.coefficients, expected, rtol=1e-10)


def test_a_column_that_is_text_in_one_file_is_text_in_all(tmp_path):
    """As in a single file, whose later rows may have texts."""
    y = np.arange(40.0) ** 2 % 23
    code = np.array(["1", "2"] * 10 + ["b", "1"] * 10)
    for k in (0, 1):
        part = slice(20 * k, 20 * k + 20)
        columns = {"code": code[part], "x": np.sqrt(y[part]), "y": y[part]}
        csv.write_csv(pa.table(columns), tmp_path / f"{k}.csv")
    found = fit_data(tmp_path, category=("code",))
    levels = [column.levels for column in found.model.columns if column.kind == "text"]
    assert levels == [("2", "b")]


def write_texts(folder, *texts):
    for k, text in enumerate(texts):
        (folder / f"{k}.csv").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (("a,y\n1,2\n3,4\n", "b,y\n1,2\n"), r"1\.csv has no column 'a', which .*0\.csv has: all"),
        (("a,y\n1,2\n", "a,b,y\n1,2,3\n"), r"0\.csv has no column 'b', which .*1\.csv has: all"),
        (("a,y\n1,2\n3,5\n", "a,y\n4,\n"), r"1\.csv: the column 'y' has a missing value in row 1"),
        (
            ("a,y\n" + "1,2\n3,5\n" * 9, "a,y\n" + "4,7\n2,2\n" * 9 + "oh,3\n"),
            r"'oh' \(row 19 of 1\.csv\)",
        ),
    ],
)
def test_messages_name_the_file(tmp_path, texts, sentence):
    write_texts(tmp_path, *texts)
    with pytest.raises(ValueError, match=sentence):
        fit_data(tmp_path)


def test_columns_of_another_kind_are_refused(tmp_path):
    write(tmp_path / "a.parquet", {"x": np.arange(9.0), "y": np.arange(9.0)})
    write(tmp_path / "b.parquet", {"x": np.array(["u", "v"]), "y": np.arange(2.0)})
    with pytest.raises(ValueError, match=r"'x' is text in .*b\.parquet and a number in .*a\.parq"):
        fit_data(tmp_path)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (("a.csv", "a.csv"), r"a\.csv is given twice"),
        (("a.csv", "b.jsonl"), "a.csv and 1 other: the files of a table must be of one format"),
        (("*.feather",), "There is no file"),
        (("empty",), "The folder .*empty has no file of"),
    ],
)
def test_what_is_not_one_table_is_refused(tmp_path, data, sentence):
    (tmp_path / "empty").mkdir()
    write_texts(tmp_path, "a,y\n1,2\n")
    (tmp_path / "a.csv").write_text("a,y\n1,2\n")
    (tmp_path / "b.jsonl").write_text('{"a": 1, "y": 2}\n')
    paths = tuple(tmp_path / name for name in data)
    with pytest.raises(ValueError, match=sentence):
        fit_data(paths if len(paths) > 1 else paths[0])
