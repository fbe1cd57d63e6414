"""A stopped run resumes from its checkpoint bit for bit; other files are refused."""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from fake_clock import fake_clock
from solver_cases import CASES, SWEPT, X, Y, valley

import cfgd
from cfgd.methods.auto.oracle import Oracle
from cfgd.solve import checkpoint_file
from problems import quick

MEMORY = cfgd.AdaptiveTerminal(gamma=-0.2, lag=3)
PROBED = cfgd.AdaptiveTerminal(gamma=-0.1)
STAGES = [cfgd.Stage(30, gamma=1.0), cfgd.Stage(60, gamma=0.0)]
QUADRATIC = CASES["conjugate gradients"][0]
LOGISTIC = CASES["Levenberg-Marquardt on a linear model"][0]
COMPILED = {
    "a function": (valley, np.zeros(6), cfgd.AdaptiveTerminal(gamma=-0.1, nodes=3)),
    "a quadratic": (QUADRATIC, np.ones(12), MEMORY),
    "stages": (QUADRATIC, np.ones(12), cfgd.AdaptiveOrder(STAGES, np.zeros(12))),
    "random probes": (cfgd.Local(valley, "hutchinson", key=3), np.zeros(6), PROBED),
}
AUTO = {name: (objective, starts[0], None) for name, (objective, starts) in CASES.items()}
AUTO["L-BFGS on a linear model"] = (LOGISTIC, np.zeros(5), cfgd.Auto("lbfgs"))
FEW = ["a quadratic"]


def same(a, b):
    np.testing.assert_array_equal(a.x, b.x)
    assert (a.value, a.iterations, a.evaluations, a.status) == (
        b.value, b.iterations, b.evaluations, b.status,
    )  # fmt: skip
    assert a.message == b.message
    assert sorted(a.history) == sorted(b.history)
    for name in a.history:
        np.testing.assert_array_equal(a.history[name], b.history[name], err_msg=name)


@pytest.mark.one_case
@pytest.mark.parametrize(("objective", "x0", "method"), quick(COMPILED | AUTO, [*AUTO, *FEW]))
def test_a_run_resumes_bit_for_bit(objective, x0, method, tmp_path):
    options = {"max_iterations": 90, "record": {"first": lambda x: x[0]}, "tolerance": 1e-13}
    whole = cfgd.minimize(objective, x0, method, **options)
    file = tmp_path / "run.npz"
    for stop in (1, 3, 8, 90):
        part = cfgd.minimize(
            objective, x0, method, checkpoint=file, **options | {"max_iterations": stop}
        )
        assert part.iterations == min(stop, whole.iterations)
    same(part, whole)
    again = cfgd.minimize(objective, x0, method, checkpoint=file, **options)
    same(again, whole)


@pytest.mark.slow
def test_a_sweep_resumes_bit_for_bit(tmp_path):
    methods = cfgd.AdaptiveTerminal(gamma=[-0.3, -0.1, 0.0])
    options = {"max_iterations": 200, "record": {"first": lambda x: x[0]}}
    whole = cfgd.sweep(QUADRATIC, np.ones(12), methods, **options)
    file = tmp_path / "sweep.npz"
    for stop in (8, 40, 200):
        part = cfgd.sweep(
            QUADRATIC, np.ones(12), methods, checkpoint=file, **options | {"max_iterations": stop}
        )
    for one, other in zip(part, whole, strict=True):
        same(one, other)


@pytest.mark.parametrize(("objective", "starts"), quick(SWEPT, ["variable projection"]))
def test_a_sweep_of_auto_resumes_bit_for_bit(objective, starts, tmp_path):
    options = {"max_iterations": 60, "record": {"first": lambda x: x[0]}, "tolerance": 1e-13}
    whole = cfgd.sweep(objective, starts, cfgd.Auto(), **options)
    for stop in (1, 5, 60):
        part = cfgd.sweep(
            objective, starts, cfgd.Auto(),
            checkpoint=tmp_path / "sweep.npz", **options | {"max_iterations": stop},
        )  # fmt: skip
    for one, other in zip(part, whole, strict=True):
        same(one, other)


