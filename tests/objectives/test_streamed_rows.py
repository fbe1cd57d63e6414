"""Streamed rows: the answers of data in memory, in few passes and bounded memory."""

import functools
import re
import subprocess
import sys
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import cfgd
from cfgd.objectives.linear import stream

random = np.random.default_rng(7)
X = random.normal(size=(500, 4)) * [1.0, 3.0, 0.2, 1.0] + [0.5, 0, 0, 0]
SCORE = X @ [1.0, -0.3, 2.0, 0.5] - 0.4
TARGETS = {
    "logistic": (SCORE + random.logistic(size=500) > 0).astype(float),
    "squared": SCORE + 0.3 * random.normal(size=500),
    "poisson": random.poisson(np.exp(np.clip(SCORE, -3, 3))).astype(float),
    "gamma": random.gamma(2.0, np.exp(np.clip(SCORE, -3, 3))) + 1e-3,
    "huber": SCORE + random.standard_cauchy(size=500),
    "multinomial": np.digitize(SCORE + 2 * random.normal(size=500), [-1.0, 1.0]).astype(float),
}
WEIGHT, OFFSET = random.integers(0, 4, size=500).astype(float), random.normal(size=500) / 3
SMALL = 8 * 8 * 4 * 140  # bytes: blocks of 140 rows


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", TARGETS)
def test_value_and_minimiser_are_those_of_the_linear_model(loss, intercept):
    y, l2 = TARGETS[loss], 0.7
    offset = OFFSET if loss != "multinomial" else np.outer(OFFSET, [1.0, 0.0, -2.0])
    given = {"sample_weight": WEIGHT, "offset": offset, "intercept": intercept}
    ours = cfgd.Blocks(X, y, loss, l2, memory=SMALL, **given)
    core = cfgd.LinearModel(X, y, loss, l2, **given)
    assert ours.shape == core.shape
    w = random.normal(size=core.shape) / 3
    assert ours.value(w) == pytest.approx(core.value(w), rel=1e-12)
    streamed, in_memory = (cfgd.minimize(f, np.zeros(core.shape)) for f in (ours, core))
    assert streamed.success
    assert in_memory.success
    np.testing.assert_allclose(streamed.x, in_memory.x, rtol=1e-5, atol=1e-7)
    assert streamed.value == pytest.approx(in_memory.value, rel=1e-10)


@pytest.mark.one_case
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_hessian_and_gradient_are_those_of_jax(loss, kind):
    y = TARGETS[loss].astype(int)

    def f(w):
        p = X @ w[:4] + w[4]
        if loss == "multinomial":
            each = jax.nn.logsumexp(p, 1) - p[np.arange(500), y]
        else:
            each = jnp.logaddexp(0, p) - y * p
        return WEIGHT @ each + 0.7 / 2 * jnp.sum(w[:4] ** 2)

    ours = cfgd.Blocks(kind(X), y, loss, 0.7, WEIGHT, intercept=True, memory=SMALL)
    w = np.sin(np.arange(float(ours.dimension))).reshape(ours.shape)
    with jax.enable_x64(True):
        # compiled: one by one the operations of a Hessian take much longer
        H = jax.jit(jax.hessian(f))(w).reshape(2 * (ours.dimension,))
        np.testing.assert_allclose(ours.stream.hessian(w), H, rtol=1e-9, atol=1e-9)
        gradient = ours.stream.value_and_gradient(w)[1]
        np.testing.assert_allclose(gradient, jax.jit(jax.grad(f))(w), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", TARGETS)
def test_evaluations_are_passes(loss):
    f = cfgd.Blocks(X, TARGETS[loss], loss, 1e-3, intercept=True, memory=SMALL)
    before = f.passes
    solution = cfgd.minimize(f, np.zeros(f.shape))
    assert solution.success
    assert f.passes - before == solution.evaluations <= 20


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_covariance_is_that_of_the_linear_model(loss):
    """Rows of weight zero are no samples, and do not reduce the variance of the residuals."""
    given = {"sample_weight": WEIGHT, "intercept": True}
    models = (
        cfgd.Blocks(X, TARGETS[loss], loss, memory=SMALL, **given),
        cfgd.LinearModel(X, TARGETS[loss], loss, **given),
    )
    ours, theirs = (cfgd.minimize(f, np.zeros(5), tolerance=1e-12).covariance() for f in models)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_several_classes_without_a_penalty_converge():
    f = cfgd.Blocks(X, TARGETS["multinomial"], "multinomial", intercept=True, memory=SMALL)
    core = cfgd.LinearModel(X, TARGETS["multinomial"], "multinomial", intercept=True)
    ours, theirs = (cfgd.minimize(f, np.zeros((5, 3))) for f in (f, core))
    assert ours.success
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        *((None, loss) for loss in ("logistic", "poisson", "multinomial")),
        *(("levenberg_marquardt", loss) for loss in ("logistic", "poisson", "multinomial")),
    ],
)
def test_without_a_matrix_products_and_gradients_take_a_pass_each(monkeypatch, loss, solver):
    monkeypatch.setattr(stream, "MAX_COEFFICIENTS", 3)
    f = cfgd.Blocks(X, TARGETS[loss], loss, 0.7, WEIGHT, memory=SMALL)
    before = f.passes
    solution = cfgd.minimize(f, np.zeros(f.shape), cfgd.Auto(solver))
    assert solution.success
    assert ("L-BFGS" in repr(solution)) == (solver is None)
    assert f.passes - before == solution.evaluations
    assert f.passes - before < 100
    core = cfgd.LinearModel(X, TARGETS[loss], loss, 0.7, WEIGHT)
    exact = cfgd.minimize(core, np.zeros(f.shape))
    np.testing.assert_allclose(solution.x, exact.x, rtol=1e-5)


