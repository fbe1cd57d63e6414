"""A solution is restored from a file bit for bit; a damaged file is an error in one sentence."""

import collections
import dataclasses
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solutions import KNOWN, assert_same_solution, one, swept

import cfgd
from cfgd.solve import solution_json
from cfgd.status import Status

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, np.pi])
HISTORY = {
    "iteration": np.array([0, 28]),
    "flags": np.array([True, False]),
    "nothing": np.zeros((2, 0)),
    "count": np.array([2**64 - 1, 0], np.uint64),
    "roots": np.array([[1 + 2j, complex(-0.0, -np.inf)]] * 2),
    "pairs": np.array([1 / 3 + 1j, 0], np.complex64),
}
with jax.enable_x64(True):
    WIDE = jnp.asarray([1 / 3, 2 / 3])
SOLUTIONS = {
    "plain": lambda: one(),
    "defaults": lambda: cfgd.Solution(np.ones(1), 1.0, 1.0, 0, 1.0, Status.running, {}),
    "special": lambda: one(x=SPECIAL, value=np.nan, gradient_norm=np.inf, rate=-np.inf),
    "float32": lambda: one(x=np.array([1 / 3, 3e38, 1e-45, np.nan], np.float32)),
    "float16": lambda: one(x=np.array([1 / 3, 6e4], np.float16)),
    "NumPy scalars": lambda: one(value=np.float32(1 / 3), iterations=np.int32(4)),
    "zero-dimensional": lambda: one(x=np.array(2 / 3)),
    "jax": lambda: one(x=jnp.asarray([1 / 3, 2.0])),
    "jax, wide": lambda: one(x=WIDE),
    "jax, narrow": lambda: one(x=jnp.asarray([1 / 3, 2.0], jnp.bfloat16)),
    "tree": lambda: one(x={"b": [SPECIAL, None, ()], "a": (jnp.ones((2, 1)), {1: 0.5})}),
    "history": lambda: one(history=HISTORY),
    "covariance": lambda: one(information=KNOWN),
    "sweep": lambda: swept(),
    "sweep of trees": lambda: swept(x={"a": np.ones((3, 2)), "b": np.arange(3.0)}, details=""),
    "setting": lambda: swept()[0],
}


@pytest.mark.parametrize("make", SOLUTIONS.values(), ids=SOLUTIONS)
def test_json_and_back(make, tmp_path):
    path, solution = tmp_path / "deep" / "solution.json", make()
    solution.to_json(str(path))
    assert_same_solution(cfgd.Solution.from_json(path), solution)

    def refuse(word):
        pytest.fail(f"{word} is not JSON")

    plain = json.loads(path.read_text(), parse_constant=refuse)
    assert plain["format"] == "cfgd solution 1"
    assert [file.name for file in path.parent.iterdir()] == ["solution.json"]


# written before reader and writer were one module
EARLIER = """\
{
"format": "cfgd solution 1",
"status": "converged",
"details": "The norm fell from 2 to 3.14e-09.",
"value": {"scalar": "float32", "shape": [], "values": [0.3333333432674408]},
"gradient_norm": 3.14159e-09,
"iterations": 28,
"evaluations": 57.0,
"resets": 2,
"seconds": 1.5,
"compile_seconds": 1.25,
"how": "Auto: L-BFGS",
"rate": 0.1,
"x": {"dict": [["a", {"tuple": [{"jax": "bfloat16", "shape": [2, 1], "values": [1.0, 1.0]}, {"dict": [[1, 0.5]]}]}], ["b", {"list": [{"numpy": "float64", "shape": [4], "values": ["nan", "-inf", -0.0, 5e-324]}, null, {"tuple": []}]}]]},
"information": {"matrix": {"numpy": "float64", "shape": [2, 2], "values": [1.0, 0.25, 0.25, 1.0]}, "root": {"numpy": "float64", "shape": [2], "values": [3.0, 0.5]}, "factor": 0.125},
"history": {"iteration": {"numpy": "int64", "shape": [2], "values": [0, 28]}, "roots": {"numpy": "complex128", "shape": [2], "values": [1.0, 2.0, 0.0, "-inf"]}, "flags": {"numpy": "bool", "shape": [2], "values": [true, false]}}
}
"""  # noqa: E501 - a file has long lines


def test_a_file_of_an_earlier_version(tmp_path):
    """The format is stable: such a file is read, and written again with the same content."""
    path = tmp_path / "a.json"
    path.write_text(EARLIER)
    solution = cfgd.Solution.from_json(path)
    x = {"a": (jnp.ones((2, 1), jnp.bfloat16), {1: 0.5}), "b": [SPECIAL[[0, 2, 3, 4]], None, ()]}
    history = {
        "iteration": np.array([0, 28]),
        "roots": np.array([1 + 2j, complex(0, -np.inf)]),
        "flags": np.array([True, False]),
    }
    wanted = one(x=x, value=np.float32(1 / 3), information=KNOWN, history=history)
    assert_same_solution(solution, wanted)
    solution.to_json(path)
    assert path.read_text() == EARLIER


