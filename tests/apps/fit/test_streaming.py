"""Streamed fits of files larger than memory give the results of fits in memory."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fit_tables import skewed_columns, split_numbers, targets, write

from cfgd.apps.fit.columns import NumberColumn, TextColumn, encode
from cfgd.apps.fit.conditioning import correlation_matrix
from cfgd.apps.fit.encoder import Encoder
from cfgd.apps.fit.reading import read_for_fit
from cfgd.apps.fit.reading_options import ReadingOptions
from cfgd.apps.fit.row_block import rows_of_block
from cfgd.apps.fit.rows import StreamedRows
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit
from cfgd.apps.fit.split import Split
from cfgd.apps.fit.table_formats import open_table
from cfgd.apps.fit.table_statistics import TableStatistics
from cfgd.apps.fit.target import choose_target

LOSSES = ("squared", "huber", "poisson", "gamma", "logistic", "multinomial")
NAMES = ("a.csv", "a.csv.gz", "a.parquet", "a.feather", "a.npz")
ROWS = 1000  # which take 32,000 bytes as numbers
GRADIENTS_ONLY = 2000.0  # bytes of --memory: too few for the Hessian of any model
WITH_HESSIAN = 30_000.0  # bytes: enough for the Hessian of 15 coefficients, too few for the rows
EXTRA_PASSES = 7  # correlations, checks of Blocks, standard errors, quality (2), leakage (2)


def write_table(tmp_path, loss, name="a.parquet", rows=ROWS):
    random, columns, eta = skewed_columns(rows)
    return write(tmp_path / name, columns | {"y": targets(loss, random, eta)})


def fit_table(path, **options):
    return fit(FitOptions(path, "y", **options), ProgressReporter())


@pytest.mark.one_case
@pytest.mark.parametrize("memory", [GRADIENTS_ONLY, WITH_HESSIAN])
@pytest.mark.parametrize(
    ("loss", "l2"), [*((loss, 0.0) for loss in LOSSES), ("logistic", 30.0), ("multinomial", 30.0)]
)
def test_streamed_fit_equals_the_fit_in_memory(tmp_path, loss, l2, memory):
    """Coefficients, standard errors, quality and conditioning agree within 1e-6."""
    path = write_table(tmp_path, loss)
    in_memory = fit_table(path, loss=loss, l2=l2)
    streamed = fit_table(path, loss=loss, l2=l2, memory=memory)
    assert (in_memory.streamed, streamed.streamed) == (False, True)
    assert streamed.success
    for actual, expected in (
        (streamed.model.coefficients, in_memory.model.coefficients),
        (streamed.model.errors, in_memory.model.errors),
        (list(streamed.quality.model.values()), list(in_memory.quality.model.values())),
        (streamed.conditioning.standardised, in_memory.conditioning.standardised),
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
    held_out = in_memory.statistics.held_out_count
    assert streamed.statistics.held_out_count == held_out == in_memory.quality.rows


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_same_rows(tmp_path, name):
    streamed = fit_table(write_table(tmp_path, "squared", name), memory=WITH_HESSIAN)
    in_memory = fit_table(write_table(tmp_path, "squared", "b.csv"))
    np.testing.assert_allclose(streamed.model.coefficients, in_memory.model.coefficients, rtol=1e-6)


@pytest.mark.one_case
@pytest.mark.parametrize("memory", [GRADIENTS_ONLY, WITH_HESSIAN])
def test_each_evaluation_is_one_pass(tmp_path, memory):
    result = fit_table(write_table(tmp_path, "logistic"), memory=memory)
    assert result.passes == result.solution.evaluations + EXTRA_PASSES


@pytest.mark.parametrize("loss", LOSSES)
def test_the_hessian_comes_with_the_gradient(tmp_path, loss):
    """So that a fit takes about as many passes as Newton's method takes iterations."""
    path = write_table(tmp_path, loss)
    newton, gradients = (
        fit_table(path, loss=loss, memory=memory).solution
        for memory in (WITH_HESSIAN, GRADIENTS_ONLY)
    )
    assert newton.success
    assert newton.evaluations <= 12  # Huber's loss takes 11: its Hessian jumps
    assert newton.evaluations < gradients.evaluations / 1.5