def test_products_are_those_of_the_matrix(monkeypatch):
    whole = cfgd.Blocks(X, TARGETS["multinomial"], "multinomial", 0.7, WEIGHT, intercept=True)
    monkeypatch.setattr(stream, "MAX_COEFFICIENTS", 3)
    f = cfgd.Blocks(X, TARGETS["multinomial"], "multinomial", 0.7, WEIGHT, intercept=True)
    w, v = np.sin(np.arange(15.0)), np.cos(np.arange(15.0))
    H = whole.stream.hessian(w)
    np.testing.assert_allclose(f.stream.hessian_times(w, v), H @ v, rtol=1e-10)
    np.testing.assert_allclose(f.stream.diagonal(w), H.diagonal(), rtol=1e-10)


def test_a_hessian_that_exceeds_the_memory_is_not_formed():
    wide, y = random.normal(size=(300, 100)), TARGETS["logistic"][:300]
    assert cfgd.Blocks(wide, y, memory=1.5e6).stream.model.has_matrix
    assert not cfgd.Blocks(wide, y, memory=1.2e6).stream.model.has_matrix


def test_many_columns_take_few_passes():
    """Singular values fall as 1/k, for which L-BFGS takes hundreds of passes."""
    d = 400
    mixed = np.linalg.qr(random.normal(size=(d, d)))[0]
    wide = (random.normal(size=(600, d)) / np.arange(1, d + 1)) @ mixed
    y = (wide @ random.normal(size=d) + random.logistic(size=600) / 5 > 0).astype(float)
    f = cfgd.Blocks(wide, y, l2=1e-5)
    before = f.passes
    solution = cfgd.minimize(f, np.zeros(d))
    assert solution.success
    assert f.passes - before <= 20
    few = random.normal(size=(64, 1400))
    assert cfgd.Blocks(few, y[:64]).stream.model.has_matrix  # with the default memory


@pytest.mark.slow
def test_the_papers_methods_converge_on_streamed_rows():
    f = cfgd.Blocks(X, TARGETS["squared"], "squared", memory=SMALL)
    local, before = cfgd.Local(f, "exact"), f.passes
    solution = cfgd.minimize(local, np.zeros(4), cfgd.AdaptiveTerminal(gamma=-0.2), tolerance=1e-5)
    assert solution.success
    assert f.passes - before <= solution.evaluations + 10
    np.testing.assert_allclose(
        solution.x, np.linalg.lstsq(X, TARGETS["squared"], rcond=None)[0], rtol=1e-3
    )


