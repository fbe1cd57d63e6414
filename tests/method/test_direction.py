"""`fractional_gradient` against the paper's definitions, and the slopes that it is made of."""

import functools
import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from mpmath import mp
from scipy.special import roots_jacobi

import cfgd
from problems import few, quick

# Nothing is symmetric: entries differ, A is full, c is not zero and x - c has both signs.
A = np.array(
    [[4.0, 1.5, -0.6, 0.2], [1.5, 2.5, 0.4, -0.7], [-0.6, 0.4, 1.2, 0.3], [0.2, -0.7, 0.3, 0.8]]
)
B = np.array([1.0, -4.0, 0.7, 2.0])
X = np.array(
    [
        [1.2, 0.3, -0.5, 0.4],
        [-0.4, 1.1, 0.6, -0.9],
        [0.8, -0.9, 0.7, 0.1],
        [0.5, 0.2, 1.3, 0.6],
        [1.0, -0.7, 0.1, -1.4],
        [0.3, 0.9, -0.2, 0.5],
    ]
)
Y = np.array([1.0, -2.0, 0.5, 1.5, -0.3, 0.8])
POINT = np.array([1.3, -0.4, 0.9, -1.1])
TERMINAL = np.array([-0.5, 0.8, 0.2, -1.9])
NODES = 16  # for all: a new number of nodes costs a second


class Case(NamedTuple):
    objective: Any
    f: Callable[[list[Any]], Any]  # the same for a list of mpmath numbers


def wavy(m, x):
    return (
        m.exp(0.5 * x[0] - 0.3 * x[1])
        + m.sin(x[0] * x[2]) / 2
        + x[1] ** 3 * x[3] / 5
        + m.log(2 + (x[2] - x[3]) ** 2)
    )


def quartic(m, x):
    return x[0] ** 4 / 4 + x[0] * x[1] ** 3 - 2 * x[1] * x[2] ** 2 * x[3] + x[3] ** 4 / 3 + x[2]


def predictions(X, x):
    return [mp.fdot(row, x) for row in X.tolist()]


def least_squares(X, y):
    return Case(
        cfgd.LeastSquares(X, y),
        lambda x: sum((p - t) ** 2 for p, t in zip(predictions(X, x), y, strict=True)) / 2,
    )


CASES = {
    "quadratic": Case(
        cfgd.Quadratic(A, B, 3.0),
        lambda x: mp.fdot(x, predictions(A, x)) / 2 + mp.fdot(B.tolist(), x) + 3,
    ),
    "tall least squares": least_squares(X, Y),
    "wide least squares": least_squares(X[:3], Y[:3]),
    "logistic": Case(
        cfgd.LinearModel(X, Y > 0.6, l2=0.3),
        lambda x: (
            sum(
                mp.log(1 + mp.exp(p)) - t * p
                for p, t in zip(predictions(X, x), (Y > 0.6).tolist(), strict=True)
            )
            + 0.3 * mp.fdot(x, x) / 2
        ),
    ),
    "smooth": Case(cfgd.Smooth(lambda x: wavy(jnp, x)), lambda x: wavy(mp, x)),
    "function": Case(lambda x: quartic(jnp, x), lambda x: quartic(mp, x)),
}
QUADRATICS = ["quadratic", "tall least squares", "wide least squares"]
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
quadratics = pytest.mark.parametrize("name", QUADRATICS)
SETTINGS = [(0.3, 0.2), (0.9, -1.5)]
settings = pytest.mark.parametrize(("alpha", "beta"), SETTINGS)


def matrix_of(objective):
    """A and b of a quadratic."""
    if isinstance(objective, cfgd.Quadratic):
        return A, B
    rows = {6: slice(None), 3: slice(3)}[objective.y.size]
    return X[rows].T @ X[rows], -X[rows].T @ Y[rows]


