"""Which solver Auto takes: one case for each row of the table in select.py, and its borders."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import cfgd
from cfgd._core.pytrees import Structure
from cfgd.methods.auto import select
from cfgd.methods.auto.select import FEW_COLUMNS, MANY_COLUMNS, can_factor, choose
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.host import host_objective

RNG = np.random.default_rng(4)
WIDE = RNG.normal(size=(30, MANY_COLUMNS + 1))
NARROW = WIDE[:, :MANY_COLUMNS]
LABELS = (WIDE[:, 0] > 0) * 1.0
Z = np.linspace(-1, 1, 12)


def own_activation(u):
    return u / (1 + u * u)


def external(d, hessian=True):
    """Return an External of d coordinates, with a Hessian or without."""
    functions = [lambda x: x @ x / 2 + np.sum(x**4), lambda x: x + 4 * x**3]
    if hessian:
        functions.append(lambda x: np.diag(1 + 12 * x**2))
    return cfgd.External(*functions).raveled(Structure.of(np.zeros(d)))


# objective, solver, and words of the reason
TABLE = {
    "quadratic": (cfgd.Quadratic(np.eye(2), np.ones(2)), "conjugate_gradients", "quadratic"),
    "least squares": (cfgd.LeastSquares(WIDE, LABELS), "conjugate_gradients", "quadratic"),
    "linear model, squared": (
        cfgd.LinearModel(WIDE, LABELS, "squared"),
        "conjugate_gradients",
        "quadratic",
    ),
    "linear model, few columns": (
        cfgd.LinearModel(NARROW, LABELS),
        "levenberg_marquardt",
        f"{MANY_COLUMNS} columns",
    ),
    "linear model, many columns": (
        cfgd.LinearModel(WIDE, LABELS),
        "lbfgs_then_lm",
        f"{MANY_COLUMNS + 1} columns",
    ),
    "linear model, sparse": (
        cfgd.LinearModel(scipy.sparse.csr_array(WIDE[:, :5]), LABELS),
        "lbfgs_then_lm",
        "sparse",
    ),
    "network": (
        cfgd.ShallowNetwork(Z, Z, 3),
        "variable_projection",
        "linear in its output weights",
    ),
    "network, own activation": (
        cfgd.ShallowNetwork(Z, Z, 3, own_activation),
        "lm_then_quasi_newton",
        "Gauss-Newton",
    ),
    "residuals": (cfgd.Residuals(lambda x: x**2 - 1), "lm_then_quasi_newton", "Gauss-Newton"),
    "blocks": (cfgd.Blocks(NARROW[:, :4], LABELS), "levenberg_marquardt", "Hessian"),
    "blocks, little memory": (
        cfgd.Blocks(WIDE, LABELS, memory=5e5),
        "quasi_newton",
        "does not fit in memory",
    ),
    "external, Hessian": (external(3), "levenberg_marquardt", "Hessian"),
    "external": (external(3, hessian=False), "quasi_newton", "value and gradient"),
    "function": (cfgd.Smooth(lambda x: jnp.sum(x**4)), "quasi_newton", "value and gradient"),
    "local": (
        cfgd.Local(cfgd.LinearModel(NARROW, LABELS), curvature="gauss_newton"),
        "quasi_newton",
        "value and gradient",
    ),
}


@pytest.mark.parametrize(("objective", "solver", "words"), TABLE.values(), ids=TABLE)
def test_every_row_of_the_table(objective, solver, words):
    found = choose(objective)
    assert found.solver == solver
    assert words in found.reason


@pytest.mark.parametrize("name", TABLE)
def test_the_choice_is_the_same_on_the_host(name):
    """Solutions describe the choice for the user's objective, and run that of the host's."""
    objective, solver, _ = TABLE[name]
    assert choose(host_objective(objective)).solver == solver


def test_a_hessian_too_large_to_be_factorised_is_not_used(monkeypatch):
    """The border is at 1,250 columns: 1250^3 is about 2e9."""
    assert choose(external(1250)).solver == "levenberg_marquardt"
    assert choose(external(1270)).solver == "quasi_newton"
    monkeypatch.setattr(select, "MOST_OPERATIONS", 26)
    assert choose(external(3)).solver == "quasi_newton"


def test_the_number_of_rows_does_not_keep_blocks_from_their_hessian(monkeypatch):
    monkeypatch.setattr(select, "MOST_OPERATIONS", 4.0**3)
    found = choose(cfgd.Blocks(NARROW[:, :4], LABELS))
    assert found.solver == "levenberg_marquardt"


def curvature(shape, **fields):
    return Curvature(times=lambda v: v, diagonal=lambda: np.ones(shape[1]), shape=shape, **fields)


def test_which_matrices_are_factorised():
    assert can_factor(curvature((100, 10), cost=1.0))
    assert can_factor(curvature((2000, 1000), cost=1.0))  # 2e9 operations
    assert not can_factor(curvature((2001, 1000), cost=1.0))
    assert can_factor(curvature((10, 10**6), cost=1.0))  # the smaller of J'J and JJ' counts
    # X'WX of few columns is formed for any number of rows
    data = {"cost": 1.0, "rows_are_data": True}
    assert can_factor(curvature((10**8, FEW_COLUMNS), **data))
    assert not can_factor(curvature((10**8, FEW_COLUMNS + 1), **data))
    assert not can_factor(curvature((10**8, FEW_COLUMNS), cost=1.0))
    # a matrix that comes with the evaluation costs nothing more
    assert can_factor(curvature((5000, 5000), matrix=lambda: np.eye(2)))
    # products alone
    by_products = Curvature(times=lambda v: v, diagonal=lambda: np.ones(3))
    assert not can_factor(by_products)


def test_the_docstring_has_all_solvers():
    """So that the table of the page is the table of the code."""
    names = {solver.replace("_", " ") for _, solver, _ in TABLE.values()}
    text = select.__doc__.lower().replace("-", " ")
    combined = {"lbfgs then lm", "quasi newton", "lm then quasi newton"}
    for name in names - combined:
        assert name in text, name
    assert "l bfgs, then levenberg marquardt" in text
    assert "l bfgs, in long runs followed by a dense matrix of the broyden family" in text
    assert "levenberg marquardt; if it is slow, then l bfgs and a dense quasi newton matrix" in text