@pytest.mark.slow
def test_streamed_fit_resumes_from_a_checkpoint(tmp_path):
    path = write_table(tmp_path, "logistic")
    options = {"memory": GRADIENTS_ONLY, "checkpoint": tmp_path / "run.npz"}
    first, second = (fit_table(path, **options) for _ in range(2))
    np.testing.assert_array_equal(first.model.coefficients, second.model.coefficients)
    assert second.passes < first.passes / 2


@pytest.mark.slow
def test_cross_validation_chooses_the_same_penalty(tmp_path):
    path = write_table(tmp_path, "squared")
    in_memory = fit_table(path, cross_validate=True)
    streamed = fit_table(path, cross_validate=True, memory=WITH_HESSIAN)
    assert streamed.streamed
    assert in_memory.l2 == streamed.l2
    np.testing.assert_allclose(
        in_memory.cross_validation.losses, streamed.cross_validation.losses, rtol=1e-5
    )


@pytest.mark.one_case
@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_missing_values_are_treated_alike(tmp_path, missing):
    random, columns, eta = skewed_columns(ROWS)
    columns["large"][::11] = np.nan
    path = write(tmp_path / "a.parquet", columns | {"y": targets("squared", random, eta)})
    in_memory = fit_table(path, missing=missing)
    streamed = fit_table(path, missing=missing, memory=GRADIENTS_ONLY)
    assert streamed.streamed
    np.testing.assert_allclose(in_memory.model.coefficients, streamed.model.coefficients, rtol=1e-6)
    assert streamed.statistics.left_out_count == (91 if missing == "drop" else 0)


@pytest.mark.slow
def test_held_out_rows_with_an_unknown_text_count_as_the_reference_level(tmp_path):
    random, columns, eta = skewed_columns(700)
    held_out = np.flatnonzero(split_numbers(0, 700) < 0.2)
    columns["kind"][held_out[3]] = "new"
    path = write(tmp_path / "a.parquet", columns | {"y": targets("squared", random, eta)})
    for memory in (None, GRADIENTS_ONLY):
        result = fit_table(path, memory=memory)
        assert (result.unknown_text_rows, result.quality.rows) == (1, len(held_out))
        assert result.model.columns[1].levels == ("a", "c & d")


PEAK_MEMORY = """
import re, sys
from pathlib import Path
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

# imports and first allocations
fit(FitOptions(Path(sys.argv[1]), "y", memory=2000.0), ProgressReporter())
for memory in (4e6, None):
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = peak()
    result = fit(FitOptions(Path(sys.argv[2]), "y", memory=memory), ProgressReporter())
    assert result.streamed == (memory is not None)
    print(peak() - before)
"""


def write_long_parquet(path, groups, width):
    """Write a Parquet file with row groups of 50,000 rows each."""
    random, columns = np.random.default_rng(0), [f"x{j}" for j in range(width)]
    schema = pa.schema([(name, pa.float64()) for name in [*columns, "y"]])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(groups):
            X = random.normal(size=(50_000, width))
            y = X[:, 0] - 2 * X[:, 1] + X[:, 2] ** 2
            writer.write_table(pa.table([*X.T, y], schema=schema))
    return path