def caputo(f, order, c, x):
    """Definition 2.1, left or right by the sign of x - c, for an order that is no integer.

    |x - t| = |x - c| v^(1/(n - order)) takes the singularity out of the integral.
    """
    order, c, x = mp.mpf(order), mp.mpf(c), mp.mpf(x)
    n, side = int(mp.ceil(order)), mp.sign(x - c)
    power = 1 / (n - order)
    integral = mp.quad(lambda v: mp.diff(f, x - (x - c) * v**power, n), [0, 1])
    return side**n / mp.gamma(n - order) * power * abs(x - c) ** (n - order) * integral


def along(f, x, j):
    """f_j: f with only coordinate j free."""
    x = [mp.mpf(x_i) for x_i in x]
    return lambda t: f([*x[:j], t, *x[j + 1 :]])


def by_definition(f, x, c, alpha, beta):
    """[D^alpha f_j + beta |x_j - c_j| D^(1 + alpha) f_j] / D^alpha I, for each j."""

    def component(j, x_j, c_j, alpha, beta):
        f_j = along(f, x, j)
        first, second = caputo(f_j, alpha, c_j, x_j), caputo(f_j, 1 + mp.mpf(alpha), c_j, x_j)
        return (first + beta * abs(x_j - c_j) * second) / caputo(lambda t: t, alpha, c_j, x_j)

    rows = np.column_stack(np.broadcast_arrays(x, c, alpha, beta))
    with mpmath.workdps(17):
        return np.array([float(component(j, *row)) for j, row in enumerate(rows)])


@functools.cache
def of_wavy(one_terminal=False):
    """What several tests compare with, once."""
    terminal = 0.25 if one_terminal else TERMINAL
    return cfgd.fractional_gradient(CASES["smooth"].objective, POINT, terminal, 0.3, 0.2, NODES)


def gamma(alpha, beta):
    return beta - (1 - alpha) / (2 - alpha)


def test_the_point_is_on_both_sides_of_the_terminal():
    assert (POINT > TERMINAL).any()
    assert (POINT < TERMINAL).any()


# By definition.


DEFINED = {  # the first setting with every case, the second with one
    f"{name}-{alpha}": (case, alpha, beta)
    for name, case in CASES.items()
    for alpha, beta in SETTINGS
}
QUICK = [*(f"{name}-0.3" for name in CASES), "smooth-0.9"]


@pytest.mark.parametrize(("case", "alpha", "beta"), quick(DEFINED, QUICK))
def test_definition(case, alpha, beta):
    got = cfgd.fractional_gradient(case.objective, POINT, TERMINAL, alpha, beta, NODES)
    expected = by_definition(case.f, POINT, TERMINAL, alpha, beta)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["quadratic", "smooth"])
def test_an_order_and_a_smoothing_for_each_coordinate(name):
    case = CASES[name]
    alpha, beta = np.array([0.2, 0.9, 0.5, 0.7]), np.array([0.0, 0.4, -1.0, 2.0])
    got = cfgd.fractional_gradient(case.objective, POINT, TERMINAL, alpha, beta, NODES)
    expected = by_definition(case.f, POINT, TERMINAL, alpha, beta)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


@cases
def test_terminal_at_x_gives_the_gradient(case):
    got = cfgd.fractional_gradient(case.objective, POINT, POINT, 0.3, 0.2, NODES)
    with mpmath.workdps(17):
        expected = [float(mp.diff(along(case.f, POINT, j), POINT[j])) for j in range(4)]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@quadratics
def test_terminal_at_x_gives_the_gradient_of_a_quadratic_to_the_last_bit(name):
    f = CASES[name].objective
    got = cfgd.fractional_gradient(f, POINT, POINT, 0.3, 0.2)
    np.testing.assert_array_equal(got, f.gradient(POINT))


def test_one_number_as_terminal():
    expected = by_definition(CASES["smooth"].f, POINT, 0.25, 0.3, 0.2)
    np.testing.assert_allclose(of_wavy(one_terminal=True), expected, rtol=1e-10)


