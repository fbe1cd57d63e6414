"""What users hand in and get is theirs alone: writing into it changes no run, to the bit."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.optimize import rosen, rosen_der, rosen_hess

import cfgd
from cfgd.integrations.scipy import auto, least_squares

RNG = np.random.default_rng(7)
DATA = RNG.normal(size=(12, 3))
TARGETS = DATA @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=12)
LABELS = (TARGETS > 0).astype(float)
WEIGHTS = RNG.uniform(0.5, 2.0, size=12)
START = np.array([0.3, 0.1, -0.4])
NETWORK_START = RNG.normal(size=8)
ADAPTIVE = cfgd.AdaptiveTerminal(gamma=-0.2)


def overwrite(tree):
    """Write a number into every array of a tree that can be written into."""
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, np.ndarray) and leaf.flags.writeable:
            leaf[...] = 7


def bits(solution):
    """Return all that a run computed, without its times."""
    fields = solution.x, solution.value, solution.gradient_norm, solution.history
    numbers = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(fields)]
    return numbers, solution.iterations, solution.status, solution.message


# name: (makes an objective and a method of the inputs, which are copies; the inputs; a start)
CASES = {
    "Quadratic": (
        lambda A, b, constant: (cfgd.Quadratic(A, b, constant), None),
        {"A": DATA.T @ DATA, "b": START, "constant": np.array(2.0)},
        START,
    ),
    "Quadratic, Fractional": (
        lambda A, b, eta, alpha, past: (
            cfgd.Quadratic(A, b),
            cfgd.AdaptiveTerminal(alpha, gamma=-0.2, lag=1, past=past, step=cfgd.FixedStep(eta)),
        ),
        {
            "A": DATA.T @ DATA,
            "b": START,
            "eta": np.full(3, 0.01),
            "alpha": np.full(3, 0.4),
            "past": START[None] + 1,
        },
        START,
    ),
    "Quadratic, a fixed terminal and stages": (
        lambda A, b, terminal, beta: (
            cfgd.Quadratic(A, b),
            cfgd.AdaptiveOrder([cfgd.Stage(5, beta=beta), cfgd.Stage(9, gamma=0.0)], terminal),
        ),
        {"A": DATA.T @ DATA, "b": START, "terminal": START + 1, "beta": np.full(3, 1.5)},
        START,
    ),
    "LeastSquares": (
        lambda X, y, l2, w: (cfgd.LeastSquares(X, y, l2, w), None),
        {"X": DATA, "y": TARGETS, "l2": np.array(0.1), "w": WEIGHTS},
        START,
    ),
    "LeastSquares, compiled": (
        lambda X, y, w: (cfgd.LeastSquares(X, y, 0.0, w), ADAPTIVE),
        {"X": DATA, "y": TARGETS, "w": WEIGHTS},
        START,
    ),
    "LeastSquares, sparse": (
        lambda X, y: (cfgd.LeastSquares(X, y), None),
        {"X": scipy.sparse.csr_array(DATA), "y": TARGETS},
        START,
    ),
    "LinearModel": (
        lambda X, y, l2, w, offset: (
            cfgd.LinearModel(X, y, "logistic", l2, w, intercept=True, offset=offset),
            None,
        ),
        {"X": DATA, "y": LABELS, "l2": np.full(3, 0.2), "w": WEIGHTS, "offset": TARGETS / 9},
        np.zeros(4),
    ),
    "LinearModel, multinomial": (
        lambda X, y: (cfgd.LinearModel(X, y, "multinomial", 0.3), None),
        {"X": DATA, "y": LABELS},
        np.zeros((3, 2)),
    ),
    "Residuals": (
        lambda t, y, w, scale: (
            cfgd.Residuals(residuals, "huber", scale=scale, weights=w, args=(t, {"y": y})),
            None,
        ),
        {"t": DATA[:, 0], "y": TARGETS, "w": WEIGHTS, "scale": np.array(0.7)},
        START,
    ),
    "Smooth": (
        lambda centre: (cfgd.Smooth(bowl, args=(centre,)), None),
        {"centre": START + 1},
        START,
    ),
    "ShallowNetwork": (
        lambda z, y: (cfgd.ShallowNetwork(z, y, 2), None),
        {"z": DATA[:, :2], "y": TARGETS},
        NETWORK_START,
    ),
    "Local": (
        lambda A, b, key: (
            cfgd.Local(cfgd.Quadratic(A, b), "hutchinson", probes=2, key=key),
            ADAPTIVE,
        ),
        {"A": DATA.T @ DATA, "b": START, "key": np.array([3, 4], np.uint32)},
        START,
    ),
    "External": (lambda: (cfgd.External(rosen, rosen_der, rosen_hess), None), {}, START),
}


def residuals(p, t, more):
    return p[0] * jnp.exp(p[1] * t) + p[2] - more["y"]


def bowl(x, centre):
    return jnp.sum((x - centre) ** 4 + (x - centre) ** 2)


@pytest.mark.parametrize("name", CASES)
def test_inputs_and_outputs_of_an_objective(name):
    make, inputs, start = CASES[name]
    # a callback, even one that does nothing, makes chunks of other lengths
    options = {"max_iterations": 14, "record": {"x": lambda x: x}, "callback": lambda so_far: None}
    wanted = bits(cfgd.minimize(*insert_start(make(**copy.deepcopy(inputs)), start), **options))
    mine = copy.deepcopy(inputs)
    objective, method = make(**mine)
    for each in mine.values():
        overwrite(each.data if scipy.sparse.issparse(each) else each)
    x0 = start.copy()
    first = cfgd.minimize(objective, x0, method, **options)
    assert bits(first) == wanted
    overwrite((first.x, first.history, x0))
    if objective.on_host() is not None:
        x = np.ravel(start).copy()
        host = objective.on_host()
        at = host.evaluate(x)
        curvature = host.curvature(at)
        overwrite((at, host.hessian_times(at, x)))
        overwrite(None if curvature is None else (curvature.diagonal(), curvature.times(x)))
    overwrite((objective.gradient(start), objective.value(start)))

    def write(so_far):
        overwrite((so_far.x, so_far.history))

    options["callback"] = write
    assert bits(cfgd.minimize(objective, start, method, **options)) == wanted


def insert_start(made, start):
    objective, method = made
    return objective, start, method


@pytest.mark.parametrize(
    "method",
    [
        cfgd.Auto(),
        cfgd.Auto("levenberg_marquardt"),
        cfgd.GradientDescent(cfgd.ArmijoStep()),
    ],
)
def test_a_callback_may_write_into_what_it_gets(method):
    def write(so_far):
        overwrite((so_far.x, so_far.history))
        so_far.history.clear()

    f = cfgd.External(rosen, rosen_der, rosen_hess)
    wanted = cfgd.minimize(f, START, method, max_iterations=25)
    assert bits(cfgd.minimize(f, START, method, max_iterations=25, callback=write)) == bits(wanted)


def test_a_callback_of_a_sweep_and_its_error():
    f, starts = cfgd.Quadratic(DATA.T @ DATA, START), np.stack([START, 2 * START])

    def write(so_far):
        one = so_far[0]
        overwrite((one.x, one.history, so_far.x, so_far.history, so_far.value))

    wanted = cfgd.sweep(f, starts, cfgd.Auto())
    got = cfgd.sweep(f, starts, cfgd.Auto(), callback=write)
    np.testing.assert_array_equal(got.x, wanted.x)
    np.testing.assert_array_equal(got.history["value"], wanted.history["value"])
    overwrite((got[0].x, got[0].history))  # copies, too
    np.testing.assert_array_equal(got.x, wanted.x)
    np.testing.assert_array_equal(got.history["value"], wanted.history["value"])

    def write_and_fail(so_far):
        overwrite((so_far.x, so_far.history))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        cfgd.minimize(cfgd.External(rosen, rosen_der), START, callback=write_and_fail)
    assert raised.value.solution.value == rosen(raised.value.solution.x)


class Reuses:
    """Rosenbrock's function that returns the same buffers, and writes into its argument."""

    def __init__(self, d):
        self.f, self.g, self.H, self.p = np.zeros(()), np.zeros(d), np.zeros((d, d)), np.zeros(d)

    def value(self, x):
        self.f[...] = rosen(x)
        x[:] = 5
        return self.f

    def gradient(self, x):
        self.g[:] = rosen_der(x)
        x[:] = 6
        return self.g

    def both(self, x):
        return self.value(x.copy()), self.gradient(x)

    def hessian(self, x):
        self.H[:] = rosen_hess(x)
        x[:] = 8
        return self.H

    def product(self, x, v):
        self.p[:] = rosen_hess(x) @ v
        x[:] = v[:] = 9
        return self.p


