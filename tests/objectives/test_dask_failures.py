"""Workers that are killed and that join, a scheduler that dies, and Ctrl-C, on real clusters."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
import statsmodels.api as sm
from distributed import Client, LocalCluster, get_worker

import cfgd
from cfgd._core.engines import dask_cluster
from cfgd._core.engines.dask_cluster import DaskEngine
from cfgd._core.engines.lost_cluster import LostClusterError

random = np.random.default_rng(6)
M = 600
X = random.normal(size=(M, 3)) * [1.0, 3.0, 0.2] + [0.5, 0, 0]
Y = (X @ [1.0, -0.3, 2.0] + random.logistic(size=M) > 0.4).astype(float)


@contextlib.contextmanager
def cluster_of(workers):
    with (
        # a local cluster gives up a worker that has not restarted after 15 s by default, which a
        # busy machine may need
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 h"}),
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield cluster, client


def deadly_rows(folder):
    """Return rows whose making kills the worker if the folder has a file, which it removes.

    The third of four blocks of a part does it: in the middle of a pass.
    """

    def make(block, block_info=None):
        if block_info[0]["chunk-location"][0] % 4 == 2:
            for token in sorted(folder.iterdir()):
                with contextlib.suppress(FileNotFoundError):
                    token.unlink()
                    os.kill(os.getpid(), signal.SIGKILL)
        return block

    rows = da.from_array(X, chunks=(20, 3))
    return rows.map_blocks(make, dtype=float, meta=np.empty((0, 0)))


def fit_with_kills(client, folder, kills):
    """Fit, with a killed worker at each of the first iterations; return how many there were."""
    f = cfgd.Blocks(deadly_rows(folder), da.from_array(Y, chunks=20), intercept=True, client=client)

    def kill(run):
        nonlocal kills
        if kills:
            (folder / f"{kills}").touch()
            kills -= 1

    asked = kills
    solution = cfgd.minimize(f, np.zeros(4), tolerance=1e-12, callback=kill)
    assert solution.success
    assert not list(folder.iterdir())
    theirs = sm.Logit(Y, sm.add_constant(X)).fit(disp=0, tol=1e-14).params
    np.testing.assert_allclose(solution.x, np.roll(theirs, -1), rtol=1e-8)
    return asked - kills


def test_a_worker_that_is_killed_is_survived(tmp_path):
    with cluster_of(2) as (_, client):
        assert fit_with_kills(client, tmp_path, 1) == 1


@pytest.mark.slow
def test_twenty_killed_workers_are_survived(tmp_path):
    with cluster_of(2) as (_, client):
        done = 0
        while done < 20:
            done += fit_with_kills(client, tmp_path, min(4, 20 - done))


@pytest.mark.slow
def test_blocks_that_kill_every_worker_end_the_run():
    def make(block):
        os.kill(os.getpid(), signal.SIGKILL)

    rows = da.from_array(X, chunks=(600, 3)).map_blocks(make, dtype=float, meta=np.empty((0, 0)))
    with cluster_of(2) as (_, client), pytest.raises(LostClusterError, match="smaller chunks"):
        cfgd.Blocks(rows, Y, client=client)


@pytest.mark.slow
def test_a_worker_that_joins_is_used():
    def address(blocks):
        sum(1 for _ in blocks)
        time.sleep(0.1)  # tasks of less than 5 ms are not given to other workers
        return get_worker().address

    with cluster_of(1) as (cluster, client):
        f = cfgd.Blocks(da.from_array(X, chunks=(20, 3)), Y, client=client)
        engine = f.stream.engine
        assert len(set(engine.map(address))) == 1
        cluster.scale(2)
        client.wait_for_workers(2)
        # the scheduler looks now and then for workers without work
        assert any(len(set(engine.map(address))) == 2 for _ in range(100))


@pytest.mark.slow
def test_a_cluster_without_workers_is_waited_for_with_a_warning(monkeypatch):
    monkeypatch.setattr(dask_cluster, "PATIENCE", 0.1)
    expected = cfgd.LinearModel(X, Y).value(np.ones(3))
    with cluster_of(1) as (cluster, client):
        f = cfgd.Blocks(
            da.from_array(X, chunks=(20, 3)), da.from_array(Y, chunks=20), client=client
        )
        has_warned, warn = threading.Event(), dask_cluster.checks.warn

        def warn_and_tell(*args):
            warn(*args)
            has_warned.set()

        monkeypatch.setattr(dask_cluster.checks, "warn", warn_and_tell)
        cluster.scale(0)
        while client.nthreads():
            time.sleep(0.01)

        def restart():
            has_warned.wait()
            cluster.scale(1)

        sender = threading.Thread(target=restart)
        sender.start()
        with pytest.warns(UserWarning, match="The Dask cluster has no workers"):
            np.testing.assert_allclose(f.value(np.ones(3)), expected, rtol=1e-12)
        sender.join()


SCHEDULER = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]


@pytest.mark.slow
def test_a_scheduler_that_dies_ends_the_run_which_another_one_resumes(tmp_path):
    file, checkpoint = tmp_path / "scheduler.json", tmp_path / "run.npz"

    @contextlib.contextmanager
    def processes():
        common = ["--scheduler-file", str(file)]
        file.unlink(missing_ok=True)
        scheduler = subprocess.Popen(
            [sys.executable, *SCHEDULER, "--dashboard-address", ":0", *common]
        )
        worker = subprocess.Popen(
            [
                *(sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1"),
                *("--no-dashboard", "--death-timeout", "60", *common),
            ]
        )
        try:
            yield scheduler
        finally:
            for process in (worker, scheduler):
                process.kill()
                process.wait()

    def run(client, callback=None):
        f = cfgd.Blocks(da.from_array(X, chunks=(20, 3)), da.from_array(Y, chunks=20), l2=0.1,
                        client=client)  # fmt: skip
        return cfgd.minimize(
            f,
            np.zeros(3),
            tolerance=1e-12,
            checkpoint=checkpoint,
            checkpoint_every=0,
            callback=callback,
        )

    with processes() as scheduler, Client(scheduler_file=file, set_as_default=False) as client:

        def die(state):
            if state.iterations == 2:
                scheduler.kill()
                scheduler.wait()

        with pytest.raises(LostClusterError, match="the same call resumes") as error:
            run(client, die)
        assert error.value.solution.iterations >= 2
    assert checkpoint.exists()
    with processes(), Client(scheduler_file=file, set_as_default=False) as client:
        again = run(client)
    whole = cfgd.minimize(cfgd.LinearModel(X, Y, l2=0.1), np.zeros(3), tolerance=1e-12)
    np.testing.assert_allclose(again.x, whole.x, rtol=1e-8)
    assert again.iterations == whole.iterations


@pytest.mark.slow
def test_ctrl_c_cancels_the_tasks(tmp_path):
    """A signal arrives while a block waits for it."""
    begun, end = tmp_path / "begun", tmp_path / "end"

    def waiting(blocks):
        begun.touch()
        while not end.exists():
            time.sleep(0.01)

    with cluster_of(1) as (_, client):
        f = cfgd.Blocks(da.from_array(X, chunks=(20, 3)), Y, client=client)
        engine = f.stream.engine
        assert isinstance(engine, DaskEngine)
        tests = threading.main_thread().ident

        def interrupt():
            while not begun.exists():
                time.sleep(0.01)
            signal.pthread_kill(tests, signal.SIGINT)

        sender = threading.Thread(target=interrupt)
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            list(engine.map(waiting))
        sender.join()
        tasks = client.run_on_scheduler(
            lambda dask_scheduler: [
                key for key, task in dask_scheduler.tasks.items()
                if str(key).startswith("_apply") and task.state != "forgotten"
            ]
        )  # fmt: skip
        end.touch()
        assert len(tasks) <= 1  # the one that runs cannot be stopped
        f.value(np.zeros(3))  # the cluster is of use again
