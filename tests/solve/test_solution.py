"""The solution explains itself, and comes back from a file, a pickle and another process."""

import builtins
import collections
import copy
import dataclasses
import json
import multiprocessing
import pickle
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

import cfgd
from cfgd.solve import saved
from cfgd.solve.uncertainty import Information
from cfgd.status import Status

STATUSES = [Status.converged, Status.stalled, Status.converged]
PLAIN = {
    "x": np.array([0.1, -1e-300]),
    "value": -1.25,
    "gradient_norm": 3.14159e-9,
    "iterations": 28,
    "evaluations": 57.0,
    "status": Status.converged,
    "history": {"iteration": np.array([0, 28]), "value": np.array([3.0, -1.25])},
    "resets": 2,
    "seconds": 1.5,
    "how": "Auto: the span",
    "rate": 0.1,
    "compile_seconds": 1.25,
    "details": "The norm fell from 2 to 3.14e-09.",
}
SWEPT = {
    **PLAIN,
    "x": np.arange(6.0).reshape(3, 2) / 7,
    "value": np.array([np.nan, -2.0, 1.0]),
    "gradient_norm": np.array([np.inf, 0.125, 1.0]),
    "iterations": np.array([1, 30, 2], np.int32),
    "evaluations": np.array([2.0, 60.0, 4.0]),
    "resets": np.array([0, 1, 0], np.int32),
    "status": STATUSES,
    "history": {"iteration": np.array([0, 20]), "value": np.arange(6.0).reshape(3, 2)},
    "rate": None,
    "details": ["From 1 to 2.", "", "From 3 to 4."],
}


KNOWN = Information(np.array([[1.0, 0.25], [0.25, 1.0]]), np.array([3.0, 0.5]), 0.125)


def one(**changes):
    return cfgd.Solution(**copy.deepcopy(PLAIN | changes))


def swept(**changes):
    return cfgd.Solution(**copy.deepcopy(SWEPT | changes))


def assert_same(got, wanted):
    """Bit for bit, kinds and dtypes included."""
    assert type(got) is type(wanted)
    if isinstance(wanted, dict):
        assert list(got) == list(wanted)
        got, wanted = list(got.values()), list(wanted.values())
    if isinstance(wanted, list | tuple):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            assert_same(a, b)
    elif hasattr(wanted, "dtype"):
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()
    else:
        assert repr(got) == repr(wanted)


def assert_same_solution(got, wanted):
    for field in dataclasses.fields(cfgd.Solution):
        assert_same(getattr(got, field.name), getattr(wanted, field.name))


# ---------------------------------------------------------------- what it says


def test_three_lines_of_one():
    assert repr(one()).splitlines() == [
        "Solution: converged (Auto: the span)",
        "  value -1.25, gradient norm 3.14e-09",
        "  28 iterations, 57 gradients, 0.25 s and 1.25 s of compilation",
    ]
    assert str(one(how="")).splitlines()[0] == "Solution: converged"


def test_three_lines_of_a_sweep():
    assert repr(swept()).splitlines() == [
        "Solution of a sweep of 3 settings: 2 converged, 1 stalled (Auto: the span)",
        "  least value -2 in setting 1, gradient norm 0.125",
        "  at most 30 iterations, 66 gradients in all, 0.25 s and 1.25 s of compilation",
    ]
    assert "no value is a number" in repr(swept(value=np.full(3, np.nan)))
    assert repr(swept()[1]).splitlines()[1] == "  value -2, gradient norm 0.125"


@pytest.mark.parametrize("status", Status)
def test_true_is_success(status):
    solution = one(status=status)
    assert bool(solution) is solution.success is (status is Status.converged)


def test_a_sweep_is_neither_true_nor_false():
    with pytest.raises(TypeError, match=r"^A sweep is neither .* use `\.success`, an array, with"):
        bool(swept())
    np.testing.assert_array_equal(swept().success, [True, False, True])


def test_the_message_has_the_numbers():
    assert one().message == f"{Status.converged.value} The norm fell from 2 to 3.14e-09."
    assert one(details="").message == Status.converged.value
    first, second, _ = swept().message
    assert first == f"{Status.converged.value} From 1 to 2."
    assert second == Status.stalled.value
    assert swept(details="").message == [status.value for status in STATUSES]
    assert swept()[2].details == "From 3 to 4."


