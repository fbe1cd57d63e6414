"""Files that claim more than they hold, or would harm: one sentence, within the memory."""

import gzip
import os
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather
from typer.testing import CliRunner

import cfgd
from cfgd.apps.cli import app
from cfgd.apps.fit.columns import NumberColumn
from cfgd.apps.fit.model import Model, read_model
from cfgd.apps.fit.prediction import predict, spreadsheet_text
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit
from cfgd.apps.fit.table_formats import open_table

pytestmark = pytest.mark.every_case

MEMORY = 50e6


def error_of(path, read):
    with pytest.raises(ValueError, match=r"\.$") as error:
        read(path)
    message = str(error.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def fit_table(path):
    fit(FitOptions(path, "y", memory=MEMORY), ProgressReporter())


def columns(rows=120):
    random = np.random.default_rng(0)
    return {
        "x": random.normal(size=rows),
        "z": (["a", "b", "c"] * rows)[:rows],
        "y": random.normal(size=rows),
    }


def test_feather_with_wrong_offsets_of_texts(tmp_path):
    """Without validation pyarrow reads 2 GB beyond its memory, which ends the process."""
    path = tmp_path / "a.feather"
    table = pa.table(columns())
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    raw = bytearray(path.read_bytes())
    at = raw.index(np.arange(121, dtype="<i4").tobytes()) + 240
    raw[at : at + 8] = np.array([0x7FFFFFF0, 0x7FFFFFF8], "<i4").tobytes()
    path.write_bytes(raw)
    # in the order of columns in the file: this reads the texts first
    assert "Offset invariant failure" in error_of(path, fit_table)
    table = open_table(path, MEMORY)
    with pytest.raises(ValueError, match="Offset invariant failure"):
        next(table.blocks(["z"], 100))


def test_categories_with_wrong_indices(tmp_path):
    """Bytes of the indices are changed in the file."""
    path = tmp_path / "a.feather"
    indices = np.arange(3, dtype=np.int32).repeat(40)
    categories = pa.DictionaryArray.from_arrays(pa.array(indices), ["a", "b", "c"])
    table = pa.table(columns() | {"z": categories})
    feather.write_feather(table, path, compression="uncompressed")
    raw = bytearray(path.read_bytes())
    at = raw.index(indices.astype("<i4").tobytes())
    raw[at : at + 4] = (2**30).to_bytes(4, "little")
    path.write_bytes(raw)
    assert "out of bounds" in error_of(path, fit_table)


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_a_long_text_for_each_of_many_rows_is_not_expanded(ending, tmp_path):
    """The file names a text of 1 MB in 10,000 rows: 10 GB, of which none is read."""
    path = tmp_path / f"a.{ending}"
    texts = pa.array(["a" * 10**6, "b"])
    z = pa.DictionaryArray.from_arrays(pa.array(np.arange(10_000, dtype=np.int32) % 2), texts)
    table = pa.table({"z": z, "y": np.arange(1e4)})
    if ending == "parquet":
        pq.write_table(table, path, store_schema=False)  # reads as plain texts
    else:
        feather.write_feather(table, path)
    before = pa.total_allocated_bytes()
    message = error_of(path, fit_table)
    assert message.endswith(
        "the column 'z' has a text of 1,000,000 bytes, too long for categories: leave it out with "
        "--drop z."
    )
    assert pa.default_memory_pool().max_memory() - before < MEMORY


def npy(shape, dtype="<f8", content=b""):
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + content


ZEROS = bytes(30_000_000)
ARCHIVES = {
    "a shape that the file does not hold": (
        npy((3, 10**12)),
        "takes 24,000,000,000,000 bytes, in 0",
    ),
    "many columns of nothing": (npy((0, 10**12)), "it has 1e+12 columns, too many for"),
    "many columns": (npy((3, 10**7), "|b1", ZEROS), "it has 1e+07 columns, too many for"),
    "one long row": (npy((3,), "<U2500000", ZEROS), "one row takes 1e+07 bytes, and"),
}


@pytest.mark.parametrize(("content", "message"), ARCHIVES.values(), ids=ARCHIVES)
def test_npz_that_claims_more_than_the_memory(content, message, tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", content)
        archive.writestr("y.npy", npy((3,), content=bytes(24)))

    def read(path):
        fit(FitOptions(path, "y", memory=10e6), ProgressReporter())

    assert message in error_of(path, read)


@pytest.mark.parametrize("ending", ["npy", "npz", "parquet"])
def test_blocks_name_the_file_that_cannot_be_read(ending, tmp_path):
    path, y = tmp_path / f"a.{ending}", tmp_path / "y.npy"
    np.save(y, np.ones(3))
    if ending == "npy":
        path.write_bytes(npy((3, 10**12)))
    elif ending == "npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", npy((3, 10**12)))
            archive.writestr("y.npy", y.read_bytes())
    else:
        pq.write_table(pa.table({"y": np.ones(100), "x": np.arange(100.0)}), path)
        path.write_bytes(path.read_bytes()[:40] + b"\xff" * 40 + path.read_bytes()[80:])

    def read(path):
        given = {"npy": {"y": [y]}, "parquet": {"target": "y"}}.get(ending, {})
        cfgd.Blocks([path], loss="squared", **given)

    message = error_of(path, read)
    assert message.startswith("`Blocks(source=...)` must be files that can be read, got ")


def test_texts_in_parquet_are_refused_by_blocks(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns()), path)
    message = error_of(path, lambda path: cfgd.Blocks([path], target="y", loss="squared"))
    assert message.endswith("got 'z' of type string.")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [1e200, -1e200],
            "must be at most 1e+140 in size, so that squares can be added, got 1e+200",
        ),
        ([1e-200, -1e-200], "varies so little around "),
    ],
)
@pytest.mark.parametrize("name", ["x", "y"])
def test_numbers_whose_squares_no_float_holds(name, values, message, tmp_path):
    table = columns()
    table[name] = np.array(values * 60)
    csv.write_csv(pa.table(table), tmp_path / "a.csv")
    assert f"the column {name!r} {message}" in error_of(tmp_path / "a.csv", fit_table)