# Quadratics.


@settings
@quadratics
def test_quadratic_closed_form(name, alpha, beta):
    """The corollary with a_jj; with its printed sqrt(a_jj) it is another vector (erratum 1)."""
    f = CASES[name].objective
    A, b = matrix_of(f)
    gradient, D = A @ POINT + b, np.diag(A)
    got = cfgd.fractional_gradient(f, POINT, TERMINAL, alpha, beta)
    shift = gamma(alpha, beta) * (POINT - TERMINAL)
    np.testing.assert_allclose(got, gradient + D * shift, rtol=1e-12)
    assert np.abs(got - (gradient + np.sqrt(D) * shift)).max() > 0.05


@pytest.mark.parametrize(
    ("name", "nodes"), [*((name, 1) for name in QUADRATICS), ("quadratic", NODES)]
)
def test_smooth_of_a_quadratic(name, nodes):
    """One node is exact, and no number of nodes changes anything."""
    f = CASES[name].objective
    expected = cfgd.fractional_gradient(f, POINT, TERMINAL, 0.3, 0.2)
    got = cfgd.fractional_gradient(cfgd.Smooth(f.value), POINT, TERMINAL, 0.3, 0.2, nodes)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("rows", [6, 3], ids=["tall", "wide"])
def test_least_squares_is_a_quadratic(rows):
    X_, y = X[:rows], Y[:rows]
    f, g = cfgd.LeastSquares(X_, y), cfgd.Quadratic(X_.T @ X_, -X_.T @ y, y @ y / 2)
    assert (f.gram is None) == (rows < 4)  # both ways of least squares are on trial
    np.testing.assert_allclose(f.value(POINT), g.value(POINT), rtol=1e-13)
    np.testing.assert_allclose(
        cfgd.fractional_gradient(f, POINT, TERMINAL, 0.3, 0.2),
        cfgd.fractional_gradient(g, POINT, TERMINAL, 0.3, 0.2),
        rtol=1e-12,
    )


@settings
def test_moving_all_coordinates_at_once_is_another_method(alpha, beta):
    """Relation 7: that gives gamma A (x - c), not gamma diag(A) (x - c)."""
    t, w = roots_jacobi(5, -alpha, 0)
    U, w = (1 + t) / 2, w / w.sum()
    h = POINT - TERMINAL
    along = TERMINAL + U[:, None] * h
    at_once = w @ (along @ A + B) + beta * (A @ h)
    np.testing.assert_allclose(at_once, A @ POINT + B + gamma(alpha, beta) * A @ h, rtol=1e-12)

    got = cfgd.fractional_gradient(cfgd.Quadratic(A, B), POINT, TERMINAL, alpha, beta)
    off_diagonal = A - np.diag(np.diag(A))
    np.testing.assert_allclose(at_once - got, gamma(alpha, beta) * off_diagonal @ h, rtol=1e-11)
    assert np.abs(at_once - got).min() > 0.05


# Nodes.


def test_error_falls_as_nodes_grow():
    case = CASES["smooth"]
    expected = by_definition(case.f, POINT, TERMINAL, 0.3, 0.2)
    errors = [
        np.abs(
            cfgd.fractional_gradient(case.objective, POINT, TERMINAL, 0.3, 0.2, nodes) - expected
        ).max()
        for nodes in (1, 2, NODES)
    ]
    assert errors[0] > 0.01
    for worse, better in itertools.pairwise(errors):
        assert better < worse / 5
    assert errors[-1] < 1e-10