@contextlib.contextmanager
def slow_evaluations():
    """Let a second pass before every evaluation or product of Auto's solvers."""
    check = Oracle.check_stop

    def ticking(self):
        clock.advance(1.0)
        check(self)

    with fake_clock() as clock, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Oracle, "check_stop", ticking)
        yield


ONCE = [name for name in CASES if "rescaled" not in name]


@pytest.mark.parametrize(("objective", "starts"), quick(CASES, ONCE))
def test_a_run_resumes_after_a_stop_in_the_middle_of_a_step(objective, starts, tmp_path):
    options = {"max_iterations": 60, "tolerance": 1e-13, "every": 3}
    whole = cfgd.minimize(objective, starts[0], **options)
    with slow_evaluations():
        for seconds in (2.5, 6.5, 11.5, 20.5, 1e9):
            part = cfgd.minimize(
                objective, starts[0], time_limit=seconds, checkpoint=tmp_path / "run.npz", **options
            )
    same(part, whole)


@pytest.mark.slow
def test_a_sweep_resumes_after_a_stop_between_its_runs(tmp_path):
    """Some runs are then an iteration ahead of others."""
    objective, starts = CASES["L-BFGS"]
    whole = cfgd.sweep(objective, starts, cfgd.Auto(), max_iterations=30)
    stopped = set()
    with slow_evaluations():
        for seconds in (2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 1e9):
            part = cfgd.sweep(
                objective, starts, cfgd.Auto(), max_iterations=30,
                time_limit=seconds, checkpoint=tmp_path / "run.npz",
            )  # fmt: skip
            stopped.add(part.iterations[0] - part.iterations[1])
    assert 1 in stopped
    for one, other in zip(part, whole, strict=True):
        same(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, MEMORY], ids=["on the host", "compiled"])
def test_rows_of_the_history_stay_multiples_of_every(method, tmp_path):
    """A run that stopped in between has a row there, which a longer run does not have."""
    options = {"every": 5, "tolerance": 0, "record": {"first": lambda x: x[0]}}
    file, (f, starts) = tmp_path / "run.npz", CASES["L-BFGS"]
    part = cfgd.minimize(f, starts[0], method, max_iterations=7, checkpoint=file, **options)
    np.testing.assert_array_equal(part.history["iteration"], [0, 5, 7])
    part = cfgd.minimize(f, starts[0], method, max_iterations=22, checkpoint=file, **options)
    np.testing.assert_array_equal(part.history["iteration"], [0, 5, 10, 15, 20, 22])
    same(part, cfgd.minimize(f, starts[0], method, max_iterations=22, **options))


# Seconds between checkpoints, seconds that one takes, and the iterations after which one is written
# if an iteration takes a second. A run of 20 iterations writes another one at its end.
INTERVALS = {
    "at the end only": (3600, 0.0, []),
    "every second": (0, 0.0, [*range(1, 20)]),
    "every five seconds": (5, 0.0, [5, 10, 15]),
    # after one that took 1/16 s none is written for 100/16 s: the run may lose one percent
    "a slow disk": (0, 0.0625, [1, 8, 15]),
}


@pytest.mark.parametrize(("every", "takes", "wanted"), INTERVALS.values(), ids=INTERVALS)
def test_intervals_between_two_files(every, takes, wanted, tmp_path, monkeypatch):
    iterations, written = [0], []

    def next_second(solution):
        clock.advance(1.0)
        iterations.append(solution.iterations)

    def write(*args):
        clock.advance(takes)
        written.append(iterations[-1])

    monkeypatch.setattr("cfgd.solve.checkpoint.write", write)
    with fake_clock() as clock:
        cfgd.minimize(
            valley, np.zeros(6), max_iterations=20, tolerance=0, callback=next_second,
            checkpoint=tmp_path / "a", checkpoint_every=every,
        )  # fmt: skip
    assert written == [*wanted, 19]  # there is no callback after the last iteration


@pytest.mark.slow
def test_a_run_resumes_after_its_callback_has_stopped_it(tmp_path):
    def stop(solution):
        if solution.iterations >= 7:
            raise StopIteration

    file = tmp_path / "run.npz"
    part = cfgd.minimize(valley, np.zeros(6), callback=stop, checkpoint=file)
    assert part.status.name == "callback"
    same(cfgd.minimize(valley, np.zeros(6), checkpoint=file), cfgd.minimize(valley, np.zeros(6)))