def test_every_field_is_saved():
    assert set(solution_json.DECODERS) == {
        field.name for field in dataclasses.fields(cfgd.Solution)
    }


def test_the_arrays_of_a_file_are_writable(tmp_path):
    one().to_json(tmp_path / "a.json")
    cfgd.Solution.from_json(tmp_path / "a.json").x[0] = 1.0


Pair = collections.namedtuple("Pair", "a b")
MADE_OF = "must be made of dicts, lists, tuples, None, numbers and arrays to be saved"
REFUSED = {
    "named tuple": ({"x": {"w": Pair(1.0, 2.0)}}, f"`Solution(x['w']=...)` {MADE_OF}, got a Pair."),
    "ordered": (
        {"x": [collections.OrderedDict()]},
        f"`Solution(x[0]=...)` {MADE_OF}, got a OrderedDict.",
    ),
    "key": (
        {"x": {(1, 2): np.ones(2)}},
        "`Solution(x=...)` must have strings or integers as keys, got (1, 2).",
    ),
    "dtype": (
        {"x": np.array(["a"])},
        "`Solution(x=...)` must be of dtype bool, int8, int16, int32, int64, uint8, uint16, uint32,"
        " uint64, float16, bfloat16, float32, float64, complex64, complex128 to be saved, got <U1.",
    ),
    "rows": (
        {"history": {"iteration": np.arange(3), "value": np.ones(2)}},
        "`Solution(history['value']=...)` must have leading axes (3,), got shape (2,).",
    ),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_a_field_that_cannot_be_saved(changes, message, tmp_path):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        one(**changes).to_json(tmp_path / "a.json")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    one().to_json(path)

    def fail(*names):
        raise OSError("the disk is full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        one(value=0.0).to_json(path)
    assert list(tmp_path.iterdir()) == [path]
    assert cfgd.Solution.from_json(path).value == -1.25


MISSING = object()
X = {"numpy": "float64", "shape": [2], "values": [0.1, 0.2]}
NUMBER = 'must be a number, "nan", "inf" or "-inf"'
NAMES = ", ".join(Status.__members__)
DTYPES = "must have a dtype of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64,"
DAMAGES = {
    "format": ("format", "cfgd solution 9", "`format` must be 'cfgd solution 1', got 'cfgd so"),
    "no format": ("format", MISSING, "`format` must be 'cfgd solution 1', got None"),
    "missing": ("value", MISSING, "`value` must be present, got nothing"),
    "unknown": ("valve", 1.0, "`valve` must be one of status, details,"),
    "status": ("status", "done", f"`status` must be one of {NAMES}, got 'done'"),
    "status, kind": ("status", 3, "`status` must be a string, got 3"),
    "status, nested": ("status", [["converged"]], "`status[0]` must be a string, got a list"),
    "value": ("value", "much", f"`value` {NUMBER}, got 'much'"),
    "value, none": ("value", None, "`value` must be a number or an array, got None"),
    "value, bool": ("value", True, "`value` must be a number or an array, got True"),
    "value, list": ("value", [1.0], "`value` must be a number, an array, or a dict, list or tuple"),
    "value, shape": ("value", X, "`value` must have shape (), got (2,)"),
    "iterations": ("iterations", 2.5, "`iterations` must be integers, got 2.5"),
    "iterations, negative": ("iterations", -1, "`iterations` must be at least 0, got -1"),
    "evaluations, negative": ("evaluations", -0.5, "`evaluations` must be at least 0, got -0.5"),
    "value, too large": ("value", 10**400, "`value` must be real numbers, got 1000"),
    "value, complex": (
        "value",
        {"scalar": "complex128", "shape": [], "values": [1.0, 2.0]},
        "`value` must be real numbers, got a dict",
    ),
    "half a character": ("how", "\ud800", "`how` must be a string of Unicode"),
    "history, a number": (
        "history",
        {"value": 1.0},
        "`history['value']` must be an array, got 1.0",
    ),
    "history, a matrix": (
        "history",
        {"iteration": X | {"shape": [1, 2]}},
        "`history['iteration']` must be a vector of numbers, got shape (1, 2)",
    ),
    "seconds": ("seconds", None, f"`seconds` {NUMBER}, got None"),
    "rate": ("rate", "fast", f"`rate` {NUMBER}, got 'fast'"),
    "how": ("how", None, "`how` must be a string, got None"),
    "details": ("details", ["a", "b"], "`details` must be one string, got 2 strings"),
    "details, kind": ("details", ["a", 1], "`details[1]` must be a string, got 1"),
    "x": ("x", {"array": [1.0]}, "`x` must be a number, an array, or a dict, list or tuple"),
    "x, kind": ("x", {"numpy": [1.0]}, "`x` must be a number, an array, or a dict, list or tuple"),
    "dtype": ("x", X | {"numpy": "object"}, f"`x` {DTYPES}"),
    "shape": ("x", X | {"shape": [-2]}, "`x` must have a shape of integers, got [-2]"),
    "a shape of no array": (
        "x",
        X | {"shape": [0, 10**30], "values": []},
        "`x` must have a shape that NumPy allows, got [0, 1000",
    ),
    "count": ("x", X | {"shape": [3]}, "`x` must have 3 values for its shape [3], got 2"),
    "values": ("x", X | {"values": 1.0}, "`x` must have a list of values, got 1.0"),
    "entry": ("x", X | {"values": [0.1, None]}, f"`x` {NUMBER}, got None"),
    "too large": ("x", X | {"values": [0.1, 10**400]}, f"`x` {NUMBER}, got 1000"),
    "rounded": ("x", X | {"numpy": "float32"}, "`x` must have values of dtype float32, got 0.1"),
    "not whole": ("x", X | {"numpy": "int8"}, "`x` must have values of dtype int8, got 0.1"),
    "beyond": (
        "x",
        X | {"numpy": "int8", "values": [1, 300]},
        "`x` must have values of dtype int8, got 300",
    ),
    "scalar": (
        "value",
        {"scalar": "float64", "shape": [1], "values": [1.0]},
        "`value` must have the shape [] of a scalar, got [1]",
    ),
    "deep": ("x", {"dict": [["w", {"list": [X, "a"]}]]}, f"`x['w'][1]` {NUMBER}, got 'a'"),
    "pairs": ("x", {"dict": ["w"]}, "`x` must be pairs of a key and its value, got 'w'"),
    "keys": ("x", {"dict": [["w", 1.0]] * 2}, "`x` must have every key once, got 'w' twice"),
    "history": ("history", [], "`history` must be an object of arrays, got a list"),
    "rows": (
        "history",
        {"iteration": X, "value": X | {"shape": [1, 2]}},
        "`history['value']` must have leading axes (2,), got shape (1, 2)",
    ),
}


@pytest.mark.parametrize(("field", "entry", "message"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_field_is_named(field, entry, message, tmp_path):
    path = tmp_path / "a.json"
    one().to_json(path)
    plain = json.loads(path.read_text())
    plain[field] = entry
    path.write_text(json.dumps({k: v for k, v in plain.items() if v is not MISSING}))
    wanted = f"The file {path} is damaged: {message}"
    with pytest.raises(ValueError, match=f"^{re.escape(wanted)}") as raised:
        cfgd.Solution.from_json(path)
    assert str(raised.value).endswith(".")
    assert "\n" not in str(raised.value)


def test_a_wrong_number_of_settings(tmp_path):
    path = tmp_path / "a.json"
    swept().to_json(path)
    whole = path.read_text()
    for old, new, message in [
        ('["converged", "stalled", "converged"]', '["converged"]', "`value` must have shape (1,)"),
        (
            '["From 1 to 2.", "", "From 3 to 4."]',
            '["a"]',
            "`details` must be 3 strings, one for each setting",
        ),
        ('"x": {"numpy": "float64", "shape": [3, 2]', "", "`x` must have leading axes (3,), got"),
    ]:
        assert old in whole
        path.write_text(whole.replace(old, new or old.replace("[3, 2]", "[6]")))
        with pytest.raises(ValueError, match=re.escape(f"The file {path} is damaged: {message}")):
            cfgd.Solution.from_json(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "must hold a solution in JSON, got: Expecting value"),
        (b'{"format": "cfgd sol', "must hold a solution in JSON, got: Unterminated string"),
        (b"\xff\xfe\xfa", "must hold a solution in JSON, got: "),
        (b'{"value": NaN}', "must hold a solution in JSON, got: the word NaN, which JSON does not"),
        (b'{"value": 1, "value": 2}', "is damaged: `value` must occur once, got it twice."),
        (b"[1]", "is damaged: `format` must be 'cfgd solution 1', got a list."),
        (b"[" * 100_000, "must hold a solution in JSON, got: "),
    ],
    ids=["empty", "cut", "bytes", "NaN", "twice", "list", "deep"],
)
def test_a_file_that_is_not_a_solution(text, message, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=f"^{re.escape(f'The file {path} {message}')}"):
        cfgd.Solution.from_json(path)


def test_a_number_that_overflows(tmp_path):
    path = tmp_path / "a.json"
    one().to_json(path)
    path.write_text(path.read_text().replace("-1.25,\n", "1e999,\n"))
    with pytest.raises(ValueError, match="`value` must be a number"):
        cfgd.Solution.from_json(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        cfgd.Solution.from_json(tmp_path / "nowhere.json")