# ------------------------------------------------------------------------------------- long names


@pytest.mark.slow  # the figures of the report
def test_columns_and_labels_of_300_characters(tmp_path):
    random, column, label = np.random.default_rng(0), "c" * 300, "l" * 300
    x = random.normal(size=200)
    y = np.where(x + random.normal(size=200) > 0, label, "no")
    csv.write_csv(pa.table({column: x, "t" * 300: y}), tmp_path / "a.csv")
    run = CliRunner().invoke
    out = tmp_path / "out"
    done = run(app, ["fit", str(tmp_path / "a.csv"), "--target", "t" * 300, "--out", str(out)])
    assert done.exit_code == 0, done.output
    model = str(out / "model.json")
    done = run(app, ["predict", model, str(tmp_path / "a.csv"), "-o", str(tmp_path / "p.csv")])
    assert done.exit_code == 0, done.output
    assert csv.read_csv(tmp_path / "p.csv").column_names[1] == f"probability of {label}"


LONG = "x" * 300


@pytest.mark.parametrize(
    "words",
    [
        ["fit", f"{LONG}.csv", "--target", "y"],
        ["fit", "a.csv", "--target", "y", "--out", LONG],
        ["fit", "a.csv", "--target", "y", "--checkpoint", LONG],
        ["predict", "model.json", f"{LONG}.csv", "-o", "p.csv"],
        ["predict", "model.json", "a.csv", "-o", f"{LONG}.csv"],
        ["predict", LONG, "a.csv", "-o", "p.csv"],
    ],
)
def test_names_of_files_that_are_too_long_are_one_sentence(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv.write_csv(pa.table(columns()), "a.csv")
    MODEL.save(tmp_path / "model.json")
    done = CliRunner().invoke(app, words, env={"COLUMNS": "500"})
    assert done.exit_code == 2
    assert done.output.endswith("File name too long.\n") or "File name too long)" in done.output
    assert done.output.count("\n") == 1


# ------------------------------------------------------------------------------------- predictions

MODEL = Model(
    "y", "logistic", ("=1+1", "no"), "drop", (NumberColumn("x", 0.0),), np.ones(2), None, {}
)

# what a spreadsheet would run, and labels that are in use
FORMULAS = ["=HYPERLINK(1)", "=1+1", "@SUM(A1)", "+1+1", "-2+3+cmd|' /C calc'!A0", "\t=1", "\r=1"]
PLAIN = ["+", "-", "-12a", "+49 123", "a=b", "'s", "1-2", "no", "", "-1.5", "ü"]


def test_texts_that_a_spreadsheet_would_run_get_an_apostrophe():
    for text in FORMULAS:
        assert spreadsheet_text(text) == f"'{text}"
        assert spreadsheet_text(f"'{text}") == f"''{text}"
    for text in PLAIN:
        assert spreadsheet_text(text) == text
    texts = FORMULAS + PLAIN + [f"'{text}" for text in FORMULAS]
    assert len({spreadsheet_text(text) for text in texts}) == len(texts)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".feather"])
