"""Sources of streamed rows: files, functions and matrices, reading ahead, and bad input."""

import threading

import numpy as np
import pyarrow
import pytest
import scipy.sparse
from pyarrow import parquet

import cfgd
from cfgd._core.engines.prefetch import prefetch
from cfgd.objectives.linear import block_size, block_source

random = np.random.default_rng(8)
X = random.normal(size=(500, 4)) * [1.0, 3.0, 0.2, 1.0] + [0.5, 0, 0, 0]
Y = (X @ [1.0, -0.3, 2.0, 0.5] + random.logistic(size=500) > 0.4).astype(float)
WEIGHT, OFFSET = random.integers(0, 4, size=500).astype(float), random.normal(size=500) / 3
SMALL = 8 * 8 * 4 * 70  # bytes: blocks of 70 rows
PARTS = slice(200), slice(200, 500)
ARRAYS = {"X": X, "y": Y, "sample_weight": WEIGHT, "offset": OFFSET}


def as_npy(folder):
    files = {}
    for name, array in ARRAYS.items():
        files[name] = [folder / f"{name}{k}.npy" for k in range(2)]
        for path, rows in zip(files[name], PARTS, strict=True):
            np.save(path, array[rows])
    return cfgd.Blocks(files.pop("X"), files.pop("y"), l2=0.7, memory=SMALL, **files)


def as_npz(folder, order="C"):
    for k, rows in enumerate(PARTS):
        arrays = {name: array[rows] for name, array in ARRAYS.items()}
        np.savez(folder / f"{k}.npz", **arrays | {"X": np.asarray(X[rows], order=order)})
    return cfgd.Blocks([folder / "0.npz", str(folder / "1.npz")], l2=0.7, memory=SMALL)


def as_npz_by_columns(folder):
    return as_npz(folder, "F")


def as_parquet(folder):
    columns = {"a": X[:, 0], "w": WEIGHT, "b": X[:, 1], "label": Y, "c": X[:, 2], "d": X[:, 3]}
    table = pyarrow.table(columns | {"log exposure": OFFSET})
    parquet.write_table(table, folder / "rows.parquet", row_group_size=90)
    names = {"target": "label", "sample_weight": "w", "offset": "log exposure"}
    return cfgd.Blocks(folder / "rows.parquet", l2=0.7, memory=2 * SMALL, **names)


def as_memmap(folder):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", Y)
    arrays = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "Xy")
    return cfgd.Blocks(*arrays, l2=0.7, sample_weight=WEIGHT, offset=OFFSET, memory=SMALL)


def as_sparse(folder):
    given = {"sample_weight": WEIGHT, "offset": OFFSET}
    return cfgd.Blocks(scipy.sparse.csc_array(X), Y, l2=0.7, memory=SMALL, **given)


def as_function(folder):
    def rows():
        for start in range(0, 500, 130):
            of = slice(start, start + 130)
            block = scipy.sparse.csr_array(X[of]) if start == 130 else X[of]
            yield block, Y[of], WEIGHT[of], OFFSET[of]

    return cfgd.Blocks(rows, l2=0.7)


SOURCES = [as_npy, as_npz, as_npz_by_columns, as_parquet, as_memmap, as_sparse, as_function]


@pytest.mark.parametrize("source", SOURCES)
def test_all_sources_give_the_same_rows(source, tmp_path):
    f = source(tmp_path)
    assert (f.rows, f.dimension, f.passes) == (500, 4, 1)
    assert len(list(f.stream.engine.parts[0]())) >= 4
    w = np.array([0.1, -0.2, 0.3, 0.05])
    core = cfgd.LinearModel(X, Y, l2=0.7, sample_weight=WEIGHT, offset=OFFSET)
    assert f.value(w) == pytest.approx(core.value(w), rel=1e-12)
    before = f.passes
    assert cfgd.minimize(f, np.zeros(4)).success
    assert f.passes - before < 20


def test_a_parquet_file_is_read_one_row_group_after_the_other(tmp_path):
    """Of 9.6 MB in 30 row groups less than a quarter is in memory at a time."""
    names, rows = [f"x{j}" for j in range(39)], 30_000
    columns = {name: random.normal(size=rows) for name in names} | {"y": np.arange(rows) % 2.0}
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.table(columns), path, row_group_size=1000, compression=None)
    before, most = pyarrow.total_allocated_bytes(), 0
    (part,) = block_source.parts_of(path, block_source.Block(None, None), "y", 2e6, 1)
    for _ in part():
        most = max(most, pyarrow.total_allocated_bytes() - before)
    assert 0 < most < 9.6e6 / 4