# ------------------------------------------------------------------- files that are not of this run


@pytest.fixture(scope="module")
def saved_once(tmp_path_factory):
    """Write a file and its previous one."""
    file = tmp_path_factory.mktemp("saved") / "run.npz"
    for most in (16, 24):
        cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, max_iterations=most, checkpoint=file)
    return file


@pytest.fixture
def saved(saved_once, tmp_path):
    """Return a copy of the file, with the previous one beside it."""
    shutil.copytree(saved_once.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / saved_once.name


PENALISED = cfgd.LinearModel(X, Y > 0, l2=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("method", [cfgd.Auto(), MEMORY], ids=["on the host", "compiled"])
def test_another_penalty_is_refused_although_it_is_zero_at_the_start(method, tmp_path):
    file = tmp_path / "run.npz"
    cfgd.minimize(LOGISTIC, np.zeros(5), method, max_iterations=8, checkpoint=file)
    with pytest.raises(ValueError, match="of another one: its objective is"):
        cfgd.minimize(PENALISED, np.zeros(5), method, checkpoint=file)


OTHERS = {
    "objective": lambda f: cfgd.minimize(
        cfgd.Quadratic(2 * QUADRATIC.A, 2 * QUADRATIC.b), np.ones(12), MEMORY, checkpoint=f
    ),
    "start": lambda f: cfgd.minimize(QUADRATIC, np.full(12, 2.0), MEMORY, checkpoint=f),
    "method": lambda f: cfgd.minimize(
        QUADRATIC, np.ones(12), cfgd.AdaptiveTerminal(gamma=-0.3, lag=3), checkpoint=f
    ),
    "call": lambda f: cfgd.minimize(QUADRATIC, np.ones(12), cfgd.GradientDescent(), checkpoint=f),
    "tolerances and records": lambda f: cfgd.minimize(
        QUADRATIC, np.ones(12), MEMORY, tolerance=1e-3, checkpoint=f
    ),
    "precision": lambda f: cfgd.minimize(
        cfgd.Quadratic(np.float32(QUADRATIC.A), np.float32(QUADRATIC.b)), np.ones(12, np.float32),
        MEMORY, checkpoint=f,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", OTHERS)
def test_another_run_is_refused(what, saved):
    message = f"of another one: its {what} is"
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        OTHERS[what](saved)
    assert str(error.value).startswith("`minimize(checkpoint=...)` must be a file of this very run")


def test_another_version_is_refused(saved, monkeypatch):
    monkeypatch.setattr("cfgd.solve.checkpoint.__version__", "99.0")
    with pytest.raises(ValueError, match=r"its version is .*, here 99\.0"):
        cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, checkpoint=saved)


def test_a_file_of_format_1_is_refused(saved):
    for path in (saved, checkpoint_file.previous_path(saved)):
        meta, arrays = checkpoint_file.read(path)
        checkpoint_file.write(path, meta | {"format": "cfgd checkpoint 1"}, arrays)
    with pytest.raises(ValueError, match=r"whose solvers no longer exist: start the run anew\.$"):
        cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, checkpoint=saved)


def cut(path):
    path.write_bytes(path.read_bytes()[:-200])


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 4
    path.write_bytes(raw)


def empty(path):
    path.write_bytes(b"")


def rewritten(path):
    """Write a valid file with a wrong checksum."""
    meta, arrays = checkpoint_file.read(path)
    encoded = json.dumps(meta | {"checksum": "0" * 64}).encode()
    with path.open("wb") as file:
        entries = {f"a{i}": array for i, array in enumerate(arrays)}
        np.savez(file, tree=np.frombuffer(encoded, np.uint8), **entries)


def foreign(path):
    """Write a valid file with a class that is none of cfgd's."""
    meta, arrays = checkpoint_file.read(path)
    meta["tree"]["kind"] = "subprocess.Popen"
    checkpoint_file.write(path, meta, arrays)
    checkpoint_file.previous_path(path).unlink()


def no_archive(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")


DAMAGES = [cut, flip, empty, rewritten, no_archive]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_replaced_by_the_previous_one(damage, saved):
    whole = cfgd.minimize(QUADRATIC, np.ones(12), MEMORY)
    damage(saved)
    with pytest.warns(UserWarning, match=r"is damaged: .* goes on from the one before"):
        same(cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, checkpoint=saved), whole)


@pytest.mark.parametrize("damage", [*DAMAGES, foreign])
def test_a_damaged_file_without_a_previous_one_is_refused(damage, saved):
    damage(saved)
    checkpoint_file.previous_path(saved).unlink(missing_ok=True)
    with pytest.raises(ValueError, match=r"The checkpoint .* is damaged: "):
        cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, checkpoint=saved)


def test_a_crash_while_files_are_renamed_loses_nothing(saved):
    saved.unlink()
    whole = cfgd.minimize(QUADRATIC, np.ones(12), MEMORY)
    same(cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, checkpoint=saved), whole)


