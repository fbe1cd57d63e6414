"""Rows that are streamed: the same answer as in memory, in bounded memory, from any source."""

import threading
import time
import tracemalloc

import numpy as np
import pyarrow
import pytest
import scipy.sparse
from pyarrow import parquet

import cfgd
from cfgd.objective import block_source, blocks
from cfgd.objective.block_source import ahead

random = np.random.default_rng(7)
X = random.normal(size=(500, 4)) * [1.0, 3.0, 0.2, 1.0] + [0.5, 0, 0, 0]
SCORE = X @ [1.0, -0.3, 2.0, 0.5] - 0.4
TARGETS = {
    "logistic": (SCORE + random.logistic(size=500) > 0).astype(float),
    "squared": SCORE + 0.3 * random.normal(size=500),
    "poisson": random.poisson(np.exp(np.clip(SCORE, -3, 3))).astype(float),
    "huber": SCORE + random.standard_cauchy(size=500),
}
SMALL = 8 * 6 * 4 * 70  # bytes: blocks of 70 rows


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", TARGETS)
def test_it_is_the_linear_model_of_the_same_rows(loss, intercept):
    y, l2 = TARGETS[loss], 0.7
    ours = cfgd.Blocks(X, y, loss, l2, intercept=intercept, memory=SMALL)
    core = cfgd.LinearModel(X, y, loss, l2, intercept=intercept)
    w = random.normal(size=4 + intercept) / 3
    assert ours.value(w) == pytest.approx(core.value(w), rel=1e-12)
    streamed, held = (cfgd.minimize(f, np.zeros(4 + intercept)) for f in (ours, core))
    assert streamed.success
    assert held.success
    np.testing.assert_allclose(streamed.x, held.x, rtol=1e-5, atol=1e-7)
    assert streamed.value == pytest.approx(held.value, rel=1e-10)


def test_a_hessian_is_that_of_jax():
    import jax
    import jax.numpy as jnp

    def f(w):
        p = X @ w[:4] + w[4]
        signs = 2 * TARGETS["logistic"] - 1
        return jnp.sum(jnp.logaddexp(0, -signs * p)) + 0.7 / 2 * jnp.sum(w[:4] ** 2)

    ours = cfgd.Blocks(X, TARGETS["logistic"], l2=0.7, intercept=True, memory=SMALL)
    w = np.array([0.1, -0.2, 0.3, 0.05, -0.4])
    with jax.enable_x64(True):
        np.testing.assert_allclose(ours.stream.hessian(w), jax.hessian(f)(w), rtol=1e-10)
        np.testing.assert_allclose(ours.stream.value_and_gradient(w)[1], jax.grad(f)(w), rtol=1e-10)


def as_npy(folder, y):
    for k, rows in enumerate((slice(200), slice(200, 500))):
        np.save(folder / f"X{k}.npy", X[rows])
        np.save(folder / f"y{k}.npy", y[rows])
    files = [[folder / f"{name}{k}.npy" for k in range(2)] for name in "Xy"]
    return cfgd.Blocks(*files, l2=0.7, memory=SMALL)


def as_npz(folder, y):
    for k, rows in enumerate((slice(200), slice(200, 500))):
        np.savez(folder / f"{k}.npz", X=X[rows], y=y[rows])
    return cfgd.Blocks([folder / "0.npz", str(folder / "1.npz")], l2=0.7, memory=SMALL)


def as_parquet(folder, y):
    columns = {"a": X[:, 0], "b": X[:, 1], "label": y, "c": X[:, 2], "d": X[:, 3]}
    parquet.write_table(pyarrow.table(columns), folder / "rows.parquet", row_group_size=90)
    return cfgd.Blocks(folder / "rows.parquet", l2=0.7, target="label", memory=SMALL)


def as_memmap(folder, y):
    np.save(folder / "X.npy", X)
    return cfgd.Blocks(np.load(folder / "X.npy", mmap_mode="r"), y, l2=0.7, memory=SMALL)


def as_sparse(folder, y):
    return cfgd.Blocks(scipy.sparse.csc_array(X), y, l2=0.7, memory=SMALL)


def as_function(folder, y):
    def rows():
        for start in range(0, 500, 130):
            of = slice(start, start + 130)
            yield (scipy.sparse.csr_array(X[of]) if start == 130 else X[of]), y[of]

    return cfgd.Blocks(rows, l2=0.7)