def test_weights_and_offsets_may_be_given_alone():
    w = np.array([0.1, -0.2, 0.3, 0.05])
    for given in ({"sample_weight": WEIGHT}, {"offset": OFFSET}):
        core = cfgd.LinearModel(X, Y, **given)
        assert cfgd.Blocks(X, Y, **given).value(w) == pytest.approx(core.value(w), rel=1e-12)
        block = X, Y, given.get("sample_weight"), given.get("offset")
        ours = cfgd.Blocks(lambda block=block: iter([block]))
        assert ours.value(w) == pytest.approx(core.value(w), rel=1e-12)


def test_blocks_of_a_memmap_are_copies_and_its_pages_are_released(tmp_path):
    """Pages of a copy-on-write map are not released: they may have been written into."""
    np.save(tmp_path / "X.npy", X)
    for mode in ("r", "r+", "c"):
        mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
        if mode == "c":
            mapped[3, 1] = 7.0
        (part,) = block_source.parts_of(mapped, block_source.Block(None, Y), None, SMALL, 1)
        for block in part():
            assert not isinstance(block.X, np.memmap)
        np.testing.assert_array_equal(mapped, np.load(mapped.filename) if mode != "c" else mapped)
        assert (mapped[3, 1] == 7.0) == (mode == "c")


def test_parts_are_of_even_sizes(tmp_path):
    parts = block_source.parts_of(X, block_source.Block(None, Y), None, 8 * 8 * 4 * 64, 3)
    assert [sum(len(block.y) for block in part()) for part in parts] == [128, 192, 180]
    table = pyarrow.table({"a": X[:, 0], "y": Y})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
    given = tmp_path / "rows.parquet", block_source.Block(None, None), "y", 1e6
    for count, rows in ((2, [200, 300]), (4, [100, 100, 100, 200]), (9, 5 * [100])):
        parts = block_source.parts_of(*given, count)
        assert [sum(len(block.y) for block in part()) for part in parts] == rows


def test_the_next_block_is_read_while_one_is_computed_with():
    reading = [threading.Event() for _ in range(5)]

    def blocks():
        for k in range(5):
            reading[k].set()
            yield k

    for k in prefetch(blocks()):
        # set by the reader while this loop still has block k
        assert k == 4 or reading[k + 1].wait(timeout=600)


def test_no_more_than_one_block_is_read_ahead():
    read = threading.Semaphore(0)

    def blocks():
        for k in range(6):
            read.release()
            yield k

    for k in prefetch(blocks()):
        assert k == 5 or read.acquire(timeout=600)  # block k, or k + 1 from the second turn on
        if k == 0:
            assert read.acquire(timeout=600)
        assert not read.acquire(timeout=0.02)


def test_the_reading_thread_ends_with_the_loop():
    before = set(threading.enumerate())

    def forever():
        while True:
            yield 1

    blocks = prefetch(forever())
    next(blocks)
    (reader,) = set(threading.enumerate()) - before
    blocks.close()
    reader.join(120)  # a limit for a failure
    assert not reader.is_alive()


def test_an_error_of_the_reader_is_raised_with_the_solution_so_far():
    state = {"calls": 0}

    def rows():
        state["calls"] += 1
        yield X[:100], Y[:100]
        if state["calls"] > 4:
            raise OSError("the disk is gone")
        yield X[100:], Y[100:]

    f = cfgd.Blocks(rows)
    with pytest.raises(OSError, match="the disk is gone") as error:
        cfgd.minimize(f, np.zeros(4), tolerance=1e-14)
    assert error.value.solution.value <= 500 * np.log(2)


def bad_npz(folder):
    np.savez(folder / "a.npz", Z=X)
    return {"source": [folder / "a.npz"]}


def bad_parquet(folder):
    parquet.write_table(pyarrow.table({"a": [1.0], "b": [2.0]}), folder / "a.parquet")
    return {"source": [folder / "a.parquet"], "target": "c"}