@pytest.mark.slow
def test_a_pass_has_one_block_in_memory(tmp_path):
    """The matrix takes 9.6 MB; pyarrow holds up to a page of a megabyte for each column."""
    table = open_table(write_long_parquet(tmp_path / "long.parquet", 2, 12), 1e6)
    split, arrow_bytes = Split(0.2, 0), []

    def record_arrow_memory(rows):
        arrow_bytes.append(pa.total_allocated_bytes())

    before = pa.total_allocated_bytes()
    tracemalloc.start()
    statistics = TableStatistics(table, "y", [], "refuse")
    statistics.collect(split, rows_of_block(1e6, 13), record_arrow_memory)
    known = statistics.columns(), statistics.standardisation(), choose_target(statistics, None)
    encoder = Encoder(*known, split, "refuse", rows_of_block(1e6, 12))
    rows = StreamedRows(table, encoder, statistics.code_counts, record_arrow_memory)
    correlation_matrix(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows.passes == 1
    assert peak < 2.5e6  # with the stored targets of the first 100,000 rows
    assert max(arrow_bytes) - before < 13 * 2**20


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_memory_is_bounded(tmp_path):
    """A process that streams a matrix of 115 MB grows by less than 64 MB in all."""
    path = write_long_parquet(tmp_path / "long.parquet", 24, 12)
    files = str(write_table(tmp_path, "squared")), str(path)
    process = subprocess.run(
        [sys.executable, "-c", PEAK_MEMORY, *files], capture_output=True, text=True, check=True
    )
    streamed, in_memory = map(float, process.stdout.split())
    assert streamed < 64e6 < 115e6 < in_memory


def test_npz_matrices_in_fortran_order_are_read_by_rows(tmp_path):
    X = np.arange(21.0).reshape(7, 3) ** 2
    texts = np.array(["one", "two", "three", "four", "five", "six", "ü"])
    integers = np.arange(7, dtype=">i4")
    np.savez(tmp_path / "a.npz", X=np.asfortranarray(X), Y=X, texts=texts, integers=integers)
    table = open_table(tmp_path / "a.npz", 1e9)
    assert list(table.types) == ["X_0", "X_1", "X_2", "Y_0", "Y_1", "Y_2", "texts", "integers"]
    blocks = list(table.blocks(list(table.types), 3))
    assert [block.num_rows for block in blocks] == [3, 3, 1]
    for j in range(3):
        for name in (f"X_{j}", f"Y_{j}"):
            found = np.concatenate([block.column(name).to_numpy() for block in blocks])
            np.testing.assert_array_equal(found, X[:, j])
    for name, expected in (("texts", list(texts)), ("integers", list(range(7)))):
        assert [v for block in blocks for v in block.column(name).to_pylist()] == expected


def test_later_rows_of_csv_can_turn_a_column_into_text(tmp_path):
    """Types are inferred from the first megabyte; a value beyond it may not agree."""
    lines = [f"{i},{i % 2},{'' if i < 150_000 else i}" for i in range(200_000)]
    lines[-1] = "199999,maybe,7"
    (tmp_path / "late.csv").write_text("a,b,c\n" + "\n".join(lines), encoding="utf-8")
    options = ReadingOptions(category=("b",), keep=("a",))
    table = read_for_fit(open_table(tmp_path / "late.csv", 1e9), options, "c")
    assert [table.kind(name) for name in "abc"] == ["number", "text", "number"]
    last = list(table.blocks(["c", "b"], 1000))[-1]
    assert (last.column("b")[-1].as_py(), last.column("c")[-1].as_py()) == ("maybe", 7.0)


def test_booleans_and_categories_are_read(tmp_path):
    table = pa.table(
        {
            "flag": pa.array([True, False, None]),
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
            "small": pa.array([1, 2, 3], pa.int8()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    opened = open_table(tmp_path / "a.parquet", 1e9)
    assert [opened.kind(name) for name in opened.types] == ["number", "text", "number"]
    (batch,) = opened.blocks(list(opened.types), 10)
    found = encode(
        [NumberColumn("flag", 0.5), TextColumn("kind", "u", ("v",)), NumberColumn("small", 0.0)],
        batch,
    )
    np.testing.assert_array_equal(found.X, [[1, 0, 1], [0, 1, 2], [0.5, 0, 3]])
    np.testing.assert_array_equal(found.missing, [False, False, True])
