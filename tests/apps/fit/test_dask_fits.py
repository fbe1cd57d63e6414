"""Fits on a real Dask cluster, and in two processes, give the model.json of a fit in memory."""

import json

import numpy as np
import pytest
from distributed import Client, LocalCluster
from fit_tables import skewed_columns, targets, write

from cfgd.apps.fit.dask_workers import dask_workers
from cfgd.apps.fit.model import read_model
from cfgd.apps.fit.prediction import predict
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit

ROWS = 1500
CASES = {
    "squared": {"errors": "hc3", "weights": "weight", "offset": "offset"},
    "logistic": {"cross_validate": True},
    "poisson": {"offset": "offset", "errors": "cluster", "cluster": "cluster"},
    "gamma": {"weights": "weight", "formula": "y ~ kind*small + poly(large, 2) + C(cluster)"},
    "multinomial": {"weights": "weight", "l2": 2.0},
    "huber": {},
}


@pytest.fixture(scope="module")
def address():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        yield cluster.scheduler_address


def write_files(folder, loss):
    """Write three files of unlike sizes; the second has no row with one of the texts."""
    random, columns, eta = skewed_columns(ROWS)
    columns["large"][::11] = np.nan
    columns["kind"][600:640] = "b"
    columns["weight"] = random.integers(0, 4, ROWS)
    columns["offset"] = 0.1 * random.normal(size=ROWS)
    columns["cluster"] = random.integers(1, 9, ROWS)
    columns["y"] = targets(loss, random, eta)
    folder.mkdir()
    for k, (begin, end) in enumerate(((0, 600), (600, 640), (640, ROWS))):
        part = {name: of[begin:end] for name, of in columns.items()}
        write(folder / f"{k}.parquet", part)
    return folder


def options_of(loss, folder, **more):
    options = CASES[loss] | more
    used = {options.get(name) for name in ("weights", "offset", "cluster")}
    drop = {"weight", "offset", "cluster"} - used
    if "formula" in options:
        drop = set()
    return FitOptions(folder, "y", loss=loss, missing="mean", drop=tuple(sorted(drop)), **options)


def saved(result, path):
    result.model.save(path)
    return json.loads(path.read_text(encoding="utf-8"))


def assert_same(one, other, place=""):
    """Texts and whole numbers are equal, and other numbers agree to 1e-6."""
    if isinstance(one, dict):
        assert list(one) == list(other), place
        for name in one:
            assert_same(one[name], other[name], f"{place}/{name}")
    elif isinstance(one, list):
        assert len(one) == len(other), place
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{place}[{i}]")
    elif isinstance(one, float):
        # a mean of residuals is the difference of large numbers, and R squared may be near 0
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-8, err_msg=place)
    else:
        assert one == other, place


@pytest.mark.one_case
@pytest.mark.parametrize("loss", CASES)
def test_a_fit_on_a_cluster_is_the_fit_in_memory(tmp_path, address, loss):
    folder = write_files(tmp_path / "data", loss)
    in_memory = fit(options_of(loss, folder), ProgressReporter())
    rows = []

    class Rows(ProgressReporter):
        def rows_read(self, read):
            rows.append(read)

    on_cluster = fit(options_of(loss, folder, dask=address), Rows())
    assert (in_memory.streamed, on_cluster.streamed) == (False, True)
    assert in_memory.success
    assert sum(rows) >= ROWS  # the progress of each pass
    assert_same(saved(in_memory, tmp_path / "a.json"), saved(on_cluster, tmp_path / "b.json"))


def test_predictions_of_a_cluster_are_in_the_order_of_the_rows(tmp_path, address):
    folder = write_files(tmp_path / "data", "logistic")
    result = fit(options_of("logistic", folder, l2=1.0, cross_validate=False), ProgressReporter())
    result.model.save(tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")
    predict(model, folder, tmp_path / "here.csv", 1e9, lambda rows: None, ["cluster"])
    with dask_workers(address) as workers:
        out = tmp_path / "there.csv"
        written = predict(model, folder, out, 1e9, lambda rows: None, ["cluster"], workers)
    assert written.rows == ROWS
    assert (tmp_path / "here.csv").read_text() == (tmp_path / "there.csv").read_text()


def test_an_error_of_a_worker_names_the_file_and_the_row(tmp_path, address):
    folder = write_files(tmp_path / "data", "squared")
    options = FitOptions(folder, "y", dask=address)  # missing values are refused
    with pytest.raises(ValueError, match=r"\d\.parquet: the column 'large' has a missing value in"):
        fit(options, ProgressReporter())


def test_a_scheduler_that_does_not_answer_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("cfgd.apps.fit.dask_workers.CONNECT", 0.2)
    folder = write_files(tmp_path / "data", "squared")
    with pytest.raises(ValueError, match=r"--dask: no scheduler answers at tcp://127\.0\.0\.1:9"):
        fit(FitOptions(folder, "y", dask="tcp://127.0.0.1:9"), ProgressReporter())


@pytest.mark.slow
def test_ranges_of_a_text_file_are_read_by_several_workers(tmp_path, address, monkeypatch):
    """A file without quotes is divided at the ends of lines; codes in one range change all."""
    random, columns, eta = skewed_columns(40_000)
    columns["y"] = targets("squared", random, eta)
    columns["late"] = np.array(["1"] * 39_990 + ["x"] * 10)
    path = write(tmp_path / "plain.csv", columns)
    text = path.read_text().replace('"', "")
    path.write_text(text)
    assert path.stat().st_size > 2**21
    options = {"category": ("late",), "rare": 0}
    in_memory = fit(FitOptions(path, "y", **options), ProgressReporter())
    on_cluster = fit(FitOptions(path, "y", dask=address, **options), ProgressReporter())
    assert_same(saved(in_memory, tmp_path / "a.json"), saved(on_cluster, tmp_path / "b.json"))