@pytest.mark.parametrize("source", [as_npy, as_npz, as_parquet, as_memmap, as_sparse, as_function])
def test_sources(source, tmp_path):
    f = source(tmp_path, TARGETS["logistic"])
    assert (f.rows, f.dimension, f.passes) == (500, 4, 1)
    w = np.array([0.1, -0.2, 0.3, 0.05])
    core = cfgd.LinearModel(X, TARGETS["logistic"], l2=0.7)
    assert f.value(w) == pytest.approx(core.value(w), rel=1e-12)
    before = f.passes
    assert cfgd.minimize(f, np.zeros(4)).success
    assert f.passes - before < 20


def test_without_a_matrix_it_is_a_pass_for_each_gradient(monkeypatch):
    monkeypatch.setattr(blocks, "MOST_COLUMNS", 3)
    f = cfgd.Blocks(X, TARGETS["logistic"], l2=0.7, memory=SMALL)
    solution = cfgd.minimize(f, np.zeros(4))
    assert solution.success
    assert "span" in repr(solution)
    assert f.passes <= solution.evaluations + 3
    exact = cfgd.minimize(cfgd.LinearModel(X, TARGETS["logistic"], l2=0.7), np.zeros(4))
    np.testing.assert_allclose(solution.x, exact.x, rtol=1e-5)


def test_the_paper_s_methods_walk_on_it_too():
    f = cfgd.Blocks(X, TARGETS["squared"], "squared", memory=SMALL)
    local = cfgd.Local(f, "exact")
    solution = cfgd.minimize(local, np.zeros(4), cfgd.AdaptiveTerminal(gamma=-0.2), tolerance=1e-5)
    assert solution.success
    np.testing.assert_allclose(
        solution.x, np.linalg.lstsq(X, TARGETS["squared"], rcond=None)[0], rtol=1e-3
    )


def test_memory_is_bounded_whatever_the_rows(tmp_path):
    """40 MB of rows, of which no more than the stated 3 MB are there at a time."""
    m, d = 100_000, 50
    big = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", float, (m, d))
    for start in range(0, m, 10_000):
        big[start : start + 10_000] = random.normal(size=(10_000, d))
    y = (random.random(m) < 0.3).astype(float)
    del big
    tracemalloc.start()
    f = cfgd.Blocks(np.load(tmp_path / "X.npy", mmap_mode="r"), y, memory=3e6)
    f.stream.value_and_gradient(np.zeros(d))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6


def test_reading_and_computing_overlap():
    def slow():
        for k in range(5):
            time.sleep(0.05)
            yield k

    began = time.perf_counter()
    for _ in ahead(slow()):
        time.sleep(0.05)
    assert time.perf_counter() - began < 0.45  # one after the other takes 0.5


def test_a_reader_that_is_left_ends():
    before = threading.active_count()

    def forever():
        while True:
            yield 1

    for k in ahead(forever()):
        if k:
            break
    time.sleep(0.3)
    assert threading.active_count() == before


def test_an_error_of_the_reader_goes_up():
    state = {"calls": 0}

    def rows():
        state["calls"] += 1
        yield X[:100], TARGETS["logistic"][:100]
        if state["calls"] > 4:
            raise OSError("the disk is gone")
        yield X[100:], TARGETS["logistic"][100:]

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


Y = TARGETS["logistic"]
BAD = {
    "a number": (lambda _: {"source": 3}, "`Blocks(source=...)` must be a matrix, a list of .npy"),
    "no target": (
        lambda _: {"source": X},
        "`Blocks(y=...)` must be given with a matrix, got None.",
    ),
    "a short target": (lambda _: {"source": X, "y": Y[:3]}, "must have shape (500,), got (3,)."),
    "a vector": (lambda _: {"source": Y, "y": Y}, "must be a matrix, got shape (500,)."),
    "no file": (lambda _: {"source": ["no.npz"]}, "must be files that are there, got no.npz."),
    "another kind": (
        lambda _: {"source": ["a.txt"]},
        "must be files of .npy, .npz, .parquet, got a",
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
    "a target twice": (lambda _: {"source": lambda: 1, "y": Y}, "not be given with a function"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_a_sentence(case, tmp_path, unchecked):
    made, says = BAD[case]
    with pytest.raises(ValueError) as error:  # noqa: PT011
        cfgd.Blocks(**made(tmp_path))
    assert says in str(error.value)


def test_rows_of_a_block_follow_from_the_memory():
    assert block_source.rows_of_block(8 * 6 * 10 * 1000, 10) == 1000
    assert block_source.rows_of_block(1.0, 10) == block_source.LEAST_ROWS