@pytest.mark.parametrize("nodes", [1, 2])
def test_degree_2s_is_exact_with_s_nodes(nodes):
    """f' then has degree 2s - 1; one degree more is beyond the rule."""

    def f(degree):
        return lambda x: sum(x[j] ** degree * (x[j - 1] + j + 2) for j in range(4)) + x[0] * x[3]

    def error(degree):
        got = cfgd.fractional_gradient(f(degree), POINT, TERMINAL, 0.3, 0.2, nodes)
        return np.abs(got / by_definition(f(degree), POINT, TERMINAL, 0.3, 0.2) - 1)

    assert error(2 * nodes).max() < 1e-11
    assert error(2 * nodes + 1).max() > 1e-6


# Pytrees.

LEAVES = np.split(POINT, [1]), np.split(TERMINAL, [1])  # one coordinate, then three
TREES = {
    "dict": (
        lambda one, three: {"a": one[0], "b": three},
        lambda p: wavy(jnp, [p["a"], *p["b"]]),
    ),
    "tuple": (lambda one, three: (one, three), lambda p: wavy(jnp, [p[0][0], *p[1]])),
    "nested": (
        lambda one, three: {"n": [one.reshape(1, 1), {"m": three[:2]}], "o": three[2:]},
        lambda p: wavy(jnp, [p["n"][0][0, 0], *p["n"][1]["m"], p["o"][0]]),
    ),
    "matrix": (
        lambda one, three: np.concatenate([one, three]).reshape(2, 2),
        lambda p: wavy(jnp, p.reshape(-1)),
    ),
}


def assert_trees_close(got, expected):
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-12, strict=True)


@pytest.mark.parametrize(("tree", "f"), TREES.values(), ids=TREES)
def test_pytrees(tree, f):
    x, c = (tree(*leaves) for leaves in LEAVES)
    got = cfgd.fractional_gradient(f, x, c, 0.3, 0.2, NODES)
    expected = tree(*np.split(of_wavy(), [1]))
    assert_trees_close(got, expected)


def test_pytree_with_one_number_as_terminal():
    tree, f = TREES["dict"]
    got = cfgd.fractional_gradient(f, tree(*LEAVES[0]), 0.25, 0.3, 0.2, NODES)
    assert_trees_close(got, tree(*np.split(of_wavy(one_terminal=True), [1])))


# The slopes that it is made of: only coordinate j moves.


def explicit(name, t):
    """Slopes and curvatures from gradients and Hessians at the d points x with x_j = t_j."""
    points = np.where(np.eye(4, dtype=bool), t, POINT)
    if name in QUADRATICS:
        A, b = matrix_of(CASES[name].objective)
        return np.diag(points @ A + b), np.diag(A)
    with jax.enable_x64(True):
        gradient, hessian = (
            jax.jit(jax.vmap(of(lambda x: wavy(jnp, x))))(points) for of in (jax.grad, jax.hessian)
        )
    return np.diag(gradient), [hessian[j, j, j] for j in range(4)]


@pytest.mark.parametrize("name", [*QUADRATICS, "smooth"])
def test_coordinate_slope_and_curvature(name):
    f = CASES[name].objective
    t = np.array([0.6, 2.0, -1.7, 0.3])
    slope, curvature = explicit(name, t)
    np.testing.assert_allclose(f.coordinate_slope(POINT, t), slope, rtol=1e-12)
    np.testing.assert_allclose(f.coordinate_curvature(POINT, t), curvature, rtol=1e-12)
    np.testing.assert_allclose(f.coordinate_slope(POINT, POINT), f.gradient(POINT), rtol=1e-12)


# Many coordinates: in chunks.


def test_chunks_change_nothing(monkeypatch):
    """64 pairs of a coordinate and a node, in chunks of 25, of which the last is shorter."""
    whole = of_wavy()
    monkeypatch.setattr("cfgd.objective.base.CHUNK_NUMBERS", 25 * 4)
    f = CASES["smooth"].objective
    parts = cfgd.fractional_gradient(f, POINT, TERMINAL, 0.3, 0.2, NODES)
    np.testing.assert_allclose(parts, whole, rtol=1e-12)


