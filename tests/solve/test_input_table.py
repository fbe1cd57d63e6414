"""All that users pass: what it becomes, or the whole sentence that refuses it."""

import re

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis.extra import numpy as arrays_of

import cfgd
from cfgd import AdaptiveOrder, AdaptiveTerminal, GradientDescent, LeastSquares, LinearModel
from cfgd.structure import as_tree
from problems import quick

# what users pass who have no type checker
pytestmark = pytest.mark.usefixtures("unchecked")

# numbers that every type here holds exactly
X = np.array([[2.0, 0.5, 0.0], [0.0, 1.0, 0.25], [1.0, 0.0, -1.0], [0.5, 0.5, 0.5]])
Y = np.array([1.0, 0.0, 1.0, 1.0])
X0 = np.array([1.0, -2.0, 0.5])
A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]])
B = np.array([1.0, -2.0, 0.5])
END = -np.linalg.solve(A, B)
GD = GradientDescent()
F32, F64, BF16 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(ml_dtypes.bfloat16)


def bowl(x):
    return x @ A @ x / 2 + B @ x


# ------------------------------------------------------------------------------- accepted: data

DATA = {
    "float16": (X.astype(np.float16), np.ndarray, F32),
    "bfloat16": (X.astype(BF16), np.ndarray, F32),
    "float16 of JAX": (jnp.asarray(X, jnp.float16), jax.Array, F32),
    "bfloat16 of JAX": (jnp.asarray(X, jnp.bfloat16), jax.Array, F32),
    "longdouble": (X.astype(np.longdouble), np.ndarray, F64),
    "big-endian": (X.astype(">f8"), np.ndarray, F64),
    "big-endian float32": (X.astype(">f4"), np.ndarray, F32),
    "big-endian float16": (X.astype(">f2"), np.ndarray, F32),
    "numbers and labels of pandas": (
        pd.DataFrame(X).assign(**{"labels": [True, False, True, True]}),
        np.ndarray,
        F64,
    ),
    "nullable numbers and numbers": (
        pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": [0.5, 2.0]}),
        np.ndarray,
        F64,
    ),
    "nullable float32 and labels": (
        pd.DataFrame(
            {"a": pd.array([0.5, 2], dtype="Float32"), "b": pd.array([True, False], "boolean")}
        ),
        np.ndarray,
        F32,
    ),
}


@pytest.mark.parametrize(("given", "kind", "dtype"), DATA.values(), ids=DATA)
def test_data_becomes(given, kind, dtype):
    f = LeastSquares(given, np.ones(len(given)))
    assert isinstance(f.X.X, kind)
    assert f.X.X.dtype == dtype
    np.testing.assert_array_equal(f.X.X, np.asarray(given).astype(float))


def test_sparse_long_doubles_become_float64():
    # scipy itself refuses halves and foreign byte orders
    f = LeastSquares(scipy.sparse.csr_array(X.astype(np.longdouble)), Y)
    assert f.X.data.dtype == F64
    np.testing.assert_array_equal(f.X.data, X[X != 0])


TARGETS = {
    "float16": Y.astype(np.float16),
    "big-endian": Y.astype(">f4"),
}


@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
def test_targets_become_a_vector_in_the_precision_of_the_data(y):
    f = LinearModel(X.astype(np.float32), y)
    assert f.y.dtype == F32
    np.testing.assert_array_equal(f.y, 2 * Y - 1)


@pytest.mark.parametrize("y", [Y[:, None], pd.DataFrame({"y": Y})], ids=["column", "DataFrame"])
def test_a_column_of_targets_is_taken_with_a_sentence(y):
    message = "`LeastSquares(y=...)` has shape (4, 1) and is taken as (4,)."
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as seen:
        f = LeastSquares(X, y)
    assert seen[0].filename == __file__
    np.testing.assert_array_equal(f.y, Y)


def test_half_precision_is_no_reason_to_refuse_a_matrix():
    v = np.array([0.1, 0.7, 0.3])
    rank_one = np.outer(v, v).astype(np.float16)  # whose rounding makes a minor negative
    assert cfgd.Quadratic(rank_one, np.zeros(3)).A.dtype == F32