@pytest.mark.parametrize("most", [3, 100])
def test_a_resumed_run_is_bitwise_the_same(tmp_path, monkeypatch, most):
    """With L-BFGS, where the Hessian has too many columns, and with Levenberg-Marquardt."""
    monkeypatch.setattr(stream, "MAX_COEFFICIENTS", most)
    options = {"tolerance": 1e-12}

    def run(**more):
        f = cfgd.Blocks(X, TARGETS["poisson"], "poisson", 0.1, intercept=True, memory=SMALL)
        return cfgd.minimize(f, np.zeros(5), **options | more)

    whole = run()
    for stop in (1, 3, 100):
        part = run(max_iterations=stop, checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(part.x, whole.x)
    assert (part.value, part.iterations) == (whole.value, whole.iterations)
    np.testing.assert_array_equal(part.history["value"], whole.history["value"])
    other = cfgd.Blocks(X[:400], TARGETS["poisson"][:400], "poisson", 0.1, intercept=True)
    with pytest.raises(ValueError, match="another one: its objective is"):
        cfgd.minimize(other, np.zeros(5), checkpoint=tmp_path / "run.npz", **options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memory_is_bounded_for_dense_rows(tmp_path, dtype):
    """Of 20 MB of rows no more than the stated 3 MB are in memory at a time."""
    m, d = 50_000, 50
    big = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", dtype, (m, d))
    for start in range(0, m, 10_000):
        big[start : start + 10_000] = random.normal(size=(10_000, d))
    y = (random.random(m) < 0.3).astype(float)
    del big
    tracemalloc.start()
    f = cfgd.Blocks(np.load(tmp_path / "X.npy", mmap_mode="r"), y, memory=3e6)
    value, _ = f.stream.value_and_gradient(np.full(d, 0.1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6
    whole = cfgd.LinearModel(np.load(tmp_path / "X.npy").astype(float), y)  # sums in float64
    assert value == pytest.approx(whole.value(np.full(d, 0.1)), rel=1e-12)


@pytest.mark.slow
def test_memory_is_bounded_for_sparse_rows():
    """9.6 MB of entries and indices, in blocks bounded by entries and not by columns."""
    big = scipy.sparse.random_array((20_000, 4000), density=0.01, rng=random, format="csr")
    y = (random.random(20_000) < 0.3).astype(float)
    tracemalloc.start()
    f = cfgd.Blocks(big, y, memory=3e6)
    f.stream.value_and_gradient(np.zeros(4000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6
    blocks = list(f.stream.engine.parts[0]())
    assert len(blocks) < 60
    assert sum(block.X.nnz for block in blocks) == big.nnz


FITTED = """
import re, sys
from pathlib import Path
import numpy as np
import cfgd

def resident(field="VmHWM"):
    return 1024 * int(re.search(rf"{field}:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

d, budget, kind = 100, 200e6, sys.argv[1]
w = np.sin(np.arange(d)) / 3

def some(k, rows=50_000):
    random = np.random.default_rng(k)
    X = random.standard_normal((rows, d))
    p = 1 / (1 + np.exp(-(X @ w)))
    return X, (random.random(rows) < p).astype(float)

def made():
    for k in range(50):  # 2 GB
        yield some(k)

cfgd.minimize(cfgd.Blocks(*some(0, 500)), np.zeros(d))  # imports and compiles what later runs share
if kind == "made":
    given = made, None
else:
    given = (np.load(Path(sys.argv[2]) / f"{name}.npy", mmap_mode="r") for name in "Xy")
Path("/proc/self/clear_refs").write_text("5")  # reset the peak
before = resident()
f = cfgd.Blocks(*given, memory=budget)
solution = cfgd.minimize(f, np.zeros(d))
print(solution.success, f.rows, f.passes, resident() - before, abs(solution.x - w).max())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
@pytest.mark.parametrize("kind", ["made", "file"])
def test_two_gigabytes_are_fitted_in_two_hundred_megabytes(tmp_path, kind):
    """The peak of resident memory, pages of the file included, minus that after a small fit."""
    if kind == "file":
        scope: dict = {}
        exec(FITTED[: FITTED.index("cfgd.minimize(")].replace("sys.argv[1]", "''"), scope)
        files = {"X": (2_500_000, 100), "y": (2_500_000,)}
        maps = [
            np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", float, shape)
            for name, shape in files.items()
        ]
        for k, block in enumerate(scope["made"]()):
            for whole, part in zip(maps, block, strict=True):
                whole[50_000 * k : 50_000 * (k + 1)] = part
        del maps
    ran = subprocess.run(
        [sys.executable, "-c", FITTED, kind, str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    success, rows, passes, grown, error = re.split(r"\s+", ran.stdout.strip())
    assert (success, rows) == ("True", "2500000")
    assert int(passes) < 12
    assert float(grown) < 200e6
    assert float(error) < 0.02  # 1 / sqrt(rows / 4) is 0.0013


def test_rows_at_odd_addresses_have_the_sums_of_all_others():
    """As arrays in a message of Dask: NumPy takes other products for them."""

    def moved(array):
        return np.frombuffer(bytes(4) + array.tobytes(), offset=4).reshape(array.shape)

    def block(X, y):
        yield X, y

    y, w = TARGETS["logistic"], np.array([0.3, -0.1, 0.2, 0.4])
    odd = moved(X), moved(y)
    assert not odd[0].flags.aligned
    sums = [
        cfgd.Blocks(functools.partial(block, *given), loss="logistic").stream.value_and_gradient(w)
        for given in ((X, y), odd)
    ]
    for ours, theirs in zip(*sums, strict=True):
        np.testing.assert_array_equal(ours, theirs)
