"""Rows of Dask collections and of files on a real cluster: the answers of the same in memory."""

import weakref

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import statsmodels.api as sm
from distributed import Client, LocalCluster
from sklearn.linear_model import LogisticRegression

import cfgd
from cfgd._core.engines import dask_cluster
from cfgd._core.engines.dask_cluster import DaskEngine
from cfgd._core.engines.local import LocalEngine, SerialEngine
from cfgd._core.engines.threads import ThreadsEngine
from cfgd.objectives.linear import stream
from cfgd.objectives.linear.block_source import Block
from cfgd.objectives.linear.dask_rows import parts_of_dask

random = np.random.default_rng(5)
M = 900
X = random.normal(size=(M, 4)) * [1.0, 3.0, 0.2, 1.0] + [0.5, 0, 0, 0]
SCORE = X @ [1.0, -0.3, 2.0, 0.5] - 0.4
Y = (SCORE + random.logistic(size=M) > 0).astype(float)
CLASSES = np.digitize(SCORE + 2 * random.normal(size=M), [-1.0, 1.0]).astype(float)
WEIGHT, OFFSET = random.integers(0, 4, size=M).astype(float), random.normal(size=M) / 3
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(label=Y, w=WEIGHT, exposure=OFFSET)
NAMES = {"target": "label", "sample_weight": "w", "offset": "exposure"}
SMALL = 8 * 8 * 4 * 70  # bytes: blocks of 70 rows
KEPT = X[:, 0] > 0.2


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def lazy(array, rows=110):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


ALL = {"y": lazy(Y), "sample_weight": lazy(WEIGHT), "offset": lazy(OFFSET)}


def of_dense(client, _):
    return {"source": lazy(X), **ALL}


def of_other_chunks(client, _):
    """Targets, weights and offsets in chunks of their own, or in memory."""
    return {
        "source": lazy(X), "y": lazy(Y, 70), "sample_weight": WEIGHT, "offset": lazy(OFFSET, 400),
    }  # fmt: skip


def of_sparse(client, _):
    return {"source": lazy(X).map_blocks(scipy.sparse.csc_array), **ALL}


def of_sparse_matrices(client, _):
    return {"source": lazy(X).map_blocks(scipy.sparse.csr_matrix), **ALL}


def of_persisted(client, _):
    return {"source": client.persist(lazy(X))[:, :4], **ALL, "y": client.persist(lazy(Y))}


def of_rechunked(client, _):
    """Blocks that need two chunks each."""
    return {"source": lazy(X, 250).rechunk((110, 4)), **ALL}


def of_empty_chunks(client, _):
    chunks = ((0, 110, 0, 300, 490, 0), (4,))
    source = da.concatenate([lazy(X)[:0], lazy(X), lazy(X)[:0]]).rechunk(chunks)
    return {"source": source, **ALL}


def of_frame(client, _):
    return {"source": dd.from_pandas(FRAME, npartitions=7), **NAMES}


def of_series(client, _):
    frame = dd.from_pandas(FRAME, npartitions=7)
    return {
        "source": client.persist(frame[list("abcd")]),
        "y": frame["label"],
        "sample_weight": frame["w"],
        "offset": client.persist(frame["exposure"]),
    }


def written(folder):
    for k, rows in enumerate((slice(300), slice(300, 350), slice(350, M))):
        path = folder / f"{k}.parquet"
        FRAME[rows].to_parquet(path, index=False, row_group_size=80)
    return sorted(folder.glob("*.parquet"))


def of_directory(client, folder):
    written(folder)
    return {"source": folder, **NAMES}


def of_glob(client, folder):
    written(folder)
    return {"source": str(folder / "*.parquet"), **NAMES}


def of_files(client, folder):
    return {"source": written(folder), **NAMES}


def of_frame_of_files(client, folder):
    written(folder)
    return {"source": dd.read_parquet(folder), **NAMES}


SOURCES = [
    of_dense, of_other_chunks, of_sparse, of_sparse_matrices, of_persisted, of_rechunked,
    of_empty_chunks, of_frame, of_series, of_directory, of_glob, of_files, of_frame_of_files,
]  # fmt: skip


