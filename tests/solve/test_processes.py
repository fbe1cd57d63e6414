"""Several processes give what one gives, decide together, and end if one of them dies."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from processes import CURVATURES, ETAS, METHOD, METHODS, QUICK, D, data, many_fits, solve

import cfgd
from cfgd import distributed
from cfgd.apps import launch

HERE = Path(__file__).parent
SCRIPT = str(HERE / "processes.py")
CACHE = Path(__file__).parents[2] / ".jax_cache"
# programs are compiled once, by whichever process is first
OWN = {
    "PYTHONPATH": str(Path(cfgd.__file__).parents[1]),
    "JAX_COMPILATION_CACHE_DIR": str(CACHE),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
LIMIT = 900  # seconds after which a test gives up: for a busy machine, an idle one takes 20


def started(count, folder, *scenarios):
    """Start `count` processes, their output in files."""
    address = f"127.0.0.1:{launch.free_port()}"
    processes = []
    for index in range(count):
        own = {
            distributed.COORDINATOR: address,
            distributed.COUNT: str(count),
            distributed.INDEX: str(index),
        }
        with (folder / f"{index}.txt").open("wb") as out:
            command = [sys.executable, "-W", "error", SCRIPT, str(folder), *scenarios]
            env = os.environ | OWN | own
            processes.append(subprocess.Popen(command, env=env, stdout=out, stderr=out))
    return processes


def output(folder, index):
    return (folder / f"{index}.txt").read_text()


def found(count, folder, *scenarios):
    """Run `count` processes and return what each of them wrote."""
    processes = started(count, folder, *scenarios)
    try:
        for index, process in enumerate(processes):
            assert process.wait(LIMIT) == 0, output(folder, index)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [json.loads((folder / f"{i}.json").read_text()) for i in range(count)]


@pytest.fixture(scope="module")
def alone():
    return solve(lambda X, y: (X, y, None), QUICK)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    return folder, found(2, folder, "quick", "decisions")


def assert_same_as_alone(ends, alone):
    """Compare to rounding: a run that goes on from differences of rounding stays near."""
    for name, one in alone.items():
        assert ends[name]["status"] == one["status"], name
        fields, rtol = ("x", "value", "iterations", "history"), 1e-9
        if name == "residuals":  # a fit ends by the size of its last step, which rounding changes
            assert abs(ends[name]["iterations"][0] - one["iterations"][0]) <= 1
            fields, rtol = ("x", "value"), 1e-8
        if name == "network":  # rounding decides the signs of its units, and the last steps
            fields = ("value",)
        for field in fields:
            np.testing.assert_allclose(ends[name][field], one[field], rtol, 1e-11, err_msg=name)
        if one["covariance"] is not None:
            np.testing.assert_allclose(ends[name]["covariance"], one["covariance"], 10 * rtol)


def test_two_processes_give_what_one_gives(two, alone):
    first, second = two[1]
    assert first["process"] == [0, 2]
    assert second["process"] == [1, 2]
    assert_same_as_alone(first, alone)
    for name in alone:  # and every process the same, to the last bit
        assert second[name] == first[name], name


@pytest.mark.slow
def test_two_processes_give_what_one_gives_on_every_objective(tmp_path):
    first, second = found(2, tmp_path, "all")
    alone = solve(lambda X, y: (X, y, None), ("all",))
    assert_same_as_alone(first, alone)
    assert all(second[name] == first[name] for name in alone)


@pytest.mark.slow
def test_many_fits_are_shared_by_two_processes(tmp_path):
    first, second = found(2, tmp_path, "many")
    np.testing.assert_array_equal(first["table"], second["table"])
    np.testing.assert_allclose(first["table"], many_fits().table, rtol=1e-12)


@pytest.mark.slow
def test_four_processes_give_what_one_gives(tmp_path):
    """The second of them has no rows."""
    ends = found(4, tmp_path, "few")
    few = solve(lambda X, y: (X, y, None), ("logistic", "least squares"))
    assert_same_as_alone(ends[0], few)
    for other in ends[1:]:
        assert all(other[name] == ends[0][name] for name in few)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "status"),
    [("callback", "callback"), ("ctrl-c", "interrupted"), ("time limit", "time_limit")],
)
def test_a_decision_of_one_process_ends_all(two, name, status):
    first, second = (of[name] for of in two[1])
    assert first == second
    assert first["status"] == [status]
    assert first["iterations"][0] == {"callback": 30, "ctrl-c": 20}.get(
        name, first["iterations"][0]
    )


@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        ("error", "KeyError: 'mine'", "Process 1 failed, so all processes fail. KeyError: 'mine'"),
        ("finite", "got nan at index (3, 1)", "Process 1 failed"),
        ("columns", "must be the same on every process", "got another one on process 1"),
        ("unlike", "`minimize(max_iterations=...)`", "got another one on process 1"),
        ("labels", "be 0/1 or -1/1 for the loss logistic, got", "at index"),
    ],
)
def test_an_error_of_one_process_is_raised_on_all(two, name, own, other):
    first, second = (of[name] for of in two[1])
    assert own in second
    assert other in first
    assert "nothing" not in (first, second)


def test_a_file_that_the_first_process_cannot_write_is_refused_on_all(two):
    first, second = (of["nowhere"] for of in two[1])
    assert "`minimize(checkpoint=...)` must be the name of a file" in first
    assert second.startswith(
        "OtherProcessError: Process 0 failed, so all processes fail. ValueError: `minimize("
    )


def test_a_checkpoint_is_written_by_the_first_and_read_for_all(two):
    for of in two[1]:
        whole, resumed = of["checkpoint"]
        assert resumed["iterations"] == whole["iterations"] == [40]
        assert resumed == whole  # to the last bit: `aux` is in the file
        assert of["files"] == ["run.npz", "run.npz.before"]
        whole, resumed = of["checkpoint of Auto"]
        assert whole["iterations"][0] > 2
        assert resumed == whole


def test_only_the_first_process_shows_progress(two):
    folder, _ = two
    assert "it/s" in output(folder, 0)
    assert "it/s" not in output(folder, 1)


def test_settings_of_a_sweep_are_sharded(two):
    """There are five of them on two devices: x_k of gradient descent is a power of k."""
    curvatures, etas = np.array(CURVATURES), np.array(ETAS)[:, None]
    for of in two[1]:
        shared = of["shared out"]
        assert shared["iterations"] == [4] * 5
        factors = (1 - etas * curvatures) ** 4
        np.testing.assert_allclose(np.reshape(shared["x"], (5, 3)), (1 - factors) / curvatures)
        values = np.sum(0.5 * factors**2 / curvatures - 0.5 / curvatures, 1)
        np.testing.assert_allclose(shared["value"], values)


@pytest.mark.slow
@pytest.mark.parametrize("dies", [0, 1])
def test_a_process_that_dies_ends_the_other(tmp_path, dies):
    processes = started(2, tmp_path, "endless")
    try:
        file, began = tmp_path / "run.npz", time.monotonic()
        while not file.exists():
            assert time.monotonic() - began < LIMIT, output(tmp_path, 0)
            time.sleep(0.05)
        processes[dies].send_signal(signal.SIGKILL)
        began = time.monotonic()
        assert processes[1 - dies].wait(60) != 0
        print(f"{time.monotonic() - began:.1f} s")
    finally:
        for process in processes:
            process.kill()
            process.wait()
    said = output(tmp_path, 1 - dies)
    # of the two that say it, whichever was first
    ours = "Another process has ended or cannot be reached" in said and str(file) in said
    assert ours or "another task died" in said
    assert file.exists()


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("exit", 5, "Process 1 failed, so all processes fail. It called sys.exit(5)."),
        ("sleep", distributed.process_group.FOLLOWED, "Process 0 has waited 5 seconds"),
        ("stop", 128 + signal.SIGKILL, "process 1 of 2 has been stopped for 3 seconds"),
        ("kill", 128 + signal.SIGKILL, "process 1 of 2 ended with signal SIGKILL"),
    ],
)
def test_a_process_that_misbehaves_in_its_callback_ends_all(
    tmp_path, capfd, monkeypatch, how, code, said
):
    monkeypatch.setattr(launch, "STOPPED", 3.0)
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    pids = tmp_path / "pids"
    script = tmp_path / "script.py"
    script.write_text(
        "import os, runpy, sys\n"
        f"with open({str(pids)!r}, 'a') as file:\n    file.write(f'{{os.getpid()}}\\n')\n"
        f"runpy.run_path({SCRIPT!r}, run_name='__main__')\n"
    )
    command = [sys.executable, str(script), str(tmp_path), "misbehave", how]
    assert launch.launch(command, 2) == code
    assert said in capfd.readouterr().err
    for pid in map(int, pids.read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


# ------------------------------------------------------------------ on one process


def test_rows_on_one_process_are_not_changed():
    of = data()
    held = distributed.rows(of["X"], of["labels"])
    assert held.sample_weight is None
    assert held.X.shape == of["X"].shape
    assert held.X.dtype == np.float64
    ends = [
        cfgd.minimize(cfgd.LinearModel(X, y), np.zeros(D), METHOD, max_iterations=5)
        for X, y in ((of["X"], of["labels"]), held[:2])
    ]
    np.testing.assert_allclose(ends[0].x, ends[1].x, 1e-12)


@pytest.mark.parametrize(
    ("X", "y", "weight", "said"),
    [
        (np.ones((3, 2)), np.ones(2), None, r"`rows\(y=...\)` must have a row for each row of X"),
        (np.ones((3, 2)), [1, 2, "a"], None, r"`rows\(y=...\)` must be an array of numbers"),
        (np.ones((3, 2)), np.ones(3), np.ones(2), r"`rows\(sample_weight=...\)` must have shape"),
        (np.ones((0, 2)), np.ones(0), None, r"`rows\(X=...\)` must have rows on some process"),
        (np.full((3, 2), np.inf), np.ones(3), None, r"`rows\(X=...\)` must be finite, got inf"),
    ],
)
def test_bad_rows(X, y, weight, said):
    with pytest.raises(ValueError, match=said):
        distributed.rows(X, y, weight)


@pytest.mark.slow
def test_settings_of_a_sweep_sharded_over_one_device():
    f = cfgd.LinearModel(data()["X"], data()["labels"])
    alone, shared = (
        cfgd.sweep(f, np.zeros(D), METHODS, max_iterations=5, spread=spread)
        for spread in (False, True)
    )
    np.testing.assert_allclose(alone.x, shared.x, 1e-13)


# ------------------------------------------------------------------ the launcher


def in_processes(tmp_path, code, count=2):
    script = tmp_path / "script.py"
    script.write_text(
        f"import os, signal, sys, time\nme = os.environ['{distributed.INDEX}']\n{code}"
    )
    return launch.launch([sys.executable, str(script)], count)


def test_output_of_all_processes(tmp_path, capfd):
    # one write for each line: several writes of the processes would mix
    assert in_processes(tmp_path, "os.write(1, f'I am {me}\\n'.encode())", 3) == 0
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == ["I am 0", "[1] I am 1", "[2] I am 2"]


def test_a_process_that_fails_ends_the_others(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(launch, "GRACE", 0.2)
    code = "if me == '1':\n    print('oh', file=sys.stderr)\n    sys.exit(7)\ntime.sleep(1e6)"
    assert in_processes(tmp_path, code) == 7
    said = capfd.readouterr().err
    assert "[1] oh" in said
    assert "cfgd launch: process 1 of 2 ended with code 7; the other processes end, too." in said


def test_a_process_that_is_killed_ends_the_others(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(launch, "GRACE", 0.2)
    code = "if me == '0':\n    os.kill(os.getpid(), 9)\ntime.sleep(1e6)"
    assert in_processes(tmp_path, code) == 128 + 9
    assert "process 0 of 2 ended with signal SIGKILL" in capfd.readouterr().err


def test_ctrl_c_reaches_all_processes(tmp_path, capfd):
    code = """