@pytest.mark.parametrize("name", [3, "", "no/such/folder/run.npz"])
def test_a_bad_name_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ValueError, match=r"checkpoint=\.\.\.\)` must be the name of a file in a fol"
    ):
        cfgd.minimize(valley, np.zeros(3), checkpoint=name)


def test_a_full_disk_does_not_end_the_run(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint_file.np, "savez", full)
    with pytest.warns(UserWarning, match="could not be written: .*No space left"):
        assert cfgd.minimize(valley, np.zeros(3), checkpoint=tmp_path / "run.npz").success
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------- valid checksums, and wrong contents


def start_of_tree(meta):
    """Return the fields of what was saved: the snapshot, the labels and the rows."""
    return meta["tree"]["of"]


def first_state(meta):
    return start_of_tree(meta)["snapshot"]["of"]["0"]["of"]["state"]["of"]


def no_tree(meta, arrays):
    del meta["tree"]


def text_for_a_number(meta, arrays):
    first_state(meta)["iteration"] = {"is": "seven"}


def huge_count(meta, arrays):
    first_state(meta)["iteration"] = {"is": 10**400}


def negative_count(meta, arrays):
    first_state(meta)["iteration"] = {"is": -3}


def missing_field(meta, arrays):
    del first_state(meta)["norm2"]


def unknown_field(meta, arrays):
    first_state(meta)["__dict__"] = {"is": 1}


def unknown_status(meta, arrays):
    first_state(meta)["status"] = {"status": "fine"}


def other_class(meta, arrays):
    start_of_tree(meta)["snapshot"]["of"]["0"]["of"]["state"]["kind"] = "cfgd.status.Status"


def other_shape(meta, arrays):
    arrays[first_state(meta)["evaluation"]["of"]["x"]["array"]] = np.zeros((2, 3))


def other_dtype(meta, arrays):
    arrays[first_state(meta)["evaluation"]["of"]["gradient"]["array"]] = np.array(["a"] * 6)


def text_for_a_scalar(meta, arrays):
    arrays[first_state(meta)["norm2"]["array"]] = np.array("x")


def no_such_array(meta, arrays):
    first_state(meta)["evaluation"]["of"]["x"]["array"] = 1000


def no_identity(meta, arrays):
    meta["of"] = [1, 2]


def rows_of_other_length(meta, arrays):
    place = start_of_tree(meta)["rows"]["of"]["value"]["array"]
    arrays[place] = arrays[place][:-1]


def no_labels(meta, arrays):
    arrays[start_of_tree(meta)["labels"]["array"]] = np.zeros(0, int)


def memory_of_nothing(meta, arrays):
    first_state(meta)["memory"]["of"]["newest"] = {"is": 99}


FORGERIES = [
    *(no_tree, text_for_a_number, huge_count, negative_count, missing_field, unknown_field),
    *(unknown_status, other_class, other_shape, other_dtype, text_for_a_scalar, no_such_array),
    *(no_identity, rows_of_other_length, no_labels, memory_of_nothing),
]


@pytest.fixture(scope="module")
def saved_valley(tmp_path_factory):
    file = tmp_path_factory.mktemp("forged") / "run.npz"
    for most in (3, 6):
        cfgd.minimize(valley, np.zeros(6), max_iterations=most, checkpoint=file)
    return file, cfgd.minimize(valley, np.zeros(6), max_iterations=9)


