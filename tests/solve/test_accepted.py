"""Input of every accepted type, and the arrays that it becomes."""

import re

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis.extra import numpy as arrays_of
from inputs import BF16, END, F32, F64, GD, X0, A, B, X, Y, bowl, no_answer

import cfgd
from cfgd import LeastSquares, LinearModel
from cfgd._core.pytrees import checked_pytree
from problems import quick

# these are for users without a type checker
pytestmark = pytest.mark.usefixtures("unchecked")


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
def test_type_and_dtype_of_data(given, kind, dtype):
    f = LeastSquares(given, np.ones(len(given)))
    assert isinstance(f.X.X, kind)
    assert f.X.X.dtype == dtype
    np.testing.assert_array_equal(f.X.X, np.asarray(given).astype(float))


def test_sparse_long_doubles_become_float64():
    # SciPy itself refuses half precision and foreign byte orders
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
def test_a_column_of_targets_is_flattened_with_a_warning(y):
    message = "`LeastSquares(y=...)` has shape (4, 1) and is taken as (4,)."
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as seen:
        f = LeastSquares(X, y)
    assert seen[0].filename == __file__
    np.testing.assert_array_equal(f.y, Y)


def test_rounding_in_half_precision_does_not_make_a_matrix_indefinite():
    v = np.array([0.1, 0.7, 0.3])
    rank_one = np.outer(v, v).astype(np.float16)  # whose rounding makes a minor negative
    assert cfgd.Quadratic(rank_one, np.zeros(3)).A.dtype == F32


# ------------------------------------------------------------------------------ accepted: starts

# x0, the dtype of the data, and the type and dtype of the solution
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
def test_type_and_dtype_of_x(x0, data, kind, dtype):
    f = cfgd.Quadratic(A.astype(data), B.astype(data))
    x = cfgd.minimize(f, x0, tolerance=1e-5, callback=no_answer).x
    assert isinstance(x, kind)
    assert x.dtype == dtype
    np.testing.assert_allclose(x, END, rtol=1e-3)


def test_x_has_the_precision_in_which_the_run_converged():
    f, x0 = cfgd.Quadratic(A, B), jnp.asarray(X0, F32)
    end = cfgd.minimize(f, x0, GD, tolerance=1e-12, callback=no_answer)
    assert np.linalg.norm(f.gradient(end.x)) <= 1e-10
    with jax.enable_x64(True):
        end = cfgd.minimize(f, x0, GD, tolerance=1e-12, callback=no_answer)
        assert isinstance(end.x, jax.Array)
        assert end.x.dtype == F64


def test_a_custom_node_of_numbers_is_a_pytree():
    node = jax.tree_util.Partial(len, 0.5, 2)  # any node that is not a list
    assert checked_pytree("f", "x", node).args == (0.5, 2.0)


@pytest.mark.slow
def test_a_huge_tolerance_is_met_at_the_start():
    for x0 in (X0, X0.astype(F32)):
        end = cfgd.minimize(bowl, x0, GD, tolerance=1e200, callback=no_answer)
        assert end.status is cfgd.Status.converged
        assert end.iterations == 0


# ------------------------------------------------------------------------------ drawn at random

TYPES = ["f2", "f4", "f8", "g", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
ENTRIES = [0, 1]  # every dtype has them

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
    """Return an array that pandas can hold: it has no foreign byte orders and no long doubles."""
    return a.astype(a.dtype.newbyteorder("=")) if a.dtype.itemsize <= 8 else a.astype(float)


@st.composite
def numbers(draw, shape):
    """Draw numbers of any dtype, byte order and memory order, in any container."""
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    dtype = dtype.newbyteorder(draw(st.sampled_from("=><")))
    a = draw(arrays_of.arrays(np.int8, shape, elements=st.sampled_from(ENTRIES)))
    a = np.asarray(a.astype(dtype), order=draw(st.sampled_from("CF")))
    return CONTAINERS[draw(st.sampled_from(sorted(CONTAINERS)))](a), a.astype(float)


some = hypothesis.settings(
    max_examples=30,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)


@pytest.mark.slow
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


@pytest.mark.slow
@some
@hypothesis.given(numbers((3,)))
def test_any_numbers_become_a_start(given):
    x0, values = given
    start = checked_pytree("minimize", "x0", x0)
    assert start.dtype in (F32, F64)
    np.testing.assert_array_equal(start, values)
    x = cfgd.minimize(bowl, x0, GD, tolerance=1e-3, callback=no_answer).x
    np.testing.assert_allclose(x, END, atol=1e-2)