# ------------------------------------------------------------------------------ accepted: starts

# x0, the type of the data, and what x is
STARTS = {
    "a list of NumPy numbers": (list(X0), F64, np.ndarray, F64),
    "a list with NumPy numbers": ([1.0, X0.mean(), 2], F64, np.ndarray, F64),
    "float16": (X0.astype(np.float16), np.float16, np.ndarray, F32),
    "bfloat16": (X0.astype(BF16), BF16, np.ndarray, F32),
    "bfloat16 of JAX": (jnp.asarray(X0, jnp.bfloat16), F32, jax.Array, F32),
    "longdouble": (X0.astype(np.longdouble), np.longdouble, np.ndarray, F64),
    "big-endian": (X0.astype(">f8"), ">f8", np.ndarray, F64),
    "float32 of JAX with float64 data": (jnp.asarray(X0, F32), F64, np.ndarray, F64),
}


MADE = ["a list of NumPy numbers", "bfloat16", "bfloat16 of JAX", "longdouble", "big-endian"]


@pytest.mark.parametrize(("x0", "data", "kind", "dtype"), quick(STARTS, MADE))
def test_x_becomes(x0, data, kind, dtype):
    f = cfgd.Quadratic(A.astype(data), B.astype(data))
    x = cfgd.minimize(f, x0, tolerance=1e-5, callback=no_answer).x
    assert isinstance(x, kind)
    assert x.dtype == dtype
    np.testing.assert_allclose(x, END, rtol=1e-3)


def no_answer(solution):
    """A callback keeps one length of chunks, and so one program."""


def test_x_is_as_precise_as_the_point_that_was_judged():
    f, x0 = cfgd.Quadratic(A, B), jnp.asarray(X0, F32)
    end = cfgd.minimize(f, x0, GD, tolerance=1e-12, callback=no_answer)
    assert np.linalg.norm(f.gradient(end.x)) <= 1e-10
    with jax.enable_x64(True):
        end = cfgd.minimize(f, x0, GD, tolerance=1e-12, callback=no_answer)
        assert isinstance(end.x, jax.Array)
        assert end.x.dtype == F64


def test_a_custom_node_of_numbers_is_a_pytree():
    node = jax.tree_util.Partial(len, 0.5, 2)  # or any other that is no list
    assert as_tree("f", "x", node).args == (0.5, 2.0)


def test_a_tolerance_beyond_all_numbers_ends_at_once():
    for x0 in (X0, X0.astype(F32)):
        end = cfgd.minimize(bowl, x0, GD, tolerance=1e200, callback=no_answer)
        assert end.status is cfgd.Status.converged
        assert end.iterations == 0


# -------------------------------------------------------------------------------------- refused


def run(f=bowl, x0=X0, method=GD, **options):
    """A call of minimize, to be made later."""
    return lambda: cfgd.minimize(f, x0, method, **options)


def masked(values, *places):
    values = np.ma.array(values)
    for place in places:
        values[place] = np.ma.masked
    return values


