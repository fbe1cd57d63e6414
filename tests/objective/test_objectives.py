"""Each objective against the same function written a second time, and what its users rely on."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import cfgd
from cfgd.objective import base, design, network as network_module
from cfgd.objective.activation import activation_of
from cfgd.objective.samples import sum_of_parts
from objectives import (
    ACTIVATIONS,
    CASES,
    COUNTS,
    FAR,
    FORMATS,
    L2,
    LABELS,
    LOSSES,
    SIGNS,
    W0,
    WEIGHTS,
    Case,
    X,
    Y,
    all_close,
    arguments,
    close,
    in_float64,
    jitted_walk,
    reference,
    rounded,
    walk,
    wave,
)
from problems import few, look_on, quick

# ---------------------------------------------------------------------------- exactness

QUANTITIES = [name for name in reference("quadratic") if name != "gauss_newton_diagonal"]

# without `make slow`: each loss in one format with weights and a penalty, half of them without,
# and two networks
QUICK = [
    *("squared, dense", "logistic -1/1, csc", "huber, csr"),
    *("squared, csr, weights, l2", "logistic 0/1, csr, weights, l2", "poisson, csr, weights, l2"),
    *("logistic 0/1, dense, weights, l2", "huber, dense, weights, l2"),
    "custom, dense, weights, l2",
    *("least squares", "least squares, csc, wide", "least squares, wide, weights, l2"),
    "least squares, csr, weights, l2",
    *("network, tanh, p = 3", "network, custom, p = 1"),
    *("quadratic", "smooth"),
]
cases = pytest.mark.parametrize("case", quick({name: name for name in CASES}, QUICK))


@cases
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_it_is_that_of_the_same_function_written_a_second_time(case, quantity):
    all_close(walk(case)[quantity], reference(case)[quantity])


@pytest.mark.parametrize(
    "case", quick({name: name for name, case in CASES.items() if case.gauss_newton}, QUICK)
)
def test_gauss_newton_is_that_of_the_jacobian(case):
    close(walk(case)["gauss_newton_diagonal"], reference(case)["gauss_newton_diagonal"])


@pytest.mark.parametrize("case", [name for name, case in CASES.items() if not case.gauss_newton])
def test_where_there_is_no_model_there_is_no_gauss_newton(case):
    assert walk(case)["gauss_newton_diagonal"] is None


@cases
def test_what_is_carried_to_a_point_is_what_a_look_at_it_gives(case):
    moved, again = walk(case)["carried"]
    all_close(moved, again)


@cases
def test_the_table_is_asymmetric(case):
    """Far points change slopes, and no two coordinates share one: a mix-up would show."""
    slopes = walk(case)["slopes"]
    assert np.min(np.abs(np.diff(np.sort(slopes[3])))) > 1e-6
    assert np.min(np.abs(slopes[3] - slopes[4])) > 1e-6


def wave_parts(x):
    """Slopes and curvatures of `wave` by hand: the reference itself needs a witness."""
    e = np.exp(0.4 * x[0] - 0.3 * x[1])
    slopes = [0.4 * e + x[0] ** 3 + x[1] / 2, -0.3 * e + x[0] / 2 + 2 * x[1]]
    return slopes, [0.16 * e + 3 * x[0] ** 2, 0.09 * e + 2]


def test_smooth_is_the_derivatives_by_hand():
    case = CASES["smooth"]
    _, t, *_ = arguments(case)
    for k, at in enumerate(t):
        for j in range(2):
            moved = case.x.copy()
            moved[j] = at[j]
            slopes, curvatures = wave_parts(moved)
            np.testing.assert_allclose(walk("smooth")["slopes"][k, j], slopes[j], rtol=1e-13)
            np.testing.assert_allclose(
                walk("smooth")["curvatures"][k, j], curvatures[j], rtol=1e-13
            )


PUBLIC = [
    "smooth",
    "logistic 0/1, csr, weights, l2",
    "network, tanh, p = 3",
    "quadratic",
    "least squares, wide, weights, l2",
]


@pytest.mark.parametrize("name", few(PUBLIC, 3))
def test_coordinate_slopes_and_curvatures_are_at_the_users_hand(name):
    """Called as users do, on NumPy and lists."""
    f = CASES[name].objective
    x, t, *_ = arguments(CASES[name])
    slopes = f.coordinate_slope(x, t[FAR])
    assert isinstance(slopes, np.ndarray)
    assert slopes.dtype == np.float64
    close(slopes, reference(name)["slopes"][FAR])
    close(f.coordinate_curvature(x.tolist(), t[FAR].tolist()), reference(name)["curvatures"][FAR])
    assert f.dimension == (None if name == "smooth" else x.size)


@pytest.mark.parametrize(("given", "again"), ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_an_activation_has_its_own_derivatives(given, again):
    u = np.array([[-3.0, -0.7], [0.0, 0.2], [1.4, 5.0]])
    parts = in_float64(activation_of("ShallowNetwork", given, u.dtype), u)
    for order, part in enumerate(parts):
        fn = again
        for _ in range(order):
            fn = jax.grad(fn)
        close(part, in_float64(jax.jit(jax.vmap(jax.vmap(fn))), u), 1e-13)


# ---------------------------------------------------------------------------- chunks

CHUNKS = {  # sizes that leave a remainder: 11 samples by 3 and 7, 7 samples by 4, 12 slopes by 5
    "logistic 0/1, dense, weights, l2": [(4 * 3 + 1, 1), (4 * 7, 1), (1, 1)],
    "custom, dense, weights, l2": [(4 * 3, 1)],
    "network, tanh, p = 3": [(1, 8 * 8 * 4 + 3), (1, 1)],
    "smooth": [(1, 2 * 5 + 1), (1, 1)],
}
CHUNK_ROWS = {
    f"{name}-{numbers}": (name, *numbers) for name, rows in CHUNKS.items() for numbers in rows
}


def chunked_of(objective, x, t, d, etas, each):
    """What is computed by chunks."""
    point = objective.at(x)
    slopes, curvatures = objective.slopes(point, t)
    values = objective.line(point, d).values(etas)
    return {"slopes": slopes, "curvatures": curvatures, "values": values}


@pytest.mark.parametrize(
    ("name", "cache", "chunk"),
    quick(CHUNK_ROWS, [f"{name}-{rows[0]}" for name, rows in CHUNKS.items()]),
)
def test_chunks_change_nothing(monkeypatch, name, cache, chunk):
    monkeypatch.setattr(design, "CACHE_NUMBERS", cache)
    monkeypatch.setattr(base, "CHUNK_NUMBERS", chunk)
    monkeypatch.setattr(network_module, "CHUNK_NUMBERS", chunk)
    case = CASES[name]
    fresh = eqx.filter_jit(lambda *given: chunked_of(*given))  # not a trace with other chunks
    got = in_float64(fresh, case.objective, *arguments(case))
    all_close(got, {quantity: walk(name)[quantity] for quantity in got}, 1e-14)


PARTS = {f"{m} by {size}": (m, size) for m, size in [(11, 3), (12, 3), (7, 7), (5, 1), (9, 8)]}


@pytest.mark.parametrize(("m", "size"), PARTS.values(), ids=PARTS)
def test_a_sum_of_parts_counts_every_sample_once(m, size):
    a, b = np.arange(1.0, m + 1), np.stack([np.arange(m) ** 2.0, np.ones(m)])
    got = in_float64(
        lambda a, b: sum_of_parts(lambda new, a, b: (b * a) @ new, m, size, (a, b)), a, b
    )
    np.testing.assert_allclose(got, b @ a, rtol=1e-14)


# ---------------------------------------------------------------------------- samples

TIMES = np.array([2, 0, 1, 3, 1, 0, 1, 2, 1, 0, 0])  # 11 in all: shapes stay, and so do traces
SAMPLES = {
    f"{loss}, dense": (functools.partial(cfgd.LinearModel, loss=row.given), X, row.y, "dense")
    for loss, row in LOSSES.items()
} | {
    "logistic 0/1, csr": (cfgd.LinearModel, X, LABELS, "csr"),
    "least squares, dense": (cfgd.LeastSquares, X, Y, "dense"),
    "least squares, wide": (cfgd.LeastSquares, np.tile(X, 6), Y, "dense"),
    "least squares, csc": (cfgd.LeastSquares, X, Y, "csc"),
}


REPEATED = ["squared, dense", "logistic 0/1, csr", "custom, dense", "least squares, wide"]


@pytest.mark.parametrize(("make", "X", "y", "kind"), quick(SAMPLES, REPEATED))
def test_a_weight_says_how_often_a_sample_is_there(make, X, y, kind):
    weighted = make(FORMATS[kind](X), y, l2=L2, sample_weight=TIMES)
    repeated = make(FORMATS[kind](np.repeat(X, TIMES, 0)), np.repeat(y, TIMES), l2=L2)
    given = arguments(Case(weighted, None, np.resize(W0, X.shape[1])))
    want = in_float64(jitted_walk, repeated, *given)
    got = in_float64(jitted_walk, weighted, *given)
    for quantity in want.keys() - {"carried"}:  # that has one entry for each sample
        all_close(got[quantity], want[quantity], 1e-13)


RUNS = {
    "squared": (cfgd.LinearModel, Y, {"loss": "squared"}),
    "logistic": (cfgd.LinearModel, LABELS, {}),
    "least squares": (cfgd.LeastSquares, Y, {}),
}


@pytest.mark.parametrize(("make", "y", "more"), quick(RUNS, ["logistic"]))
def test_runs_on_dense_and_sparse_designs_are_equal(make, y, more):
    ends = {
        kind: cfgd.minimize(
            make(form(X), y, l2=L2, sample_weight=WEIGHTS, **more),
            W0,
            cfgd.AdaptiveTerminal(gamma=-0.1, nodes=4),
            max_iterations=12,
            callback=look_on,
        )
        for kind, form in FORMATS.items()
    }
    for kind in ("csr", "csc"):
        for name in ("iteration", "value"):
            close(ends[kind].history[name], ends["dense"].history[name], 1e-10)
        close(ends[kind].x, ends["dense"].x, 1e-9)
        assert ends[kind].evaluations == ends["dense"].evaluations


STORED = {
    "csr with duplicates": scipy.sparse.csr_matrix(
        (np.array([1.0, 2, 0.5, -1]), np.array([0, 0, 1, 0]), np.array([0, 2, 3, 4])), (3, 2)
    ),
    "csc with duplicates": scipy.sparse.csc_matrix(
        (np.array([1.0, 2, 0.5, -1]), np.array([1, 1, 0, 2]), np.array([0, 2, 4])), (3, 2)
    ),
    "csr without order": scipy.sparse.csr_matrix(
        (np.array([1.0, 2, 0.5]), np.array([1, 0, 1]), np.array([0, 2, 2, 3])), (3, 2)
    ),
    "coo with duplicates": scipy.sparse.coo_array(
        (np.array([1.0, 2, 0.5, -3]), (np.array([2, 2, 0, 1]), np.array([1, 1, 0, 0]))), (3, 2)
    ),
    "bool": scipy.sparse.csr_array(np.array([[True, False], [False, True], [False, True]])),
}


@pytest.mark.parametrize("sparse", STORED.values(), ids=STORED)
def test_however_a_sparse_design_is_stored(sparse):
    x, y, stored = np.array([0.4, -1.1]), np.array([1.0, 0.0, 1.0]), sparse.nnz
    given = x, np.stack([x + 0.5, x - 2]), np.array([1.0, 0.3]), np.array([0.1]), None
    chunked = eqx.filter_jit(chunked_of)
    looked = in_float64(chunked, cfgd.LinearModel(sparse, y), *given)
    all_close(looked, in_float64(chunked, cfgd.LinearModel(sparse.toarray(), y), *given), 1e-14)
    assert sparse.nnz == stored  # what the user gave is left as it was


ZERO = X.copy()
ZERO[:, 1] = 0.0
ZERO_ROWS = {
    f"{loss}, dense": cfgd.LinearModel(ZERO, row.y, row.given) for loss, row in LOSSES.items()
} | {
    "logistic 0/1, csr": cfgd.LinearModel(FORMATS["csr"](ZERO), LABELS),
    "least squares, dense": cfgd.LeastSquares(ZERO, Y),
    "least squares, csr": cfgd.LeastSquares(FORMATS["csr"](ZERO), Y),
}


ZEROS = ["poisson, dense", "logistic 0/1, csr", "least squares, dense", "least squares, csr"]


@pytest.mark.parametrize("objective", quick(ZERO_ROWS, ZEROS))
def test_an_all_zero_column_has_no_slope_and_no_curvature(objective):
    """So its coordinate keeps the gradient step; test_fits.py has the runs."""
    seen = in_float64(jitted_walk, objective, *arguments(Case(objective, None, W0)))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(seen))
    for quantity in ("slopes", "curvatures", "diagonal_at"):
        np.testing.assert_array_equal(seen[quantity][..., 1], 0)


def test_an_all_zero_column_with_a_penalty_has_the_curvature_of_the_penalty():
    f = cfgd.LinearModel(ZERO, LABELS, l2=L2)
    given = arguments(Case(f, None, W0))
    seen = in_float64(jitted_walk, f, *given)
    np.testing.assert_allclose(seen["slopes"][:, 1], L2 * given[1][:, 1], rtol=1e-14)
    np.testing.assert_allclose(seen["curvatures"][:, 1], L2, rtol=1e-14)


# ---------------------------------------------------------------------------- networks

N = cfgd.ShallowNetwork(np.array([0.5, -1.0]), np.zeros(2), width=2)
N3 = cfgd.ShallowNetwork(np.array([[0.5, -1.0, 2.0], [1.0, 0.0, 3.0]]), np.zeros(2), width=2)
# (network, x, hidden weights, biases, output weights)
LAYOUTS = {
    "p = 1": (N, np.arange(1.0, 7), [[1, 2]], [3, 4], [5, 6]),
    "p = 3": (N3, np.arange(1.0, 11), [[1, 2], [3, 4], [5, 6]], [7, 8], [9, 10]),
}


@pytest.mark.parametrize(("net", "x", "a_1", "a_2", "a_3"), LAYOUTS.values(), ids=LAYOUTS)
def test_x_holds_a_1_then_a_2_then_a_3(net, x, a_1, a_2, a_3):
    parameters = net.parameters(x)
    np.testing.assert_array_equal(parameters.hidden_weights, a_1)
    np.testing.assert_array_equal(parameters.biases, a_2)
    np.testing.assert_array_equal(parameters.output_weights, a_3)
    assert net.dimension == x.size
    assert net.hidden == x.size - 2


def test_predict_is_the_formula_of_the_paper():
    a = np.array([0.3, -0.7, 0.2, 1.1, 2.0, -1.5])
    z = np.array([0.9, -0.4, 0.0])
    want = 2.0 * np.tanh(0.3 * z + 0.2) - 1.5 * np.tanh(-0.7 * z + 1.1)
    np.testing.assert_allclose(N.predict(a, z), want, rtol=1e-13)
    np.testing.assert_allclose(N.predict(list(a), list(z)), want, rtol=1e-13)


def test_predict_takes_inputs_of_several_numbers():
    a = np.cos(np.arange(10.0))
    z = np.array([[0.9, -0.4, 0.1], [0.2, 0.3, -1.0], [0.0, 0.0, 1.0]])
    want = np.tanh(z @ a[:6].reshape(3, 2) + a[6:8]) @ a[8:]
    np.testing.assert_allclose(N3.predict(a, z), want, rtol=1e-13)


WIDE = cfgd.ShallowNetwork(np.zeros(3), np.zeros(3), width=20_000)
STARTS = {  # scale, deviation of the hidden layer, deviation of the output layer
    "standard normal": (1.0, 1.0, 1.0),
    "one number": (0.3, 0.3, 0.3),
    "the other documented start": ((5.0, 0.02**0.5), 5.0, 0.02**0.5),
}


@pytest.mark.parametrize(("scale", "hidden", "output"), STARTS.values(), ids=STARTS)
def test_starts_are_normal_with_the_documented_deviations(scale, hidden, output):
    x = WIDE.init(7, scale)
    for part, deviation in [(x[:20_000], hidden), (x[20_000:40_000], hidden), (x[40_000:], output)]:
        part = part / deviation
        # four standard errors of the first four moments of 20,000 standard normal numbers
        error = 4 / np.sqrt(part.size)
        assert abs(np.mean(part)) < error
        assert abs(np.mean(part**2) - 1) < np.sqrt(2) * error
        assert abs(np.mean(part**3)) < np.sqrt(15) * error
        assert abs(np.mean(part**4) - 3) < np.sqrt(96) * error


def test_a_start_is_the_one_of_its_key():
    np.testing.assert_array_equal(N.init(3), N.init(3))
    np.testing.assert_array_equal(N.init(3), N.init(jax.random.key(3)))
    np.testing.assert_array_equal(N.init(3), N.init(np.int64(3)))
    np.testing.assert_allclose(
        N.init(3, (2.0, 0.5)), N.init(3) * [2, 2, 2, 2, 0.5, 0.5], rtol=1e-15
    )
    assert np.min(np.abs(N.init(3) - N.init(4))) > 1e-3
    assert N.init(3).dtype == np.float64


def test_a_start_does_not_depend_on_the_configuration():
    off = N.init(3)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(N.init(3), off)


# ---------------------------------------------------------------------------- precision

Z9, Y9 = np.linspace(-1, 1, 9), np.cos(np.arange(9.0))


def all_of(dtype):
    """Every kind of objective with data of one precision."""
    x, y, w = X.astype(dtype), Y.astype(dtype), WEIGHTS.astype(dtype)
    sparse = scipy.sparse.csr_array(x)
    net = cfgd.ShallowNetwork(Z9.astype(dtype), Y9.astype(dtype), 2)
    return {
        "least squares": cfgd.LeastSquares(x, y, L2, w),
        "least squares, csr": cfgd.LeastSquares(sparse, y, L2),
        "logistic": cfgd.LinearModel(x, LABELS.astype(dtype), "logistic", L2, w),
        "poisson, csr": cfgd.LinearModel(sparse, COUNTS.astype(dtype), "poisson"),
        "huber": cfgd.LinearModel(x, y, "huber", L2),
        "custom": cfgd.LinearModel(x, y, rounded),
        "network": net,
        "local": cfgd.Local(cfgd.LinearModel(x, y, "huber")),
        "local, gauss_newton": cfgd.Local(net, "gauss_newton"),
        "local, hutchinson": cfgd.Local(net, "hutchinson", probes=2, key=1),
        "local, function": cfgd.Local(wave, "hutchinson", key=1),
        "smooth": cfgd.Smooth(wave),
    }


def point_for(objective, dtype):
    return np.cos(1.0 + np.arange(objective.dimension or 2)).astype(dtype)


PRECISE = all_of(np.float64)


PRECISELY = ["least squares, csr", "logistic", "custom", "network", "local, hutchinson", "smooth"]


@pytest.mark.parametrize("name", quick({name: name for name in PRECISE}, PRECISELY))
def test_float64_numpy_in_float64_numpy_out(name):
    assert not jax.config.jax_enable_x64
    f = PRECISE[name]
    x = point_for(f, np.float64)
    for result in (f.value(x), f.gradient(x)):
        assert isinstance(result, np.ndarray | np.generic)
        assert result.dtype == np.float64
        assert np.any(result != result.astype(np.float32))  # nor rounded on the way
    assert not jax.config.jax_enable_x64


RUN_IN = {
    "logistic": lambda X, y: cfgd.LinearModel(X, y),
    "local": lambda X, y: cfgd.Local(cfgd.LinearModel(X, y), "hutchinson", key=1),
}


@pytest.mark.parametrize("make", quick(RUN_IN, ["local"]))
def test_a_run_in_float32_stays_in_float32(make):
    """test_fits.py has the runs in float64."""
    f = make(X.astype(np.float32), LABELS.astype(np.float32))
    method = cfgd.AdaptiveTerminal(gamma=-0.1, nodes=4)
    end = cfgd.minimize(f, W0.astype(np.float32), method, max_iterations=12)
    assert isinstance(end.x, np.ndarray)
    assert end.x.dtype == np.float32
    assert end.value < end.history["value"][0]


INTEGERS = LABELS.astype(int)
SINGLE = all_of(np.float32) | {
    "integer labels": cfgd.LinearModel(X.astype(np.float32), INTEGERS),
    "bool labels, csr": cfgd.LinearModel(FORMATS["csr"](X.astype(np.float32)), INTEGERS == 1),
    "integer weights": cfgd.LeastSquares(X.astype(np.float32), Y.astype(np.float32), 0.5, TIMES),
    "integer targets": cfgd.ShallowNetwork(Z9.astype(np.float32), np.arange(9), 2),
    "nothing stored": cfgd.LinearModel(
        scipy.sparse.csr_array((11, 4), dtype=np.float32), Y.astype(np.float32), "huber", 0.1
    ),
}


SINGLY = [*PRECISELY, "integer labels", "bool labels, csr", "integer weights", "nothing stored"]


@pytest.mark.parametrize("name", quick({name: name for name in SINGLE}, SINGLY))
def test_float32_stays_float32(name):
    f = SINGLE[name]
    x = point_for(f, np.float32)
    gradient = f.gradient(x)
    assert isinstance(gradient, np.ndarray)
    assert gradient.dtype == np.float32
    if name in PRECISE:
        close(gradient, PRECISE[name].gradient(x.astype(np.float64)), 1e-4)


# ---------------------------------------------------------------------------- transformations

KINDS = {
    "quadratic": "quadratic",
    "smooth": "smooth",
    "least squares": "least squares, weights, l2",
    "least squares, csr": "least squares, csr, weights, l2",
    "logistic": "logistic 0/1, dense, weights, l2",
    "poisson, csr": "poisson, csr, weights, l2",
    "custom": "custom, dense, weights, l2",
    "network": "network, tanh, p = 3",
}


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


PLAIN = {name: (CASES[name].objective, jax.jit) for name in KINDS.values()} | {
    # those that hold a function of the user have a leaf that only filter_jit takes
    "smooth": (CASES["smooth"].objective, eqx.filter_jit),
    KINDS["custom"]: (CASES[KINDS["custom"]].objective, eqx.filter_jit),
}
TRANSFORMED = {kind: (name, *PLAIN[name]) for kind, name in KINDS.items()} | {
    "local, smooth": ("smooth", cfgd.Local(wave), eqx.filter_jit),
    "local, network": (KINDS["network"], cfgd.Local(CASES[KINDS["network"]].objective), jax.jit),
}


JITTED = ["quadratic", "least squares, csr", "logistic", "custom", "network", "local, smooth"]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("name", "f", "jit"), quick(TRANSFORMED, JITTED))
def test_objectives_are_pytrees_whose_values_have_grad_and_vmap_under_jit(name, f, jit):
    case = CASES[name]
    xs = jnp.stack([case.x - 0.4, case.x])

    def of(f, xs):
        return jax.vmap(jax.value_and_grad(f.value))(xs), jax.vmap(f.gradient)(xs)

    (values, by_grad), gradients = jit(of)(f, xs)
    assert isinstance(values, jax.Array)
    close(values[1], reference(name)["value"])
    close(by_grad[1], reference(name)["gradient"])
    close(gradients[1], reference(name)["gradient"])
    close(values[0], case.fn(xs[0]))
    close(gradients[0], by_grad[0])
    close(f.value(xs[1]), values[1])


TARGET_ROWS = {
    "least squares": (lambda y: cfgd.LeastSquares(X, y, L2), Y, None),
    "least squares, csr": (lambda y: cfgd.LeastSquares(FORMATS["csr"](X), y), Y, None),
    "squared": (lambda y: cfgd.LinearModel(X, y, "squared"), Y, None),
    "poisson": (lambda y: cfgd.LinearModel(X, y, "poisson", L2), COUNTS, COUNTS + 1),
    "huber, csr": (lambda y: cfgd.LinearModel(FORMATS["csr"](X), y, "huber"), Y, None),
    "custom": (lambda y: cfgd.LinearModel(X, y, rounded), Y, None),
    "logistic -1/1": (lambda y: cfgd.LinearModel(X, y), SIGNS, -SIGNS),
    "logistic 0/1": (lambda y: cfgd.LinearModel(X, y), LABELS, 1 - LABELS),
    "network": (lambda y: cfgd.ShallowNetwork(X, y, 2), Y, None),
}


MAPPED = ["least squares, csr", "poisson", "logistic -1/1", "logistic 0/1", "network"]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("make", "y", "other"), quick(TARGET_ROWS, MAPPED))
def test_vmap_over_targets(make, y, other):
    """Objectives made inside vmap, where targets are traced, are those made outside."""
    ys = np.stack([y, y[::-1] - 0.5 if other is None else other])
    x = np.cos(1.0 + np.arange(make(y).dimension))

    def both(y):
        f = make(y)
        return f.value(x), f.gradient(x)

    got = jax.jit(jax.vmap(both))(ys)
    outside = eqx.filter_jit(lambda f, x: (f.value(x), f.gradient(x)))
    for row in (0, 1):
        all_close(jax.tree.map(lambda leaf, row=row: leaf[row], got), outside(make(ys[row]), x))


@pytest.mark.usefixtures("x64")
def test_vmap_over_an_objective():
    f = cfgd.LinearModel(X, COUNTS, "poisson", L2, WEIGHTS)
    ys = jnp.stack([COUNTS, COUNTS + 1, 2 * COUNTS])
    many = eqx.tree_at(lambda f: f.y, f, ys)
    axes = eqx.tree_at(lambda f: f.y, jax.tree.map(lambda _: False, f), True)
    axes = jax.tree.map(lambda batched: 0 if batched else None, axes)
    got = jax.vmap(lambda f: f.gradient(jnp.asarray(W0)), in_axes=(axes,))(many)
    for row in range(3):
        close(got[row], cfgd.LinearModel(X, ys[row], "poisson", L2, WEIGHTS).gradient(W0))


@pytest.mark.usefixtures("x64")
def test_values_have_derivatives_in_the_data_too():
    def value(y, X, l2, weights):
        return cfgd.LinearModel(X, y, "squared", l2, weights).value(jnp.asarray(W0))

    y, design, l2, weights = jax.jit(jax.grad(value, argnums=(0, 1, 2, 3)))(Y, X, L2, WEIGHTS)
    residual = X @ W0 - Y
    close(y, -WEIGHTS * residual)
    close(design, np.outer(WEIGHTS * residual, W0))
    close(l2, W0 @ W0 / 2)
    close(weights, residual**2 / 2)