@pytest.fixture(scope="module")
def reference():
    """The coefficients of statsmodels."""
    family = sm.families.Binomial()
    model = sm.GLM(Y, sm.add_constant(X), family, freq_weights=WEIGHT, offset=OFFSET)
    return np.roll(model.fit(tol=1e-14, maxiter=100).params, -1)


@pytest.mark.parametrize("source", SOURCES)
def test_coefficients_are_those_of_statsmodels(source, client, reference, tmp_path):
    f = cfgd.Blocks(**source(client, tmp_path), intercept=True, client=client, memory=2 * SMALL)
    assert isinstance(f.stream.engine, DaskEngine)
    assert f.rows == M
    solution = cfgd.minimize(f, np.zeros(5), tolerance=1e-12)
    np.testing.assert_allclose(solution.x, reference, rtol=1e-8, atol=1e-8)
    assert f.passes < 12


def of_unknown_sizes():
    chosen = lazy(KEPT)
    return lazy(X)[chosen], lazy(Y)[chosen]


def of_a_filtered_frame():
    frame = dd.from_pandas(FRAME, npartitions=7)
    frame = frame[frame["a"] > 0.2]
    return frame[list("abcd")].to_dask_array(), frame["label"].to_dask_array()


def of_a_filtered_frame_with_series():
    frame = dd.from_pandas(FRAME, npartitions=7)
    frame = frame[frame["a"] > 0.2]
    return frame[list("abcd")], frame["label"]


@pytest.mark.parametrize(
    "source", [of_unknown_sizes, of_a_filtered_frame, of_a_filtered_frame_with_series]
)
def test_the_sizes_of_chunks_need_not_be_known(source, client):
    f = cfgd.Blocks(*source(), intercept=True, client=client)
    assert f.rows == KEPT.sum()
    solution = cfgd.minimize(f, np.zeros(5), tolerance=1e-12)
    theirs = sm.Logit(Y[KEPT], sm.add_constant(X[KEPT])).fit(disp=0, tol=1e-14).params
    np.testing.assert_allclose(solution.x, np.roll(theirs, -1), rtol=1e-8)


def test_several_classes_are_those_of_scikit_learn(client):
    f = cfgd.Blocks(
        lazy(X), lazy(CLASSES), "multinomial", 0.7, lazy(WEIGHT), intercept=True, client=client
    )
    solution = cfgd.minimize(f, np.zeros(f.shape), tolerance=1e-12)
    model = LogisticRegression(C=1 / 0.7, tol=1e-10, solver="newton-cg", max_iter=1000)
    model.fit(X, CLASSES, WEIGHT)
    np.testing.assert_allclose(solution.x[:4].T, model.coef_, atol=1e-8)
    intercept = solution.x[4] - solution.x[4].mean()
    np.testing.assert_allclose(intercept, model.intercept_, atol=1e-8)


def test_many_columns_are_fitted_by_gradients_and_products(client, monkeypatch):
    monkeypatch.setattr(stream, "MAX_COEFFICIENTS", 3)
    f = cfgd.Blocks(lazy(X), lazy(Y), l2=0.5, client=client)
    ours = cfgd.minimize(f, np.zeros(4), tolerance=1e-10)
    theirs = LogisticRegression(C=2, tol=1e-12, fit_intercept=False, solver="newton-cg").fit(X, Y)
    np.testing.assert_allclose(ours.x, theirs.coef_[0], atol=1e-8)
    w, v = np.array([0.1, -0.2, 0.3, 0.0]), np.array([1.0, 2.0, -1.0, 0.5])
    p = 1 / (1 + np.exp(-X @ w))
    exact = X.T @ (p * (1 - p) * (X @ v)) + 0.5 * v
    np.testing.assert_allclose(f.stream.hessian_times(w, v), exact, rtol=1e-10)


