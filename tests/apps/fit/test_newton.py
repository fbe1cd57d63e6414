"""Newton's method of `cfgd fit`: the minimum of SciPy, and what it leaves to `minimize`."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from cfgd.apps.fit.newton import newton
from cfgd.apps.fit.row_block import RowBlock
from cfgd.objectives.linear.formulas import FORMULAS

# losses as NumPy functions of predictions and targets, written anew
LOSSES = {
    "squared": lambda p, y: (p - y) ** 2 / 2,
    "logistic": lambda p, y: np.log1p(np.exp(-y * p)),
    "poisson": lambda p, y: np.exp(p) - y * p,
    "gamma": lambda p, y: p + y / np.exp(p),
}


def data(loss, rows=90):
    random = np.random.default_rng(5)
    X = random.normal(size=(rows, 3)) * [1.0, 0.3, 2.0]
    offset, weight = random.normal(size=rows) / 4, random.uniform(0.2, 3, rows)
    p = X @ [0.4, -1.1, 0.3] + 0.2 + offset
    draws = {
        "squared": lambda: p + random.normal(size=rows),
        "logistic": lambda: np.where(p > random.logistic(size=rows), 1.0, -1.0),
        "poisson": lambda: random.poisson(np.exp(p)).astype(float),
        "gamma": lambda: random.gamma(2.0, np.exp(p) / 2),
    }
    y = draws[loss]()
    return RowBlock(X, y, offset=offset), y, weight


@pytest.mark.parametrize("l2", [0.0, 1.7])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_minimum_is_that_of_scipy(loss, l2):
    rows, y, weight = data(loss)

    def f(w):
        p = rows.X @ w[:-1] + w[-1] + rows.offset
        return weight @ LOSSES[loss](p, y) + l2 / 2 * w[:-1] @ w[:-1]

    best = scipy_minimize(f, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    found = newton(FORMULAS[loss], rows, y, weight, l2, np.zeros(4))
    np.testing.assert_allclose(found.w, best.x, rtol=1e-5, atol=1e-6)
    assert found.values[-1] <= best.fun * (1 + 1e-14)
    assert found.values[-1] == pytest.approx(f(found.w), rel=1e-13)
    assert found.gradient_norms[-1] < 1e-10 * found.gradient_norms[0]
    assert found.iterations == 2 if loss == "squared" else found.iterations < 10


def test_a_bad_start_is_reached_by_halved_steps():
    rows, y, weight = data("poisson")
    near = newton(FORMULAS["poisson"], rows, y, weight, 0.0, np.zeros(4))
    far = newton(FORMULAS["poisson"], rows, y, weight, 0.0, np.array([2.0, 3, -2, -9]))
    np.testing.assert_allclose(far.w, near.w, rtol=1e-9)
    assert np.all(np.diff(far.values) <= 1e-9)


def test_separated_classes_and_collinear_columns_are_left_to_minimize():
    x = np.linspace(-1, 1, 20)
    ones = np.ones(20)
    loss = FORMULAS["logistic"]
    complete = np.where(x > 0.1, 1.0, -1.0)
    assert newton(loss, RowBlock(x[:, None], complete), complete, ones, 0.0, np.zeros(2)) is None
    level = (np.arange(20) < 4).astype(float)  # all of its rows are positive: quasi-complete
    y = np.where((np.arange(20) % 3 == 0) | (level > 0), 1.0, -1.0)
    X = np.column_stack([x, level])
    assert newton(loss, RowBlock(X, y), y, ones, 0.0, np.zeros(3)) is None
    assert newton(loss, RowBlock(X, y), y, ones, 0.1, np.zeros(3)) is not None
    X = np.column_stack([x, x**2, 2 * x - 3 * x**2 + 1])
    squared = FORMULAS["squared"]
    assert newton(squared, RowBlock(X, x), x, ones, 0.0, np.zeros(4)) is None


def test_a_plain_fit_loads_neither_jax_nor_pandas_nor_matplotlib(tmp_path):
    random = np.random.default_rng(1)
    table = np.column_stack([random.normal(size=(50, 2)), random.integers(0, 2, 50)])
    np.savetxt(tmp_path / "t.csv", table, "%.6g", ",", header="a,b,y", comments="")
    code = (
        "import sys\n"
        "from cfgd.apps.cli import app\n"
        f"app(['fit', r'{tmp_path / 't.csv'}', '--target', 'y', '--out', r'{tmp_path / 'out'}'],"
        " standalone_mode=False)\n"
        "found = {'jax', 'equinox', 'pandas', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {found}' if found else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_condition_numbers_of_many_columns_are_those_of_all_eigenvalues(monkeypatch):
    from cfgd.apps.fit.conditioning import conditioning
    from cfgd.apps.fit.table_statistics import Standardisation
    from cfgd.objectives import information

    random = np.random.default_rng(3)
    X = random.normal(size=(400, 30)) @ random.normal(size=(30, 30)) * np.logspace(0, 2, 30) + 3
    standardisation = Standardisation(X.mean(0), X.std(0))
    Z = standardisation(X)
    R = Z.T @ Z / len(Z)
    few = conditioning(R, standardisation)
    monkeypatch.setattr(information, "MANY", 10)
    many = conditioning(R, standardisation)
    assert many.worst == few.worst
    for name in ("raw", "standardised", "inflation"):
        assert getattr(many, name) == pytest.approx(getattr(few, name), rel=1e-5)
    assert few.standardised == pytest.approx(np.linalg.cond(Z), rel=1e-6)
    assert few.raw == pytest.approx(np.linalg.cond(np.column_stack([X, np.ones(400)])), rel=1e-6)


def test_the_inverse_of_many_columns_is_that_of_the_eigenvectors(monkeypatch):
    from cfgd.objectives import information

    random = np.random.default_rng(4)
    X = random.normal(size=(100, 40)) * np.logspace(-3, 3, 40)
    few = information.inverse_where_definite(X.T @ X)
    monkeypatch.setattr(information, "MANY", 10)
    many = information.inverse_where_definite(X.T @ X)
    size = np.sqrt(np.outer(np.diagonal(few.matrix), np.diagonal(few.matrix)))
    np.testing.assert_allclose(many.matrix / size, few.matrix / size, atol=1e-12)
    assert not many.is_undetermined.any()
    X[:, 7] = X[:, 2] + 1e-3 * X[:, 5]  # collinear: left to the eigenvectors
    assert information.inverse_where_definite(X.T @ X).is_undetermined[[2, 5, 7]].all()


def test_complete_separation_ends_the_run_at_once():
    random = np.random.default_rng(6)
    X = random.normal(size=(60, 40))
    y = np.where(random.random(60) < 0.5, 1.0, -1.0)
    found = newton(
        FORMULAS["logistic"], RowBlock(X, y), y, np.ones(60), 0.0, np.zeros(41),
        separating=np.log(2),
    )  # fmt: skip
    assert found.is_separated
    assert np.all(y * (X @ found.w[:-1] + found.w[-1]) > 0)