from pathlib import Path
ready = Path(__file__).with_name("ready")
# processes that a shell starts in the background ignore the signal
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    if me == "1":
        ready.touch()
    while not ready.exists():
        time.sleep(0.01)
    if me == "0":
        os.kill(os.getppid(), signal.SIGINT)
    time.sleep(1e6)
except KeyboardInterrupt:
    os.write(1, b"asked\\n")  # in one piece, beside the line of the other process
"""
    assert in_processes(tmp_path, code) == 0
    assert sorted(capfd.readouterr().out.splitlines()) == ["[1] asked", "asked"]


@pytest.mark.slow
def test_no_process_outlives_the_launcher(tmp_path):
    """Not even one that ignores signals, of a launcher that was killed."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, time\nfrom pathlib import Path\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"me = os.environ['{distributed.INDEX}']\n"
        "Path(__file__).with_name(me).write_text(str(os.getpid()))\ntime.sleep(1e6)\n"
    )
    code = f"from cfgd.apps.launch import launch; launch([{sys.executable!r}, {str(script)!r}], 2)"
    launcher = subprocess.Popen([sys.executable, "-c", code], env=os.environ | OWN)
    files = [tmp_path / "0", tmp_path / "1"]
    pids: list[int] = []
    try:
        began = time.monotonic()
        while not all(file.exists() and file.read_text() for file in files):
            assert time.monotonic() - began < LIMIT
            time.sleep(0.05)
        pids = [int(file.read_text()) for file in files]
        launcher.kill()
        launcher.wait()
        while any(is_running(pid) for pid in pids):
            assert time.monotonic() - began < LIMIT
            time.sleep(0.05)
    finally:
        launcher.kill()
        launcher.wait()
        for pid in filter(is_running, pids):
            os.kill(pid, signal.SIGKILL)


def is_running(pid):
    """Return whether a process runs; one that nobody waits for has ended, too."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