def test_the_current_client_is_taken(client):
    with client.as_current():
        assert isinstance(cfgd.Blocks(lazy(X), lazy(Y)).stream.engine, DaskEngine)
    assert isinstance(cfgd.Blocks(lazy(X), lazy(Y)).stream.engine, LocalEngine)


def test_the_sums_of_all_engines_are_bitwise_the_same(client, monkeypatch):
    """Of 28 parts, so that three sums of eight are not the sum of all one after the other."""
    parts = parts_of_dask(lazy(X, 33), Block(None, lazy(Y, 33)), None, SMALL, 100)
    assert len(parts) == 28
    model = cfgd.Blocks(X, Y).stream.model
    w = np.array([0.1, -0.2, 0.3, 0.0])
    serial = SerialEngine(parts).sum(model.evaluate, w)
    p = X @ w
    assert serial[0] == pytest.approx(np.sum(np.logaddexp(0, p) - Y * p), rel=1e-12)
    on_dask = DaskEngine(parts, client)
    found = {
        "local": LocalEngine(parts).sum(model.evaluate, w),
        "threads": ThreadsEngine(parts, 3).sum(model.evaluate, w),
        "dask": on_dask.sum(model.evaluate, w),
    }
    monkeypatch.setattr(dask_cluster, "ADDED_HERE", 0)
    found["added on the workers"] = on_dask.sum(model.evaluate, w)
    for name, sums in found.items():
        for ours, theirs in zip(sums, serial, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=name)


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_workers(client):
    two = cfgd.minimize(cfgd.Blocks(lazy(X), lazy(Y), client=client), np.zeros(4))
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as alone,
    ):
        one = cfgd.minimize(cfgd.Blocks(lazy(X), lazy(Y), client=alone), np.zeros(4))
    np.testing.assert_array_equal(one.x, two.x)
    assert (one.value, one.iterations) == (two.value, two.iterations)


def test_without_a_client_chunks_are_made_here_one_after_the_other():
    alive: list[weakref.ref] = []
    most = 0

    def make(block):
        nonlocal most
        made = np.array(block)
        alive.append(weakref.ref(made))
        most = max(most, sum(one() is not None for one in alive))
        return made

    f = cfgd.Blocks(lazy(X, 50).map_blocks(make, dtype=float, meta=np.empty((0, 0))), lazy(Y, 50))
    p = X @ np.ones(4)
    assert f.value(np.ones(4)) == pytest.approx(np.sum(np.logaddexp(0, p) - Y * p), rel=1e-12)
    assert len(alive) == 2 * M / 50
    assert most <= 3  # one is used, one is read, one is made


def test_what_rows_and_targets_are_both_made_of_is_made_once():
    made = []

    def make(block):
        made.append(len(block))
        return block

    table = lazy(np.column_stack([X, Y]), 50).map_blocks(make, dtype=float, meta=np.empty((0, 0)))
    f = cfgd.Blocks(table[:, :4], table[:, 4])
    assert sum(made) == M
    p = X @ np.ones(4)
    assert f.value(np.ones(4)) == pytest.approx(np.sum(np.logaddexp(0, p) - Y * p), rel=1e-12)
    assert sum(made) == 2 * M
    made.clear()
    frame = dd.from_map(lambda k: make(FRAME[100 * k : 100 * (k + 1)]), range(9), meta=FRAME[:0])
    assert cfgd.Blocks(frame[list("abcd")], frame["label"]).rows == M
    assert sum(made) == M


def test_tasks_that_all_blocks_share_are_warned_of():
    """The mean of all columns would be made again for each of the blocks."""
    centred = lazy(X, 30) - lazy(X, 30).mean(0)
    with pytest.warns(UserWarning, match="need the data of many others"):
        f = cfgd.Blocks(centred, Y)
    p = (X - X.mean(0)) @ np.ones(4)
    assert f.value(np.ones(4)) == pytest.approx(np.sum(np.logaddexp(0, p) - Y * p), rel=1e-12)


def with_text():
    return dd.from_pandas(FRAME.assign(a="much"), npartitions=3)