MANY = """
import resource
import jax.numpy as jnp, numpy as np, cfgd

def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MiB

d, alpha, beta = 2000, 0.3, 0.2
a, x = np.linspace(-1.0, 1.0, d), np.linspace(0.5, 2.0, d)
c = x[::-1] - 0.1
before = used()
got = cfgd.fractional_gradient(lambda x: jnp.sum(a * x**3), x, c, alpha, beta, nodes=10)
grown = used() - before
h, m1, m2 = x - c, 1 / (2 - alpha), 2 / ((2 - alpha) * (3 - alpha))  # E[U], E[U^2]
slope = 3 * a * (c**2 + 2 * c * h * m1 + h**2 * m2)
curvature = 6 * a * (c + h * m1)
print(grown, np.abs(got - slope - beta * h * curvature).max())
"""


def test_memory_does_not_grow_with_nodes_times_dimension_squared():
    """20,000 copies of 2000 numbers: 250 MiB in chunks, 1.6 GiB at once."""
    ran = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=True)
    mebibytes, error = map(float, ran.stdout.split())
    assert error < 1e-12
    assert mebibytes < 768


# Under jit, vmap and grad it is a plain JAX function.

WEIGHTS = np.array([1.0, -0.7, 0.4, 2.0])
TRANSFORMED = ["quadratic", "smooth"]
transformed = pytest.mark.parametrize("name", TRANSFORMED)


@transformed
def test_jit(name):
    f = CASES[name].objective
    expected = by_definition(CASES[name].f, POINT, TERMINAL, 0.3, 0.2)

    @jax.jit
    def compiled(x, c, alpha, beta):
        return cfgd.fractional_gradient(f, x, c, alpha, beta, NODES)

    with jax.enable_x64(True):
        got = compiled(jnp.asarray(POINT), jnp.asarray(TERMINAL), 0.3, 0.2)
    assert isinstance(got, jax.Array)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


@transformed
def test_vmap(name):
    """Over points, terminals, orders and smoothings at once."""
    f = CASES[name].objective
    shift = np.array([[0.0], [0.3], [-0.8]])
    batch = POINT + shift, TERMINAL - shift / 2, np.array([0.3, 0.5, 0.9]), np.array([0, 1, -0.5])
    expected = [
        cfgd.fractional_gradient(f, x, c, alpha, beta, NODES)
        for x, c, alpha, beta in zip(*batch, strict=True)
    ]
    with jax.enable_x64(True):
        got = jax.jit(jax.vmap(lambda *a: cfgd.fractional_gradient(f, *a, NODES)))(*batch)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@transformed
def test_grad(name):
    """In the point, the terminal, the order and the smoothing, against central differences."""
    f = CASES[name].objective
    where = POINT, TERMINAL, np.array(0.3), np.array(0.2)

    @jax.jit
    def height(*at):
        return jnp.dot(WEIGHTS, cfgd.fractional_gradient(f, *at, NODES))

    with jax.enable_x64(True):
        got = jax.jit(jax.grad(height, argnums=(0, 1, 2, 3)))(*where)
        h = 1e-5
        for i, of in enumerate(where):
            for j in np.ndindex(of.shape):
                step = np.zeros(of.shape)
                step[j] = h
                upper, lower = (
                    height(*where[:i], of + sign * step, *where[i + 1 :]) for sign in (1, -1)
                )
                np.testing.assert_allclose(got[i][j], (upper - lower) / (2 * h), rtol=1e-7)


# Precision follows the data.