@pytest.mark.every_case
@pytest.mark.parametrize("forge", FORGERIES)
def test_wrong_content_with_a_valid_checksum(forge, saved_valley, tmp_path):
    """The file before is tried; without it the run is refused with one sentence."""
    original, whole = saved_valley
    shutil.copytree(original.parent, tmp_path, dirs_exist_ok=True)
    file = tmp_path / original.name
    meta, arrays = checkpoint_file.read(file)
    forge(meta, arrays)
    with file.open("wb") as opened:
        checkpoint_file.put(opened, meta, arrays)
    forged = file.read_bytes()
    with pytest.warns(UserWarning, match=r"is damaged: .* goes on from the one before"):
        same(cfgd.minimize(valley, np.zeros(6), max_iterations=9, checkpoint=file), whole)
    file.write_bytes(forged)
    checkpoint_file.previous_path(file).unlink()
    with pytest.raises(ValueError, match=r"^`minimize\(checkpoint=[^\n]* is damaged: [^\n]*\.$"):
        cfgd.minimize(valley, np.zeros(6), max_iterations=9, checkpoint=file)


@pytest.mark.parametrize("most", [1, 3, 5])
def test_a_run_shorter_than_a_block_leaves_a_checkpoint(most, tmp_path):
    """Four iterations of a quadratic are one block; the start is saved where none is complete."""
    file = tmp_path / "run.npz"
    cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, max_iterations=most, checkpoint=file)
    assert file.exists()
    part = cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, max_iterations=16, checkpoint=file)
    same(part, cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, max_iterations=16))


@pytest.mark.parametrize("length", [300, 252])
def test_a_name_that_is_too_long_is_refused_before_the_run(length, tmp_path):
    """The name of the file before, with seven more characters, must be allowed, too."""
    with pytest.raises(ValueError, match=r"must be the name of a file .*\(File name too long\)\.$"):
        cfgd.minimize(valley, np.zeros(3), checkpoint=tmp_path / ("x" * length))


# ------------------------------------------------------------------------------------- kill -9

SCRIPT = """
import sys, numpy as np, cfgd
random = np.random.default_rng(5)
B = random.normal(size=(40, 40))
f = cfgd.Quadratic(B @ B.T / 40 + 1e-5 * np.eye(40), random.normal(size=40))
options = dict(max_iterations=150_000, tolerance=0, every=1000)
options |= dict(checkpoint=sys.argv[2], checkpoint_every=0)
if sys.argv[1] == "run":
    end = cfgd.minimize(f, np.ones(40), cfgd.AdaptiveTerminal(gamma=-0.2), **options)
else:
    end = cfgd.sweep(f, np.ones(40), cfgd.AdaptiveTerminal(gamma=[-0.2, 0.0]), **options)
np.savez(sys.argv[3], x=end.x, end=end.value, **end.history)
"""


def killed_until_done(kind, folder, moments):
    """Return the results, and how often the process was killed before it had ended."""
    script = [sys.executable, "-c", SCRIPT, kind, str(folder / "run.npz"), str(folder / "end.npz")]
    kills = 0
    for moment in moments:
        process = subprocess.Popen(script)
        try:
            process.wait(moment)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    else:
        subprocess.run(script, check=True, timeout=900)
    with np.load(folder / "end.npz") as end:
        return dict(end), kills


def check_kills(kind, number, tmp_path):
    (tmp_path / "whole").mkdir()
    began = time.perf_counter()
    whole, _ = killed_until_done(kind, tmp_path / "whole", [])
    takes = time.perf_counter() - began
    moments, killed = np.random.default_rng(2), 0
    while killed < number:
        shutil.rmtree(tmp_path / "part", ignore_errors=True)
        (tmp_path / "part").mkdir()
        each = moments.uniform(0.3, 1.1, size=min(5, number - killed)) * takes
        found, kills = killed_until_done(kind, tmp_path / "part", each)
        killed += max(kills, 1)
        assert sorted(found) == sorted(whole)
        for name, entry in whole.items():
            np.testing.assert_array_equal(found[name], entry, err_msg=name)


@pytest.mark.slow
def test_killed_at_a_random_moment(tmp_path):
    check_kills("run", 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_killed_at_thirty_random_moments(kind, tmp_path):
    check_kills(kind, 30, tmp_path)