BAD = {
    "columns": (
        lambda: {"source": lazy(X).rechunk((110, 2)), "y": lazy(Y)},
        "`Blocks(source=...)` must have all columns in one chunk: X.rechunk({1: -1}), got 2",
    ),
    "a vector": (
        lambda: {"source": lazy(Y), "y": lazy(Y)},
        "`Blocks(source=...)` must be a matrix, got a Dask array of 1 axes.",
    ),
    "no target": (lambda: {"source": lazy(X)}, "`Blocks(y=...)` must be given with a matrix"),
    "a short target": (
        lambda: {"source": lazy(X), "y": lazy(Y[:800])},
        "`Blocks(y=...)` must have shape (900,), got (800,).",
    ),
    "a short weight in memory": (
        lambda: {"source": lazy(X), "y": lazy(Y), "sample_weight": WEIGHT[:5]},
        "`Blocks(sample_weight=...)` must have shape (900,), got (5,).",
    ),
    "rows of other chunks": (
        lambda: {"source": lazy(X)[lazy(KEPT)], "y": lazy(Y)},
        "`Blocks(source=...)` must have chunks of as many rows as its targets, got ",
    ),
    "unknown sizes and an array": (
        lambda: {"source": lazy(X)[lazy(KEPT)], "y": Y},
        "`Blocks(y=...)` must be a Dask array where the chunks of X have unknown sizes",
    ),
    "other partitions": (
        lambda: {"source": lazy(X)[lazy(KEPT)], "y": lazy(Y, 300)},
        "`Blocks(y=...)` must have the 9 partitions of X, got 3.",
    ),
    "labels": (
        lambda: {"source": lazy(X), "y": 3 * lazy(Y)},
        "must be 0/1 or -1/1 for the loss logistic, got",
    ),
    "nan": (
        lambda: {"source": da.where(lazy(X) > 2, np.nan, lazy(X)), "y": lazy(Y)},
        "`Blocks(source=...)` must give finite numbers",
    ),
    "a text column": (
        lambda: {"source": with_text(), "target": "label"},
        "`Blocks(source=...)` must have columns of numbers, got 'a' of type ",
    ),
    "no such column": (
        lambda: {"source": dd.from_pandas(FRAME, npartitions=3), "target": "no"},
        "`Blocks(target=...)` must be a column of the data frame, got 'no'.",
    ),
    "no target of a frame": (
        lambda: {"source": dd.from_pandas(FRAME, npartitions=3)},
        "`Blocks(target=...)` must name the column of the targets",
    ),
    "an array in memory": (
        lambda: {"source": X, "y": Y},
        "must be Dask arrays, a Dask data frame or files if a client is given, got shape (900, 4)",
    ),
    "a function": (
        lambda: {"source": lambda: iter([(X, Y)])},
        "must be Dask arrays, a Dask data frame or files if a client is given, got a function",
    ),
    "no client": (
        lambda: {"source": lazy(X), "y": lazy(Y), "client": "tcp://127.0.0.1:8786"},
        "`Blocks(client=...)` must be a client of dask.distributed, got",
    ),
    "another engine": (
        lambda: {"source": lazy(X), "y": lazy(Y), "threads": 4},
        "`Blocks(threads=...)` must not be given with a client, whose workers have threads, got 4.",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case, client):
    arguments, message = BAD[case]
    with pytest.raises(ValueError) as error:  # noqa: PT011
        cfgd.Blocks(**{"client": client, **arguments()})
    assert message in str(error.value)


def test_an_error_of_a_block_is_raised_here(client):
    def failing(block):
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        cfgd.Blocks(lazy(X).map_blocks(failing, meta=np.empty((0, 0))), lazy(Y), client=client)


def test_nothing_is_computed_by_another_scheduler(client):
    """The blocks of a local pass are made by the engine, not by threads of Dask."""

    def refuse(*_, **__):
        raise AssertionError

    with dask.config.set(scheduler=refuse):
        cfgd.Blocks(lazy(X), lazy(Y), client=client).value(np.zeros(4))