MINE = Reuses(3)
# those that return the same buffers, and those that do not
PAIRS = {
    "value and gradient": ([MINE.value, MINE.gradient], [rosen, rosen_der]),
    "both at once": ([MINE.both], [rosen, rosen_der]),
    "with a Hessian": ([MINE.value, MINE.gradient, MINE.hessian], [rosen, rosen_der, rosen_hess]),
}


def assert_same_runs(method, mine, clean):
    one, other = (
        cfgd.minimize(cfgd.External(*functions), START, method, max_iterations=60)
        for functions in (mine, clean)
    )
    assert bits(one) == bits(other)


@pytest.mark.every_case
@pytest.mark.parametrize(("mine", "clean"), PAIRS.values(), ids=PAIRS)
def test_an_external_function_that_returns_the_same_buffers(mine, clean):
    assert_same_runs(None, mine, clean)


@pytest.mark.one_case
@pytest.mark.parametrize(("mine", "clean"), PAIRS.values(), ids=PAIRS)
def test_an_external_function_that_returns_the_same_buffers_to_a_compiled_loop(mine, clean):
    assert_same_runs(cfgd.GradientDescent(cfgd.ArmijoStep()), mine, clean)


@pytest.mark.every_case
@pytest.mark.parametrize("names", [("gradient",), (), ("gradient", "hessian")])
def test_scipy_functions_that_return_the_same_buffers(names):
    clean = {"gradient": rosen_der, "hessian": rosen_hess}
    as_scipy = {"gradient": "jac", "hessian": "hess"}
    mine, wanted = Reuses(3), None
    wanted, got = (
        scipy.optimize.minimize(
            fun,
            START,
            method=auto,
            options={"maxiter": 30},
            callback=lambda xk: overwrite(xk),
            **{as_scipy[name]: of(name) for name in names},
        )
        for fun, of in ((rosen, clean.get), (mine.value, lambda name: getattr(mine, name)))
    )
    np.testing.assert_array_equal(got.x, wanted.x)
    np.testing.assert_array_equal(got.jac, wanted.jac)
    assert got.fun == wanted.fun
    assert got.nit == wanted.nit