# ---------------------------------------------------------------- its arrays


def test_numpy_is_writable_and_jax_stays():
    lent = np.asarray(jnp.ones(2))
    assert not lent.flags.writeable
    x = {"a": lent, "b": (jnp.ones(2), None), "c": np.zeros(3)}
    solution = one(x=x, history={"iteration": np.arange(2), "value": lent})
    solution.x["a"][0] = solution.history["value"][0] = 7.0
    assert lent[0] == 1.0
    assert isinstance(solution.x["b"][0], jax.Array)
    own = np.zeros(2)
    assert cfgd.Solution(**PLAIN | {"x": own}).x is own


def test_a_run_gives_writable_arrays():
    f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    solution = cfgd.minimize(f, [0.0, 0.0])
    assert solution
    solution.x[:] = 0.0
    solution.history["value"][0] = 1.0
    lower = cfgd.sweep(f, [[0.0, 0.0], [5.0, 5.0]], cfgd.Auto())
    for array in (lower.x, lower.value, lower.iterations, *lower.history.values()):
        array[0] = 1


def test_a_setting_has_the_kinds_of_a_run_of_its_own():
    setting = swept()[1]
    for name in ("value", "gradient_norm", "iterations", "evaluations", "resets"):
        assert type(getattr(setting, name)) is type(getattr(one(), name))
    assert type(swept(x=np.arange(3.0))[1].x) is np.ndarray
    assert swept(resets=0)[1].resets == 0


def test_to_write_into_a_setting_changes_this_one():
    sweep = swept()
    setting = sweep[1]
    setting.x[0] = 100.0
    assert sweep.x[1, 0] == SWEPT["x"][1, 0]


# ---------------------------------------------------------------- JSON

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
    "as it starts": lambda: cfgd.Solution(np.ones(1), 1.0, 1.0, 0, 1.0, Status.running, {}),
    "special": lambda: one(x=SPECIAL, value=np.nan, gradient_norm=np.inf, rate=-np.inf),
    "float32": lambda: one(x=np.array([1 / 3, 3e38, 1e-45, np.nan], np.float32)),
    "float16": lambda: one(x=np.array([1 / 3, 6e4], np.float16)),
    "numbers of NumPy's": lambda: one(value=np.float32(1 / 3), iterations=np.int32(4)),
    "a number": lambda: one(x=np.array(2 / 3)),
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
        pytest.fail(f"{word} is no JSON")

    plain = json.loads(path.read_text(), parse_constant=refuse)
    assert plain["format"] == "cfgd solution 1"
    assert [file.name for file in path.parent.iterdir()] == ["solution.json"]


def test_every_field_is_saved():
    assert set(saved.FIELDS) == {field.name for field in dataclasses.fields(cfgd.Solution)}


