"""Runs in float32: the default tolerance, verdicts at the limit of rounding, the best point."""

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd.solve.history import settle_values

F = np.float32


def data(seed, rows=40, columns=4, dtype=F):
    """Return a random design and targets with noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, columns)) * 10 ** random.uniform(-1, 1, columns)
    y = X @ random.normal(size=columns) + random.normal(size=rows)
    return X.astype(dtype), y.astype(dtype)


def random_problem(kind, seed):
    """Return an objective in float32 and a start."""
    X, y = data(seed)
    zeros = np.zeros(4, F)
    if kind == "LeastSquares":
        return cfgd.LeastSquares(X, y), zeros
    if kind == "Quadratic":
        return cfgd.Quadratic(X.T @ X, -X.T @ y), zeros
    if kind == "Residuals":
        t = np.linspace(0, 4, 40, dtype=F)
        noise = np.random.default_rng(seed).normal(size=40)
        z = (3 * np.exp(-t) + 0.2 * noise).astype(F)
        fit = cfgd.Residuals(lambda p, t, z: p[0] * jnp.exp(-p[1] * t) - z, args=(t, z))
        return fit, np.array([1, 0.5], F)
    if kind == "ShallowNetwork":
        z = np.linspace(-1, 1, 30, dtype=F)
        network = cfgd.ShallowNetwork(z, np.sin(3 * z), 3)
        return network, network.init(seed).astype(F)
    if kind == "function":
        shift = np.random.default_rng(seed).normal(size=4).astype(F)
        return lambda x: jnp.sum(jnp.cosh(x - shift)) + jnp.sum(x) ** 2, zeros
    targets = {
        "squared": y,
        "huber": y / y.std(),
        "logistic": (y > np.median(y)).astype(F),
        "poisson": np.round(np.exp(y / y.std())).astype(F),
        "gamma": np.exp(y / y.std()).astype(F),
    }[kind]
    return cfgd.LinearModel(X / abs(X).max(0), targets, kind, F(0.1)), zeros


KINDS = ("LeastSquares", "Quadratic", "squared", "logistic", "huber", "poisson", "gamma")
MORE_KINDS = ("Residuals", "ShallowNetwork", "function")
METHODS = (cfgd.Auto(), cfgd.GradientDescent(), cfgd.AdaptiveTerminal(gamma=-0.25))


def check(kind, seed, method):
    """Run with the defaults and check the verdict, the value and the history."""
    f, x0 = random_problem(kind, seed)
    end = cfgd.minimize(f, x0, method)
    assert end.tolerance == 1e-4
    assert end.x.dtype == F
    assert end.value == end.history["value"].min()
    value = f.value if isinstance(f, cfgd.Objective) else f
    # the value is a sum of terms of this size, which other programs add up in another order
    size = abs(end.history["value"]).max()
    assert abs(float(value(end.x)) - end.value) <= 1e-5 * size
    return end


@pytest.mark.every_case
@pytest.mark.parametrize("kind", KINDS)
def test_a_float32_run_converges_with_the_default_tolerance(kind):
    for seed in range(6):
        end = check(kind, seed, cfgd.Auto())
        assert end.status is cfgd.Status.converged
        assert end.iterations <= 30


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "method"),
    [
        (kind, method)
        for kind in KINDS + MORE_KINDS
        for method in METHODS
        # first-order methods take more than 10,000 iterations on networks
        if kind != "ShallowNetwork" or isinstance(method, cfgd.Auto)
    ],
)
def test_float32_runs_of_all_methods_return_the_best_point(kind, method):
    for seed in range(20, 26):
        end = check(kind, seed, method)
        if kind != "ShallowNetwork":  # in float32 some networks stall
            assert end.status in (cfgd.Status.converged, cfgd.Status.max_iterations)


@pytest.mark.every_case
@pytest.mark.parametrize("kind", ["LeastSquares", "Quadratic", "squared"])
@pytest.mark.parametrize("tolerance", [1e-8, 1e-12, 0.0])
def test_a_tolerance_below_rounding_ends_soon_and_is_not_called_converged(kind, tolerance):
    for seed in range(4):
        f, x0 = random_problem(kind, seed)
        end = cfgd.minimize(f, x0, tolerance=tolerance)
        assert end.iterations <= 100
        is_met = end.gradient_norm <= tolerance * end.history["gradient_norm"][0]
        assert end.status is (cfgd.Status.converged if is_met else cfgd.Status.stalled)


def test_float32_stalls_soon_on_the_fits_of_other_solvers():
    for kind in ("logistic", "huber"):
        f, x0 = random_problem(kind, 0)
        end = cfgd.minimize(f, x0, tolerance=1e-12)
        assert end.iterations <= 100
        assert end.status is not cfgd.Status.max_iterations


@pytest.mark.every_case
@pytest.mark.parametrize("kind", ["LeastSquares", "Quadratic", "squared"])
def test_a_run_that_starts_at_its_solution_converges(kind):
    f, x0 = random_problem(kind, 1)
    x = cfgd.minimize(f, x0).x
    again = cfgd.minimize(f, x)
    assert again.status is cfgd.Status.converged
    assert again.iterations <= 100
    np.testing.assert_allclose(again.x, x, rtol=1e-3)


def test_the_default_tolerance_follows_the_precision():
    for dtype, wanted in ((np.float64, 1e-8), (F, 1e-4)):
        X, y = data(0, dtype=dtype)
        f = cfgd.LeastSquares(X, y)
        one = cfgd.minimize(f, np.zeros(4, dtype))
        several = cfgd.sweep(f, np.zeros((2, 4), dtype), cfgd.Auto())
        assert one.tolerance == several.tolerance == several[0].tolerance == wanted
    assert "`tolerance` is 0.0001, the default in float32." in one.message


def test_a_given_tolerance_is_used_and_named():
    f, x0 = random_problem("LeastSquares", 0)
    end = cfgd.minimize(f, x0, tolerance=1e-2)
    assert end.tolerance == 1e-2
    assert "`tolerance` is 0.01; the default in float32 is 0.0001." in end.message


def test_an_older_file_without_a_tolerance_is_read(tmp_path):
    f, x0 = random_problem("LeastSquares", 0)
    path = tmp_path / "solution.json"
    end = cfgd.minimize(f, x0)
    end.to_json(path)
    assert cfgd.Solution.from_json(path).tolerance == 1e-4
    lines = [line for line in path.read_text().splitlines() if '"tolerance"' not in line]
    path.write_text("\n".join(lines))
    assert cfgd.Solution.from_json(path).tolerance is None


def test_the_history_of_a_quadratic_has_its_values():
    # the values fall by 30 powers of ten; a recurrence of values would stay at 1e-14
    f = cfgd.Quadratic(np.diag([20.0, 2.0]), np.zeros(2))
    record = {"x": lambda x: x}
    end = cfgd.minimize(f, [1.0, -10.0], cfgd.GradientDescent(), tolerance=1e-15, record=record)
    x = end.history["x"]
    np.testing.assert_allclose(end.history["value"], 10 * x[:, 0] ** 2 + x[:, 1] ** 2, rtol=0.1)


def test_values_are_settled_within_rounding_only():
    values, eps = np.array([4.0, 2.0, 1.0 - 1e-15, 1.0 + 1e-15]), np.finfo(float).eps
    settled = settle_values(values, 1.0, True)
    assert settled.min() == 1.0
    assert (settled[:2] == values[:2]).all()
    # a value that is truly lower than the returned one stays: it shows that x is not the best
    assert settle_values(np.array([4.0, 0.5, 1.0]), 1.0, True).min() == 0.5
    # the returned point may be between two recorded ones
    assert settle_values(np.array([4.0, 1.0 + eps]), 1.0, False).min() == 1.0 + eps
    several = settle_values(np.array([[4.0, 1.0 + eps], [4.0, 2.0 - 2 * eps]]), [1.0, 2.0], True)
    assert (several == [[4.0, 1.0], [4.0, 2.0]]).all()