BAD = {
    "a number": (lambda _: {"source": 3}, "`Blocks(source=...)` must be a matrix, a Dask array"),
    "no target": (
        lambda _: {"source": X},
        "`Blocks(y=...)` must be given with a matrix, got None.",
    ),
    "a short target": (lambda _: {"source": X, "y": Y[:3]}, "must have shape (500,), got (3,)."),
    "a vector": (lambda _: {"source": Y, "y": Y}, "must be a matrix, got shape (500,)."),
    "no file": (lambda _: {"source": ["no.npz"]}, "must be files that exist, got no.npz."),
    "another kind": (
        lambda _: {"source": ["a.txt"]},
        "must be files of .npy, .npz, .parquet, got a",
    ),
    "two kinds": (
        lambda folder: bad_npz(folder) | {"source": [folder / "a.npz", __file__ + "x"]},
        "must be files of .npy, .npz, .parquet, got",
    ),
    "names": (bad_npz, "must hold arrays X and y in"),
    "a column": (bad_parquet, "`Blocks(target=...)` must be a column of"),
    "labels": (
        lambda _: {"source": X, "y": 3 * Y},
        "must be 0/1 or -1/1 for the loss logistic, got",
    ),
    "a loss": (
        lambda _: {"source": X, "y": Y, "loss": "hinge"},
        "`Blocks(loss=...)` must be one of",
    ),
    "nan": (
        lambda _: {"source": np.where(X > 2, np.nan, X), "y": Y},
        "finite numbers (block 0), got",
    ),
    "nothing": (
        lambda _: {"source": lambda: iter([])},
        "`Blocks(source=...)` must have rows, got no",
    ),
    "widths": (
        lambda _: {"source": lambda: iter([(X[:9], Y[:9]), (X[:9, :2], Y[:9])])},
        "must give blocks with 4 columns (block 1), got 2.",
    ),
    "memory": (
        lambda _: {"source": X, "y": Y, "memory": 0},
        "`Blocks(memory=...)` must be positive",
    ),
    "a budget of nothing": (
        lambda _: {"source": X, "y": Y, "memory": 100.0},
        "`Blocks(memory=...)` must be at least 16,384 for 64 rows of 4 numbers, got 100.",
    ),
    "labels of two kinds": (
        lambda _: {"source": lambda: iter([(X, Y), (X, 2 * Y - 1)])},
        "must be 0/1 or -1/1 for the loss logistic, got labels -1, 0 and 1.",
    ),
    "half a class": (
        lambda _: {"source": X, "y": Y / 2, "loss": "multinomial"},
        "must be 0, 1, 2, ... for the loss multinomial, got 0.5 at index",
    ),
    "one class": (
        lambda _: {"source": X, "y": 0 * Y, "loss": "multinomial"},
        "`Blocks(y=...)` must name at least two classes, got only 0.",
    ),
    "a negative weight": (
        lambda _: {"source": X, "y": Y, "sample_weight": Y - 1},
        "`Blocks(sample_weight=...)` must be a number of at least 0 for each row (block 0), got -1",
    ),
    "no weight": (
        lambda _: {"source": X, "y": Y, "sample_weight": 0 * Y},
        "`Blocks(sample_weight=...)` must have a positive entry, got only zeros.",
    ),
    "a short weight": (
        lambda _: {"source": X, "y": Y, "sample_weight": Y[:3]},
        "`Blocks(sample_weight=...)` must have shape (500,), got (3,).",
    ),
    "a short offset": (
        lambda _: {"source": lambda: iter([(X, Y, None, Y[:3])])},
        "`Blocks(offset=...)` must be one for each row (block 0), got shape (3,).",
    ),
    "a weight for npz": (
        lambda folder: bad_npz(folder) | {"sample_weight": Y},
        "`Blocks(sample_weight=...)` must not be given with .npz files, which hold it",
    ),
    "a weight for parquet": (
        lambda folder: bad_parquet(folder) | {"sample_weight": Y},
        "`Blocks(sample_weight=...)` must name a column of .parquet files",
    ),
    "no pair": (
        lambda _: {"source": lambda: iter([X])},
        "must give X, y and perhaps weights and offsets (block 0), got",
    ),
    "a target twice": (lambda _: {"source": lambda: 1, "y": Y}, "not be given with a function"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case, tmp_path, unchecked):
    arguments, message = BAD[case]
    with pytest.raises(ValueError) as error:  # noqa: PT011
        cfgd.Blocks(**arguments(tmp_path))
    assert message in str(error.value)


def test_rows_per_block_follow_from_the_memory():
    assert block_size.rows_of_memory(8 * 8 * 10 * 1000, 10, 8) == 1000
    assert block_size.rows_of_memory(1.0, 10, 8) == block_size.MIN_ROWS


def test_a_source_with_fewer_rows_at_the_second_pass_is_refused():
    once = iter([(X, Y)])
    f = cfgd.Blocks(lambda: once)
    with pytest.raises(ValueError, match="must give 500 rows at every pass, got 0"):
        cfgd.minimize(f, np.zeros(4))