@transformed
def test_numpy_gets_float64_although_jax_is_at_float32(name):
    """A list is a vector. The values are those of `test_definition`."""
    assert not jax.config.jax_enable_x64
    f = CASES[name].objective
    got = cfgd.fractional_gradient(f, POINT.tolist(), TERMINAL.tolist(), 0.3, 0.2, NODES)
    np.testing.assert_array_equal(
        got, cfgd.fractional_gradient(f, POINT, TERMINAL, 0.3, 0.2, NODES)
    )
    assert type(got) is np.ndarray
    assert got.dtype == np.float64
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize(
    ("kind", "x64"), few([(np, True), (jnp, False), (np, False), (jnp, True)], 2)
)
@pytest.mark.parametrize("terminal", [TERMINAL, 0.25], ids=["vector", "number"])
def test_float32_stays_float32(kind, x64, terminal):
    """alpha, beta and a terminal that is one number have no precision of their own."""
    f = CASES["smooth"].objective
    expected = cfgd.fractional_gradient(f, POINT, terminal, 0.3, 0.2, 1)
    with jax.enable_x64(x64):
        x = kind.asarray(POINT, dtype=np.float32)
        c = kind.asarray(terminal, dtype=np.float32) if np.ndim(terminal) else terminal
        got = cfgd.fractional_gradient(f, x, c, 0.3, 0.2, 1)
    assert isinstance(got, jax.Array) == isinstance(x, jax.Array)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_a_terminal_of_higher_precision_does_not_widen_x():
    x, f = np.float32([1.5, -0.5]), cfgd.Smooth(lambda x: jnp.sum(jnp.sin(x)))
    got = cfgd.fractional_gradient(f, jnp.asarray(x), np.array([0.2, 0.3]), 0.3, 0.2)
    assert got.dtype == np.float32
    expected = cfgd.fractional_gradient(f, x.astype(float), np.array([0.2, 0.3]), 0.3, 0.2)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


# Bad input.

OWNER = "`fractional_gradient"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"objective": 3}, f"{OWNER}(objective=...)` must be an objective or a function, got 3."),
        ({"alpha": 1.0}, f"{OWNER}(alpha=...)` must lie in (0, 1), got 1.0."),
        ({"beta": np.nan}, f"{OWNER}(beta=...)` must be finite, got nan."),
        ({"nodes": 0}, f"{OWNER}(nodes=...)` must be an integer of at least 1, got 0."),
        ({"x": [1.0, np.inf]}, f"{OWNER}(x=...)` must be finite, got inf at index 1."),
        (
            {"terminal": np.zeros(3)},
            f"{OWNER}(terminal=...)` must be a number or have the structure of x, got [0. 0. 0.].",
        ),
        (
            {"alpha": np.array([0.3, 0.4, 0.5])},
            f"{OWNER}(alpha=...)` must be a number or have shape (2,), got shape (3,).",
        ),
        (
            {"beta": np.array([[0.3, 0.4]])},
            f"{OWNER}(beta=...)` must be a number or have shape (2,), got shape (1, 2).",
        ),
    ],
    ids=lambda row: next(iter(row)) if isinstance(row, dict) else "",
)
@pytest.mark.usefixtures("unchecked")
def test_message(changed, message):
    given = {"objective": jnp.sum, "x": [1.0, 2.0], "terminal": 0.0, "alpha": 0.3, "beta": 0.2}
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        cfgd.fractional_gradient(**(given | changed))


def test_new_numbers_do_not_trace_again():
    """One program for all x, terminals and orders; also of `coordinate_slope` and its curvature."""
    traces = []

    def f(x):
        traces.append(x.shape)
        return jnp.sum(jnp.cos(x) * x) + x[0] * x[1]

    def look(x, c, alpha):
        d = cfgd.fractional_gradient(f, x, c, alpha, beta=alpha - 0.3)
        g = cfgd.Smooth(f)
        return d, g.coordinate_slope(x, c), g.coordinate_curvature(x, c), g.gradient(x)

    first = look([1.0, 2.0, 3.0], [0.0, 0.5, 1.0], 0.3)
    seen = len(traces)
    second = look([1.5, 2.5, 0.1], [0.3, -0.5, 2.0], 0.6)
    assert seen > 0
    assert len(traces) == seen
    assert not np.allclose(first[0], second[0])