def test_scipy_products_and_residuals_that_return_the_same_buffers():
    from cfgd.integrations.scipy import adaptive_terminal

    mine, options = Reuses(3), {"maxiter": 5}
    both = [
        scipy.optimize.minimize(
            rosen, START, jac=rosen_der, hessp=hessp, method=adaptive_terminal, options=options
        )
        for hessp in (lambda x, v: rosen_hess(x) @ v, mine.product)
    ]
    np.testing.assert_array_equal(both[0].x, both[1].x)
    buffer, rows = np.zeros(2), np.zeros((2, 2))

    def fun(x):
        return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])

    def jac(x):
        return np.array([[-20 * x[0], 10.0], [-1.0, 0.0]])

    def reuse_fun(x):
        buffer[:] = fun(x)
        x[:] = 4
        return buffer

    def reuse_jac(x):
        rows[:] = jac(x)
        x[:] = 4
        return rows

    x0 = np.array([-1.2, 1.0])
    for clean, reusing in ((jac, reuse_jac), ("2-point", "2-point")):
        wanted, got = least_squares(fun, x0, clean), least_squares(reuse_fun, x0, reusing)
        np.testing.assert_array_equal(got.x, wanted.x)
        np.testing.assert_array_equal(got.jac, wanted.jac)
        np.testing.assert_array_equal(got.fun, wanted.fun)
    np.testing.assert_array_equal(x0, [-1.2, 1.0])


def test_the_point_of_a_failed_scipy_run_is_not_the_start():
    x0 = np.array([1.0, 2.0])
    result = scipy.optimize.minimize(lambda x: np.nan, x0, jac=lambda x: x, method=auto)
    assert not np.shares_memory(result.x, x0)


def test_read_only_arrays_and_memory_mapped_files_are_not_copied(tmp_path):
    """Nobody can write into the first, and the second may not fit into memory."""
    X = DATA.copy()
    assert not np.shares_memory(cfgd.LinearModel(X, LABELS).X.X, X)
    X.flags.writeable = False
    assert cfgd.LinearModel(X, LABELS).X.X is X
    view = DATA.copy()[:]
    view.flags.writeable = False  # its base can still be written into
    assert not np.shares_memory(cfgd.LinearModel(view, LABELS).X.X, view)
    np.save(tmp_path / "X.npy", DATA)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r+")
    assert np.shares_memory(cfgd.LinearModel(mapped, LABELS).X.X, mapped)
    with pytest.raises(ValueError, match="read-only"):
        cfgd.Quadratic(np.eye(2), [1.0, 2.0]).A[0, 0] = 3
