"""Files larger than memory: the same results, from blocks."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fit_tables import lopsided, targets, write

from cfgd.apps.fit.columns import NumberColumn, TextColumn, encode
from cfgd.apps.fit.conditioning import correlation_matrix
from cfgd.apps.fit.rows import StreamedRows, rows_of_block
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit
from cfgd.apps.fit.split import Split
from cfgd.apps.fit.table_formats import open_table
from cfgd.apps.fit.table_statistics import TableStatistics
from cfgd.apps.fit.target import choose_target

LOSSES = ("squared", "huber", "poisson", "gamma", "logistic", "multinomial")
NAMES = ("a.csv", "a.csv.gz", "a.parquet", "a.feather", "a.npz")
TINY = 2000.0  # bytes, of which a row takes 32


def made(tmp_path, loss, name="a.parquet", rows=700):
    random, columns, eta = lopsided(rows)
    return write(tmp_path / name, columns | {"y": targets(loss, random, eta)})


@pytest.mark.parametrize(
    ("loss", "l2"), [*((loss, 0.0) for loss in LOSSES), ("logistic", 30.0), ("multinomial", 30.0)]
)
def test_streamed_is_as_in_memory(tmp_path, loss, l2):
    """Within 1e-6, coefficients and all that follows from them."""
    path = made(tmp_path, loss)
    held, streamed = (
        fit(FitOptions(path, "y", loss=loss, l2=l2, memory=memory), ProgressReporter())
        for memory in (None, TINY)
    )
    assert (held.streamed, streamed.streamed) == (False, True)
    assert streamed.success
    assert streamed.statistics.row_count > 2 * 256  # more than two blocks
    for mine, theirs in (
        (streamed.model.coefficients, held.model.coefficients),
        (streamed.model.errors, held.model.errors),
        (list(streamed.quality.model.values()), list(held.quality.model.values())),
        (streamed.conditioning.standardised, held.conditioning.standardised),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert streamed.statistics.held_out_count == held.statistics.held_out_count == held.quality.rows


@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_the_same_rows(tmp_path, name):
    path = made(tmp_path, "squared", name)
    found = fit(FitOptions(path, "y", memory=TINY), ProgressReporter())
    want = fit(FitOptions(made(tmp_path, "squared", "b.csv"), "y"), ProgressReporter())
    np.testing.assert_allclose(found.model.coefficients, want.model.coefficients, rtol=1e-6)


def test_rows_are_read_once_for_each_gradient(tmp_path):
    done = fit(FitOptions(made(tmp_path, "logistic"), "y", memory=TINY), ProgressReporter())
    # correlations, standard errors, quality; the rest are looks of the run
    looks = done.passes - 3
    assert done.solution.evaluations - 1 <= looks <= done.solution.evaluations + 2


@pytest.mark.slow
def test_a_penalty_is_chosen_from_the_file_too(tmp_path):
    path = made(tmp_path, "squared", rows=600)
    held, streamed = (
        fit(FitOptions(path, "y", memory=memory, cross_validate=True), ProgressReporter())
        for memory in (None, TINY)
    )
    assert streamed.streamed
    assert held.l2 == streamed.l2
    np.testing.assert_allclose(
        held.cross_validation.losses, streamed.cross_validation.losses, rtol=1e-5
    )


@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_missing_values_are_treated_alike(tmp_path, missing):
    random, columns, eta = lopsided(700)
    columns["large"][::11] = np.nan
    path = write(tmp_path / "a.parquet", columns | {"y": targets("squared", random, eta)})
    held, streamed = (
        fit(FitOptions(path, "y", missing=missing, memory=memory), ProgressReporter())
        for memory in (None, TINY)
    )
    np.testing.assert_allclose(held.model.coefficients, streamed.model.coefficients, rtol=1e-6)
    assert streamed.statistics.left_out_count == (64 if missing == "drop" else 0)


def test_held_out_rows_with_a_new_text_are_counted(tmp_path):
    random, columns, eta = lopsided(700)
    out = np.flatnonzero(np.random.default_rng(0).random(700) < 0.2)
    columns["kind"][out[3]] = "new"
    path = write(tmp_path / "a.parquet", columns | {"y": targets("squared", random, eta)})
    for memory in (None, TINY):
        done = fit(FitOptions(path, "y", memory=memory), ProgressReporter())
        assert (done.unknown_text_rows, done.quality.rows) == (1, len(out) - 1)
        assert done.model.columns[1].levels == ("a", "c & d")


GROWTH = """
import re, sys
from pathlib import Path
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit

def most():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

