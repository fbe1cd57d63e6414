"""Fits on a real Dask cluster, and in two processes, give the model.json of a fit in memory."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from distributed import Client, LocalCluster
from fit_tables import skewed_columns, targets, write
from typer.testing import CliRunner

from cfgd._core.extras import install_command
from cfgd.apps.cli import app
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


@pytest.mark.slow
@pytest.mark.parametrize("memory", [None, "0.02"])
def test_two_processes_share_the_files(tmp_path, memory, capfd):
    """In memory and streamed: each process reads its share, and the first one prints."""
    folder = write_files(tmp_path / "data", "poisson")
    words = ["fit", folder, "--target", "y", "--loss", "poisson", "--missing", "mean"]
    words += ["--offset", "offset", "--drop", "cluster", "--drop", "weight", "--errors", "hc3"]
    words += [] if memory is None else ["--memory", memory]
    for processes in ("1", "2"):
        more = ["--processes", processes, "--out", tmp_path / processes]
        assert CliRunner().invoke(app, list(map(str, [*words, *more]))).exit_code == 0
    assert capfd.readouterr().out.count("Converged in") == 1  # that of the two processes
    one, two = (json.loads((tmp_path / n / "model.json").read_text()) for n in ("1", "2"))
    assert_same(one, two)


@pytest.mark.slow
def test_two_processes_print_an_error_once(tmp_path, capfd):
    folder = write_files(tmp_path / "data", "squared")
    words = ["fit", folder, "--target", "y", "--processes", "2", "--out", tmp_path / "out"]
    assert CliRunner().invoke(app, list(map(str, words))).exit_code == 2
    said = capfd.readouterr()
    assert said.err.count("cfgd: ") == 1
    assert "0.parquet: the column 'large' has a missing value in row 1" in said.err


def test_without_dask_the_install_command_is_printed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    write(tmp_path / "a.csv", {"x": np.arange(30.0) ** 2, "y": np.arange(30.0)})
    for words in (
        ("fit", tmp_path / "a.csv", "--target", "y"),
        ("fit", tmp_path / "a.csv", "--target", "y", "--processes", "2"),
    ):
        run = CliRunner().invoke(app, [*map(str, words), "--dask", "local"])
        sentence = "cfgd: --processes and --dask: give one of them.\n"
        if "--processes" not in words:
            sentence = f"cfgd: --dask needs distributed: {install_command('dask')}.\n"
        assert (run.exit_code, run.output) == (2, sentence)


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


@pytest.mark.slow
def test_a_fit_survives_workers_that_die(tmp_path):
    """A nanny starts a worker anew, and its parts are computed again."""
    folder = write_files(tmp_path / "data", "logistic")
    options = {"cross_validate": False, "errors": "hc3"}
    in_memory = fit(options_of("logistic", folder, **options), ProgressReporter())
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        killed = []

        class Killer(ProgressReporter):
            def start_stage(self, name, rows=None):
                if name in ("correlations", "standard errors"):
                    process = cluster.workers[len(killed)].process
                    os.kill(process.pid, signal.SIGKILL)
                    killed.append(name)

        address = cluster.scheduler_address
        found = fit(options_of("logistic", folder, dask=address, **options), Killer())
    assert len(killed) == 2
    assert_same(saved(in_memory, tmp_path / "a.json"), saved(found, tmp_path / "b.json"))


# the command line, which says when cross-validation begins
SAYS_WHEN = """
from cfgd.apps.fit import run

found = run.cross_validate

def cross_validate(*args):
    print("begun", flush=True)
    return found(*args)

run.cross_validate = cross_validate
if __name__ == "__main__":
    from cfgd.__main__ import main

    main()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for a process group")
def test_ctrl_c_ends_all_processes(tmp_path):
    folder, script = write_files(tmp_path / "data", "logistic"), tmp_path / "script.py"
    script.write_text(SAYS_WHEN)
    command = [folder, "--target", "y", "--missing", "mean", "--dask", "local", "--cross-validate"]
    with subprocess.Popen(
        [sys.executable, script, "fit", *map(str, command), "--out", tmp_path / "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    ) as process:
        assert process.stdout.readline() == "begun\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert output.strip() == "Interrupted by Ctrl-C."
    for _ in range(600):  # a minute for the tracker of resources, which ends after this process
        if not _processes_of(process.pid):
            break
        time.sleep(0.1)
    assert _processes_of(process.pid) == 0


def _processes_of(group: int) -> int:
    found = subprocess.run(["pgrep", "-g", str(group)], capture_output=True, text=True)
    return len(found.stdout.split())