def test_what_is_read_is_writable(tmp_path):
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
def test_what_cannot_be_saved(changes, message, tmp_path):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        one(**changes).to_json(tmp_path / "a.json")
    assert not list(tmp_path.iterdir())


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    one().to_json(path)

    def fail(*names):
        raise OSError("the disk is full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        one(value=0.0).to_json(path)
    assert list(tmp_path.iterdir()) == [path]
    assert cfgd.Solution.from_json(path).value == -1.25


GONE = object()
X = {"numpy": "float64", "shape": [2], "values": [0.1, 0.2]}
NUMBER = 'must be a number, "nan", "inf" or "-inf"'
NAMES = ", ".join(Status.__members__)
DTYPES = "must have a dtype of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64,"
DAMAGES = {
    "format": ("format", "cfgd solution 9", "`format` must be 'cfgd solution 1', got 'cfgd so"),
    "no format": ("format", GONE, "`format` must be 'cfgd solution 1', got None"),
    "missing": ("value", GONE, "`value` must be there, got nothing"),
    "unknown": ("valve", 1.0, "`valve` must be one of status, details,"),
    "status": ("status", "done", f"`status` must be one of {NAMES}, got 'done'"),
    "status, kind": ("status", 3, "`status` must be a text, got 3"),
    "status, nested": ("status", [["converged"]], "`status[0]` must be a text, got a list"),
    "value": ("value", "much", f"`value` {NUMBER}, got 'much'"),
    "value, none": ("value", None, "`value` must be a number or an array, got None"),
    "value, bool": ("value", True, "`value` must be a number or an array, got True"),
    "value, list": ("value", [1.0], "`value` must be a number, an array, or a dict, list or tuple"),
    "value, shape": ("value", X, "`value` must have shape (), got (2,)"),
    "iterations": ("iterations", 2.5, "`iterations` must be integers, got 2.5"),
    "seconds": ("seconds", None, f"`seconds` {NUMBER}, got None"),
    "rate": ("rate", "fast", f"`rate` {NUMBER}, got 'fast'"),
    "how": ("how", None, "`how` must be a text, got None"),
    "details": ("details", ["a", "b"], "`details` must be one sentence, got 2 of them"),
    "details, kind": ("details", ["a", 1], "`details[1]` must be a text, got 1"),
    "x": ("x", {"array": [1.0]}, "`x` must be a number, an array, or a dict, list or tuple"),
    "x, kind": ("x", {"numpy": [1.0]}, "`x` must be a number, an array, or a dict, list or tuple"),
    "dtype": ("x", X | {"numpy": "object"}, f"`x` {DTYPES}"),
    "shape": ("x", X | {"shape": [-2]}, "`x` must have a shape of integers, got [-2]"),
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
    "pairs": ("x", {"dict": ["w"]}, "`x` must be pairs of a key and what it stands for, got 'w'"),
    "keys": ("x", {"dict": [["w", 1.0]] * 2}, "`x` must have every key once, got 'w' twice"),
    "history": ("history", [], "`history` must be an object of arrays, got a list"),
    "rows": (
        "history",
        {"iteration": X, "value": X | {"shape": [1, 2]}},
        "`history['value']` must have leading axes (2,), got shape (1, 2)",
    ),
}


@pytest.mark.parametrize(("field", "entry", "message"), DAMAGES.values(), ids=DAMAGES)
def test_a_damage_is_a_sentence(field, entry, message, tmp_path):
    path = tmp_path / "a.json"
    one().to_json(path)
    plain = json.loads(path.read_text())
    plain[field] = entry
    path.write_text(json.dumps({k: v for k, v in plain.items() if v is not GONE}))
    wanted = f"The file {path} is damaged: {message}"
    with pytest.raises(ValueError, match=f"^{re.escape(wanted)}") as raised:
        cfgd.Solution.from_json(path)
    assert str(raised.value).endswith(".")
    assert "\n" not in str(raised.value)


def test_settings_that_are_not_as_many(tmp_path):
    path = tmp_path / "a.json"
    swept().to_json(path)
    whole = path.read_text()
    for old, new, message in [
        ('["converged", "stalled", "converged"]', '["converged"]', "`value` must have shape (1,)"),
        ('["From 1 to 2.", "", "From 3 to 4."]', '["a"]', "`details` must be 3 sentences, as many"),
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
        (b'{"value": 1, "value": 2}', "is damaged: `value` must stand once, got it twice."),
        (b"[1]", "is damaged: `format` must be 'cfgd solution 1', got a list."),
        (b"[" * 100_000, "must hold a solution in JSON, got: "),
    ],
    ids=["empty", "cut", "bytes", "NaN", "twice", "list", "deep"],
)
def test_what_is_no_solution(text, message, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=f"^{re.escape(f'The file {path} {message}')}"):
        cfgd.Solution.from_json(path)