fit(FitOptions(Path(sys.argv[1]), "y", memory=2000.0), ProgressReporter())  # what is imported once
for memory in (4e6, None):
    Path("/proc/self/clear_refs").write_text("5")  # what was most is forgotten
    before = most()
    done = fit(FitOptions(Path(sys.argv[2]), "y", memory=memory), ProgressReporter())
    assert done.streamed == (memory is not None)
    print(most() - before)
"""


def long(path, groups, width):
    """Row groups of 50,000 rows each."""
    random, columns = np.random.default_rng(0), [f"x{j}" for j in range(width)]
    schema = pa.schema([(name, pa.float64()) for name in [*columns, "y"]])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(groups):
            X = random.normal(size=(50_000, width))
            y = X[:, 0] - 2 * X[:, 1] + X[:, 2] ** 2
            writer.write_table(pa.table([*X.T, y], schema=schema))
    return path


def test_a_pass_has_a_block_in_memory(tmp_path):
    """Of a matrix of 9.6 MB; and a page of a megabyte for each column of a Parquet file."""
    table, split, arrow = open_table(long(tmp_path / "long.parquet", 2, 12)), Split(0.2, 0), []

    def seen(rows):
        arrow.append(pa.total_allocated_bytes())

    before = pa.total_allocated_bytes()
    tracemalloc.start()
    statistics = TableStatistics(table, "y", [], "refuse")
    statistics.collect(split, rows_of_block(1e6, 13), seen)
    known = statistics.columns(), statistics.standardisation(), choose_target(statistics, None)
    rows = StreamedRows(
        table, *known, split, "refuse", rows_of_block(1e6, 12), statistics.training_count, seen
    )
    correlation_matrix(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows.passes == 1
    assert peak < 2.5e6  # the targets of the first 100,000 rows are kept
    assert max(arrow) - before < 13 * 2**20


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc says how much memory was taken")
def test_memory_is_bounded(tmp_path):
    """A process that reads a matrix of 115 MB grows by less than 64 MB, libraries and all."""
    path = long(tmp_path / "long.parquet", 24, 12)
    files = str(made(tmp_path, "squared")), str(path)
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, *files], capture_output=True, text=True, check=True
    )
    streamed, held = map(float, done.stdout.split())
    assert streamed < 64e6 < 115e6 < held


def test_a_matrix_that_is_stored_by_columns_is_read_by_rows(tmp_path):
    X = np.arange(21.0).reshape(7, 3) ** 2
    words = np.array(["one", "two", "three", "four", "five", "six", "ü"])
    whole = np.arange(7, dtype=">i4")
    np.savez(tmp_path / "a.npz", X=np.asfortranarray(X), Y=X, words=words, whole=whole)
    table = open_table(tmp_path / "a.npz")
    assert list(table.types) == ["X_0", "X_1", "X_2", "Y_0", "Y_1", "Y_2", "words", "whole"]
    blocks = list(table.blocks(list(table.types), 3))
    assert [block.num_rows for block in blocks] == [3, 3, 1]
    for j in range(3):
        for name in (f"X_{j}", f"Y_{j}"):
            found = np.concatenate([block.column(name).to_numpy() for block in blocks])
            np.testing.assert_array_equal(found, X[:, j])
    assert [word for block in blocks for word in block.column("words").to_pylist()] == list(words)
    assert [n for block in blocks for n in block.column("whole").to_pylist()] == list(range(7))


def test_a_column_of_csv_is_what_all_of_it_is(tmp_path):
    """Beyond the first block of a megabyte numbers may turn out to be texts."""
    lines = [f"{i},{i % 2},{'' if i < 150_000 else i}" for i in range(200_000)]
    lines[-1] = "199999,maybe,7"
    (tmp_path / "late.csv").write_text("a,b,c\n" + "\n".join(lines), encoding="utf-8")
    table = open_table(tmp_path / "late.csv")
    assert [table.kind(name) for name in "abc"] == ["number", "text", "number"]
    last = list(table.blocks(["c", "b"], 1000))[-1]
    assert (last.column("b")[-1].as_py(), last.column("c")[-1].as_py()) == ("maybe", 7.0)


def test_booleans_and_categories_are_taken(tmp_path):
    table = pa.table(
        {
            "flag": pa.array([True, False, None]),
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
            "small": pa.array([1, 2, 3], pa.int8()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    opened = open_table(tmp_path / "a.parquet")
    assert [opened.kind(name) for name in opened.types] == ["number", "text", "number"]
    (batch,) = opened.blocks(list(opened.types), 10)
    found = encode(
        [NumberColumn("flag", 0.5), TextColumn("kind", "u", ("v",)), NumberColumn("small", 0.0)],
        batch,
    )
    np.testing.assert_array_equal(found.X, [[1, 0, 1], [0, 1, 2], [0.5, 0, 3]])
    np.testing.assert_array_equal(found.missing, [False, False, True])
