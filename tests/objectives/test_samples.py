"""Sample weights, sparse design matrices and columns of zeros."""

import functools

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.sparse

import cfgd
from objectives import (
    FORMATS,
    L2,
    LABELS,
    LOSSES,
    REPEATS,
    W0,
    WEIGHTS,
    X,
    Y,
    all_close,
    arguments,
    batched_answers_of,
    close,
    compiled_answers,
    in_float64,
)
from problems import do_nothing, quick

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


@pytest.mark.slow
@pytest.mark.parametrize(("make", "X", "y", "kind"), quick(SAMPLES, REPEATED))
def test_an_integer_weight_repeats_a_sample(make, X, y, kind):
    weighted = make(FORMATS[kind](X), y, l2=L2, sample_weight=REPEATS)
    repeated = make(FORMATS[kind](np.repeat(X, REPEATS, 0)), np.repeat(y, REPEATS), l2=L2)
    given = arguments(np.resize(W0, X.shape[1]))
    want = in_float64(compiled_answers, repeated, *given)
    got = in_float64(compiled_answers, weighted, *given)
    for quantity in want.keys() - {"aux, updated and computed"}:  # one entry for each sample
        all_close(got[quantity], want[quantity], 1e-13)


RUNS = {
    "squared": (cfgd.LinearModel, Y, {"loss": "squared"}),
    "logistic": (cfgd.LinearModel, LABELS, {}),
    "least squares": (cfgd.LeastSquares, Y, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("make", "y", "more"), quick(RUNS, ["logistic"]))
def test_runs_on_dense_and_sparse_matrices_are_equal(make, y, more):
    ends = {
        kind: cfgd.minimize(
            make(form(X), y, l2=L2, sample_weight=WEIGHTS, **more),
            W0,
            cfgd.AdaptiveTerminal(gamma=-0.1, nodes=4),
            max_iterations=12,
            callback=do_nothing,
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
def test_every_sparse_format_gives_the_dense_answers(sparse):
    x, y, stored = np.array([0.4, -1.1]), np.array([1.0, 0.0, 1.0]), sparse.nnz
    given = x, np.stack([x + 0.5, x - 2]), np.array([1.0, 0.3]), np.array([0.1]), None
    compiled = eqx.filter_jit(batched_answers_of)
    got = in_float64(compiled, cfgd.LinearModel(sparse, y), *given)
    all_close(got, in_float64(compiled, cfgd.LinearModel(sparse.toarray(), y), *given), 1e-14)
    assert sparse.nnz == stored  # the user's matrix is not changed


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


@pytest.mark.slow
@pytest.mark.parametrize("objective", quick(ZERO_ROWS, ZEROS))
def test_an_all_zero_column_has_no_slope_and_no_curvature(objective):
    """So its coordinate keeps the gradient step; test_products.py has the runs."""
    found = in_float64(compiled_answers, objective, *arguments(W0))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found))
    for quantity in ("slopes", "curvatures", "Hessian diagonal"):
        np.testing.assert_array_equal(found[quantity][..., 1], 0)


def test_an_all_zero_column_with_a_penalty_has_the_curvature_of_the_penalty():
    f = cfgd.LinearModel(ZERO, LABELS, l2=L2)
    given = arguments(W0)
    found = in_float64(compiled_answers, f, *given)
    np.testing.assert_allclose(found["slopes"][:, 1], L2 * given[1][:, 1], rtol=1e-14)
    np.testing.assert_allclose(found["curvatures"][:, 1], L2, rtol=1e-14)