def test_a_number_that_JSON_allows_and_no_float_is(tmp_path):
    path = tmp_path / "a.json"
    one().to_json(path)
    path.write_text(path.read_text().replace("-1.25,\n", "1e999,\n"))
    with pytest.raises(ValueError, match="`value` must be a number"):
        cfgd.Solution.from_json(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        cfgd.Solution.from_json(tmp_path / "nowhere.json")


# ---------------------------------------------------------------- pickle


def fail_in_another_process(solution):
    raise cfgd.ConvergenceError(solution)


def test_an_error_can_be_pickled():
    error = cfgd.ConvergenceError(one(status=Status.stalled))
    error.add_note("in the third fold")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cfgd.ConvergenceError
    assert str(again) == str(error) == error.solution.message
    assert again.__notes__ == ["in the third fold"]
    assert_same_solution(again.solution, error.solution)
    assert again.solution.status is Status.stalled
    assert_same_solution(copy.deepcopy(error).solution, error.solution)


def test_an_error_comes_out_of_a_pool():
    """It was an error of the pool's own thread, and whoever waited for the result waited on."""
    solution = one(status=Status.max_iterations)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        result = pool.apply_async(fail_in_another_process, (solution,))
        with pytest.raises(cfgd.ConvergenceError, match=r"^Stopped at `max_iterations`") as raised:
            result.get(timeout=120)
    assert_same_solution(raised.value.solution, solution)


# ---------------------------------------------------------------- the plot

K = np.arange(5)
NORMS = 10.0**-K


def axes():
    return Figure().subplots()


def ran(values, **entries):
    return one(history={"iteration": K, "value": np.asarray(values), **entries}, iterations=4)


def test_a_plot_has_value_and_norm():
    ax = axes()
    assert ran(2.0 + NORMS, gradient_norm=NORMS).plot(ax) is ax
    left, right = ax.figure.axes
    assert (left.get_xlabel(), left.get_ylabel()) == ("iteration", "value")
    assert right.get_ylabel() == "gradient norm (dashed)"
    np.testing.assert_array_equal(left.lines[0].get_ydata(), 2.0 + NORMS)
    np.testing.assert_array_equal(right.lines[0].get_ydata(), NORMS)
    np.testing.assert_array_equal(left.lines[0].get_xdata(), K)
    assert (left.get_yscale(), right.get_yscale()) == ("linear", "log")
    ax.figure.canvas.draw()


def test_a_plot_without_norms_has_values_only():
    ax = ran(NORMS).plot(ax=axes())
    assert ax.figure.axes == [ax]
    assert ax.get_yscale() == "log"


def test_values_that_are_not_positive_are_drawn_above_the_least():
    ax = ran(NORMS - 3.0).plot(axes())
    assert ax.get_ylabel() == "value above the least, -2.9999"
    assert ax.get_yscale() == "log"
    np.testing.assert_allclose(ax.lines[0].get_ydata(), NORMS - NORMS[-1])


@pytest.mark.parametrize("values", [np.zeros(5), np.full(5, np.nan), [1, np.inf, 1, np.nan, -1]])
def test_values_without_decades_are_drawn_too(values):
    ax = ran(values, gradient_norm=np.zeros(5)).plot(axes())
    assert [one.get_yscale() for one in ax.figure.axes] == ["linear", "linear"]
    ax.figure.canvas.draw()


def test_one_point_is_seen():
    history = {"iteration": np.zeros(1, int), "value": np.ones(1)}
    ax = one(history=history, iterations=0).plot(axes())
    assert ax.lines[0].get_marker() == "o"


def test_two_runs_on_the_same_axes():
    ax = axes()
    for factor in (1.0, 2.0):
        ran(factor * NORMS, gradient_norm=NORMS).plot(ax)
    left, right = ax.figure.axes
    assert len(left.lines) == len(right.lines) == 2
    assert [a.get_color() for a in left.lines] == [b.get_color() for b in right.lines]
    assert len({line.get_color() for line in left.lines}) == 2


def test_a_plot_of_a_sweep_has_a_line_for_each_setting():
    """Up to its own end, and as many names as can be read."""
    values = np.ones((25, 1)) * NORMS
    ends = np.minimum(np.arange(25), 4)
    sweep = swept(
        status=[Status.converged] * 25,
        iterations=ends,
        history={"iteration": K, "value": values, "gradient_norm": values},
    )
    ax = sweep.plot(axes())
    assert ax.figure.axes == [ax]
    assert [len(line.get_xdata()) for line in ax.lines] == [end + 1 for end in ends]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(names) == 10
    assert (names[0], names[-1]) == ("setting 0", "setting 24")


def test_a_history_that_cannot_be_drawn():
    message = "`Solution(history=...)` must hold `iteration` and `value` to be drawn, got the names"
    with pytest.raises(ValueError, match=f"^{re.escape(message)} \\['a'\\]\\.$"):
        one(history={"a": K}).plot()


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError("No module", name="matplotlib")
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    message = "`Solution.plot` needs matplotlib: pip install 'cfgd[plot]'."
    with pytest.raises(ModuleNotFoundError, match=f"^{re.escape(message)}$"):
        one().plot()


def test_a_plot_makes_its_own_figure(tmp_path: Path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_fignums()
    ax = one().plot()
    try:
        assert len(pyplot.get_fignums()) == len(before) + 1
        ax.figure.savefig(tmp_path / "plot.png")
    finally:
        pyplot.close(ax.figure)
