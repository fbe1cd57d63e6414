"""Damaged checkpoints and those of other runs are refused, or replaced by the previous file."""

import json
import re
import shutil
import zipfile

import numpy as np
import pytest
from resumed import LOGISTIC, MEMORY, QUADRATIC, same
from solver_cases import X, Y, valley

import cfgd
from cfgd.solve import checkpoint_file

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
    wanted = "`minimize(checkpoint=...)` must be a file of the same run, or a new file"
    assert str(error.value).startswith(wanted)


def test_another_version_is_refused(saved, monkeypatch):
    monkeypatch.setattr("cfgd.solve.checkpoint.__version__", "99.0")
    with pytest.raises(ValueError, match=r"its version is .*, here 99\.0"):
        cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, checkpoint=saved)


def test_a_file_of_format_1_is_refused(saved):
    for path in (saved, checkpoint_file.previous_path(saved)):
        meta, arrays = checkpoint_file.read(path)
        checkpoint_file.write(path, meta | {"format": "cfgd checkpoint 1"}, arrays)
    with pytest.raises(ValueError, match=r"whose solvers no longer exist: start a new run\.$"):
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
    with pytest.warns(UserWarning, match=r"is damaged: .* resumes from the previous one"):
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


@pytest.mark.parametrize("length", [300, 252])
def test_a_name_that_is_too_long_is_refused_before_the_run(length, tmp_path):
    """The name of the file before, with seven more characters, must be allowed, too."""
    with pytest.raises(ValueError, match=r"must be the name of a file .*\(File name too long\)\.$"):
        cfgd.minimize(valley, np.zeros(3), checkpoint=tmp_path / ("x" * length))


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
    with pytest.warns(UserWarning, match=r"is damaged: .* resumes from the previous one"):
        same(cfgd.minimize(valley, np.zeros(6), max_iterations=9, checkpoint=file), whole)
    file.write_bytes(forged)
    checkpoint_file.previous_path(file).unlink()
    with pytest.raises(ValueError, match=r"^`minimize\(checkpoint=[^\n]* is damaged: [^\n]*\.$"):
        cfgd.minimize(valley, np.zeros(6), max_iterations=9, checkpoint=file)