def test_labels_are_escaped_in_csv_alone(ending, tmp_path):
    csv.write_csv(pa.table({"x": [-9.0, 9.0]}), tmp_path / "a.csv")
    out = tmp_path / f"p{ending}"
    predict(MODEL, tmp_path / "a.csv", out, MEMORY, lambda rows: None)
    if ending.startswith(".csv"):
        raw = gzip.decompress(out.read_bytes()) if ending == ".csv.gz" else out.read_bytes()
        lines = [line.split(",") for line in raw.decode().splitlines()]
        assert lines[0] == ['"prediction"', '"probability of =1+1"', '"probability of no"']
        assert [line[0] for line in lines[1:]] == ['"\'=1+1"', '"no"']
    else:
        read = pq.read_table if ending == ".parquet" else feather.read_table
        assert read(out).column("prediction").to_pylist() == ["=1+1", "no"]


def test_labels_beyond_integers_are_written_as_numbers(tmp_path):
    csv.write_csv(pa.table({"x": [-9.0, 9.0]}), tmp_path / "a.csv")
    model = Model("y", "logistic", (0.0, 1e300), "drop", MODEL.columns, np.ones(2), None, {})
    predict(model, tmp_path / "a.csv", tmp_path / "p.parquet", MEMORY, lambda rows: None)
    assert pq.read_table(tmp_path / "p.parquet").column(0).to_pylist() == [0.0, 1e300]


def test_a_prediction_that_overflows_is_one_sentence(tmp_path):
    csv.write_csv(pa.table({"x": [-9.0, 9.0]}), tmp_path / "a.csv")
    model = Model("y", "squared", (), "drop", MODEL.columns, np.array([1e308, 0]), None, {})
    with pytest.raises(ValueError, match=r"^A prediction of 'y' is not finite: .*too large\.$"):
        predict(model, tmp_path / "a.csv", tmp_path / "p.csv", MEMORY, lambda rows: None)
    assert not (tmp_path / "p.csv").exists()


def test_model_and_predictions_are_synced_and_keep_their_mode(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync
    monkeypatch.setattr("os.fsync", lambda handle: (synced.append(handle), fsync(handle)))
    csv.write_csv(pa.table({"x": [-9.0, 9.0]}), tmp_path / "a.csv")
    for name in ("model.json", "p.csv"):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).chmod(0o600)
    MODEL.save(tmp_path / "model.json")
    assert len(synced) == 2  # the file and its folder
    read = read_model(tmp_path / "model.json")
    predict(read, tmp_path / "a.csv", tmp_path / "p.csv", MEMORY, lambda rows: None)
    assert len(synced) == 4
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("model.json", "p.csv")]
    assert modes == [0o600, 0o600]