MASKED = {
    "a mask on X": (
        lambda: LeastSquares(masked(X, (0, 1), (2, 2)), Y),
        "`LeastSquares(X=...)` must have no masked entries, got 2, the first at index (0, 1).",
    ),
    "a mask on y": (
        lambda: LeastSquares(X, masked(Y, 3)),
        "`LeastSquares(y=...)` must have no masked entries, got one at index 3.",
    ),
    "a mask on a row": (
        lambda: LeastSquares([masked(X[0]), masked(X[1], 2)], Y[:2]),
        "`LeastSquares(X[1]=...)` must have no masked entries, got one at index 2.",
    ),
    "a mask on weights": (
        lambda: LinearModel(X, Y, sample_weight=masked(Y, 0)),
        "`LinearModel(sample_weight=...)` must have no masked entries, got one at index 0.",
    ),
    "a mask on x0": (
        run(x0=masked(X0, 1)),
        "`minimize(x0=...)` must have no masked entries, got one at index 1.",
    ),
    "a mask on a part of x0": (
        run(x0={"a": masked(X0, 1)}),
        "`minimize(x0['a']=...)` must have no masked entries, got one at index 1.",
    ),
    "a masked number": (
        run(x0=[1.0, np.ma.masked]),
        "`minimize(x0[1]=...)` must have no masked entries, got one.",
    ),
    "a masked gamma": (
        lambda: AdaptiveTerminal(gamma=masked([0.1, 0.2], 0)),
        "`AdaptiveTerminal(gamma=...)` must have no masked entries, got one at index 0.",
    ),
}
OTHER_NUMBERS = {
    "a key": (
        run(x0=jax.random.key(0)),
        "`minimize(x0=...)` must be an array of numbers, got an array of dtype key<fry>.",
    ),
    "a key for targets": (
        lambda: LeastSquares(X, jax.random.key(0)),
        "`LeastSquares(y=...)` must be a vector of numbers, got an array of dtype key<fry>.",
    ),
    "ragged targets": (
        lambda: LeastSquares(X, [[1.0], [1.0, 2.0]]),
        "`LeastSquares(y=...)` must be a vector of numbers, got rows of different lengths.",
    ),
    "a missing number of pandas": (
        lambda: LeastSquares(pd.DataFrame({"a": [0.5, 2.0], "b": pd.array([1, None], "Int64")}), Y),
        "`LeastSquares(X=...)` must be finite, got nan at index (1, 1).",
    ),
    "missing labels of pandas": (
        lambda: LinearModel(X, pd.Series([True, None, True, True], dtype="boolean")),
        "`LinearModel(y=...)` must be finite, got nan at index 1.",
    ),
    "max_iterations": (
        run(max_iterations=2**31),
        "`minimize(max_iterations=...)` must be at most 2147483647, got 2147483648.",
    ),
    "every": (
        run(every=2**31),
        "`minimize(every=...)` must be at most 2147483647, got 2147483648.",
    ),
    "lag": (
        lambda: AdaptiveTerminal(gamma=0.1, lag=2**31),
        "`AdaptiveTerminal(lag=...)` must be at most 2147483647, got 2147483648.",
    ),
    "nodes": (
        lambda: cfgd.gauss_jacobi(0.5, 2**40),
        "`gauss_jacobi(nodes=...)` must be at most 2147483647, got 1099511627776.",
    ),
    "iterations of a stage": (
        lambda: cfgd.Stage(2**31, gamma=0.1),
        "`Stage(iterations=...)` must be at most 2147483647, got 2147483648.",
    ),
    "iterations of stages": (
        lambda: AdaptiveOrder([cfgd.Stage(2**30, gamma=0.1), cfgd.Stage(2**30, gamma=0.0)], 0.0),
        "`AdaptiveOrder(stages=...)` must have at most 2147483647 iterations together, "
        "got 2147483648.",
    ),
    "time_limit a list": (
        run(time_limit=[1.0, 2.0]),
        "`minimize(time_limit=...)` must be one number, got shape (2,).",
    ),
}
CLASSES = {
    "an objective": (
        run(f=cfgd.Quadratic),
        "`minimize(objective=...)` must be an objective or a function, "
        "got <class 'cfgd.objective.quadratic.Quadratic'>.",
    ),
    "an objective in Local": (
        lambda: cfgd.Local(cfgd.Quadratic),
        "`Local(objective=...)` must be an objective or a function, "
        "got <class 'cfgd.objective.quadratic.Quadratic'>.",
    ),
    "a function": (
        lambda: cfgd.Smooth(dict),
        "`Smooth(fn=...)` must be a function, got <class 'dict'>.",
    ),
    "a method of a sweep": (
        lambda: cfgd.sweep(bowl, X0, [GradientDescent]),
        "`sweep(methods=...)` must be settings of one and the same method, "
        "got <class 'cfgd.method.presets.GradientDescent'>.",
    ),
    "a callback": (
        run(callback=dict),
        "`minimize(callback=...)` must be a function, got <class 'dict'>.",
    ),
}
RETURNS = {
    "None from a record": (
        run(record={"a": lambda x: None}),
        "`minimize(record['a']=...)` must return numbers, got a NoneType.",
    ),
    "a dict from a record": (
        run(record={"a": lambda x: {"x": x}}),
        "`minimize(record['a']=...)` must return numbers, got a dict.",
    ),
    "a word from a record": (
        run(record={"a": lambda x: "x"}),
        "`minimize(record['a']=...)` must return numbers, got a str.",
    ),
    "a key from a record": (
        run(record={"a": lambda x: jax.random.key(0)}),
        "`minimize(record['a']=...)` must return numbers, got dtype key<fry>.",
    ),
    "an array from a callback": (
        run(callback=lambda solution: solution.x),
        "`minimize(callback=...)` must return something true or false, got shape (3,).",
    ),
    "a missing answer from a callback": (
        run(callback=lambda solution: pd.NA),
        "`minimize(callback=...)` must return something true or false, got a NAType.",
    ),
    "a vector from a loss": (
        lambda: LinearModel(X, Y, lambda p, y: jnp.stack([p, y])),
        "`LinearModel(loss=...)` must return a scalar, got shape (2,).",
    ),
    "None from an activation": (
        lambda: cfgd.ShallowNetwork(Y, Y, 2, lambda u: None),
        "`ShallowNetwork(activation=...)` must return a scalar, got a NoneType.",
    ),
}
REFUSED = {
    f"{part}: {name}": row
    for part, rows in {
        "masked": MASKED,
        "number": OTHER_NUMBERS,
        "class": CLASSES,
        "returned": RETURNS,
    }.items()
    for name, row in rows.items()
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as raised:
        make()
    assert type(raised.value) is ValueError
    assert str(raised.value) == message  # `match` sees the note that names the solution, too


# ------------------------------------------------------------------------- values yet unknown


def in_numpy(x):
    return float(np.linalg.norm(x))


def with_if(x):
    return x[0] if x[0] > 0 else -x[0]


def with_float(x):
    return float(x[0]) ** 2


def with_places(x):
    return jnp.sum(x[x > 0])


class Own(cfgd.Objective):
    def value(self, x):
        return with_if(x)


class OwnStep(cfgd.method.step.StepRule):
    def choose(self, line, memory):
        return cfgd.method.step.Chosen(0.1 if line.slope > 0 else 0.0)


ARRAY, BOOL = jax.errors.TracerArrayConversionError, jax.errors.TracerBoolConversionError
FLOAT, PLACES = jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError
IN_JAX = "must be written in JAX (jax.numpy for NumPy, jnp.where for `if`, no float())"
OR_EXTERNAL = f"`minimize(objective=...)` {IN_JAX} or be a cfgd.External(value, gradient)"
KNOWN = (
    "must be called with numbers that are known, outside of jit, vmap and grad (for many starts or "
    "settings there is `sweep`), and with rules that are written in JAX"
)


def solved(x0, c=0.0, gamma=-0.25, **options):
    method = AdaptiveTerminal(gamma=gamma)
    return cfgd.minimize(lambda x: bowl(x) + jnp.sum(c * x), x0, method, **options).value


def swept(gamma):
    return cfgd.sweep(bowl, X0, AdaptiveTerminal(gamma=gamma)).value


J0 = jnp.asarray(X0, F32)
UNKNOWN = {
    "NumPy": (run(in_numpy), f"{OR_EXTERNAL}, got a TracerArrayConversionError.", ARRAY),
    "if": (run(with_if), f"{OR_EXTERNAL}, got a TracerBoolConversionError.", BOOL),
    "float()": (run(with_float), f"{OR_EXTERNAL}, got a ConcretizationTypeError.", FLOAT),
    "places": (run(with_places), f"{OR_EXTERNAL}, got a NonConcreteBooleanIndexError.", PLACES),
    "of a pytree": (
        run(lambda p: with_if(p["a"]), {"a": X0}),
        f"{OR_EXTERNAL}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "an own objective": (
        run(Own()),
        f"`minimize(objective=...)` {IN_JAX}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "a gradient": (
        lambda: cfgd.Smooth(in_numpy).gradient(X0),
        f"`Smooth(fn=...)` {IN_JAX}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "a curvature": (
        lambda: Own().coordinate_curvature(X0, X0),
        f"`Own(value=...)` {IN_JAX}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "a fractional gradient": (
        lambda: cfgd.fractional_gradient(with_if, X0, 0.0, 0.5, 0.0),
        f"`fractional_gradient(objective=...)` {IN_JAX}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "a Caputo derivative": (
        lambda: cfgd.caputo(lambda t: float(t), 0.5, 0.0)(1.0),
        f"`caputo(f=...)` {IN_JAX}, got a ConcretizationTypeError.",
        FLOAT,
    ),
    "a record": (
        run(record={"a": with_float}),
        f"`minimize(record['a']=...)` {IN_JAX}, got a ConcretizationTypeError.",
        FLOAT,
    ),
    "a loss": (
        lambda: LinearModel(X, Y, lambda p, y: p if y > 0 else -p),
        f"`LinearModel(loss=...)` {IN_JAX}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "an activation": (
        lambda: cfgd.ShallowNetwork(Y, Y, 2, np.tanh),
        f"`ShallowNetwork(activation=...)` {IN_JAX}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "a rule": (
        run(method=GradientDescent(OwnStep())),
        f"`minimize` {KNOWN}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "x0 in jit": (
        lambda: jax.jit(solved)(J0),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "nothing of jit's": (
        lambda: jax.jit(lambda s: s + solved(X0))(1.0),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "x0 in vmap": (
        lambda: jax.vmap(solved)(jnp.stack([J0, J0])),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "x0 in grad": (
        lambda: jax.grad(solved)(J0),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "the function in grad": (
        lambda: jax.grad(lambda c: solved(X0, c))(0.5),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "the method in jit": (
        lambda: jax.jit(lambda gamma: solved(X0, gamma=gamma))(-0.5),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "a keyword in jit": (
        lambda: jax.jit(lambda tolerance: solved(X0, tolerance=tolerance))(1e-3),
        f"`minimize` {KNOWN}, got a ConcretizationTypeError.",
        FLOAT,
    ),
    "a sweep in jit": (
        lambda: jax.jit(swept)(jnp.array([0.1, 0.2])),
        f"`sweep` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
}


@pytest.mark.parametrize(("make", "message", "cause"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_values(make, message, cause):
    with pytest.raises(ValueError, match="must be") as raised:
        make()
    assert type(raised.value) is ValueError
    assert str(raised.value) == message  # `match` would see the notes that jit adds
    assert isinstance(raised.value.__cause__, cause)


# ---------------------------------------------------------------------- the user's own settings

SETTINGS = {
    "debug NaNs": lambda: jax.debug_nans(True),
    "strict types": lambda: jax.numpy_dtype_promotion("strict"),
    "strict ranks": lambda: jax.numpy_rank_promotion("raise"),
}
# 32-bit data as JAX arrays too: their constructors compute with JAX
HARMLESS = {
    "AdaptiveTerminal": lambda: cfgd.minimize(
        LeastSquares(X, Y), X0, AdaptiveTerminal(jnp.float32(0.5), gamma=-0.25, lag=2)
    ),
    "GradientDescent on JAX arrays": lambda: cfgd.minimize(
        LeastSquares(jnp.asarray(X, F32), jnp.asarray(Y, F32)), J0, GD, tolerance=1e-3
    ),
    "Auto on labels": lambda: cfgd.minimize(LinearModel(X, Y, l2=0.1), X0),
    "NonAdaptive on a function": lambda: cfgd.minimize(
        lambda x: jnp.sum((x - 1) ** 4), X0, cfgd.NonAdaptive(0.0, gamma=0.5), tolerance=1e-3
    ),
}


UNDER = {  # each setting and each problem
    f"{problem}-{setting}": (HARMLESS[problem], SETTINGS[setting])
    for problem in HARMLESS
    for setting in SETTINGS
}
QUICK = [
    "AdaptiveTerminal-debug NaNs",
    "GradientDescent on JAX arrays-strict types",
    "Auto on labels-strict ranks",
    "NonAdaptive on a function-strict types",
]


@pytest.mark.parametrize(("solve", "setting"), quick(UNDER, QUICK))
def test_harmless_problems_are_solved(solve, setting):
    expected = solve()
    with setting():
        solution = solve()
    assert solution.success
    np.testing.assert_array_equal(solution.x, expected.x)


def test_objectives_of_jax_arrays_answer():
    z, x = jnp.asarray(Y, F32), jnp.linspace(0, 1, 6, dtype=F32)
    f = cfgd.ShallowNetwork(z, z, 2)
    expected = f.gradient(x), f.coordinate_slope(x, x + 1)
    with jax.numpy_rank_promotion("raise"):
        assert np.isfinite(f.value(x))
        seen = f.gradient(x), f.coordinate_slope(x, x + 1)
    np.testing.assert_array_equal(seen, expected)


def test_the_settings_are_still_there_in_the_end():
    with jax.debug_nans(True), jax.numpy_rank_promotion("raise"):
        cfgd.minimize(bowl, X0, GD, callback=no_answer)
        with pytest.raises(FloatingPointError):
            jnp.log(-jnp.ones(()))
        with pytest.raises(ValueError, match="rank"):
            jnp.ones(2) + jnp.ones((2, 2))


# ------------------------------------------------------------------------------ drawn at random

TYPES = ["f2", "f4", "f8", "g", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
WHOLE = [0, 1]  # what all of them hold

CONTAINERS = {
    "array": lambda a: a,
    "list": lambda a: a.tolist(),
    "rows": list,
    "NumPy numbers": lambda a: [list(row) for row in a] if a.ndim == 2 else list(a),
    "tuple": lambda a: tuple(map(tuple, a)) if a.ndim == 2 else tuple(a),
    "every second": lambda a: np.repeat(a, 2, 0)[::2],
    "read-only": lambda a: np.broadcast_to(a, a.shape),
    "masked nowhere": np.ma.array,
    "pandas": lambda a: pandas_of(a),
    "nullable pandas": lambda a: pandas_of(a).convert_dtypes(),
}


def pandas_of(a):
    return (pd.DataFrame if a.ndim == 2 else pd.Series)(native(a))


def native(a):
    """pandas has neither foreign byte orders nor long doubles."""
    return a.astype(a.dtype.newbyteorder("=")) if a.dtype.itemsize <= 8 else a.astype(float)


@st.composite
def numbers(draw, shape):
    """Numbers in any type, byte order and memory order, and in any container."""
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    dtype = dtype.newbyteorder(draw(st.sampled_from("=><")))
    a = draw(arrays_of.arrays(np.int8, shape, elements=st.sampled_from(WHOLE)))
    a = np.asarray(a.astype(dtype), order=draw(st.sampled_from("CF")))
    return CONTAINERS[draw(st.sampled_from(sorted(CONTAINERS)))](a), a.astype(float)


some = hypothesis.settings(
    max_examples=30,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)


@some
@hypothesis.given(
    arrays_of.array_shapes(min_dims=2, max_dims=2, max_side=4).flatmap(
        lambda shape: st.tuples(numbers(shape), numbers(shape[:1]))
    )
)
def test_any_numbers_become_data(given):
    (X, X_values), (y, y_values) = given
    f = LeastSquares(X, y)
    for seen, values in ((f.X.X, X_values), (f.y, y_values)):
        assert seen.dtype in (F32, F64)
        np.testing.assert_array_equal(seen, values)


@some
@hypothesis.given(numbers((3,)))
def test_any_numbers_become_a_start(given):
    x0, values = given
    start = as_tree("minimize", "x0", x0)
    assert start.dtype in (F32, F64)
    np.testing.assert_array_equal(start, values)
    x = cfgd.minimize(bowl, x0, GD, tolerance=1e-3, callback=no_answer).x
    np.testing.assert_allclose(x, END, atol=1e-2)
