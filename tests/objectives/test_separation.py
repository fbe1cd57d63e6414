"""Separated classes are recognised, and nearly separated ones are not mistaken for them."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import cfgd
from cfgd import Status

TOUCHING = np.array([-3.0, -2.0, -1.0, 0.0, 0.0, 1.0, 2.0, 3.0])
LABELS = np.array([0, 0, 0, 1, 0, 1, 1, 1])


def run(X, y, loss="logistic", *, intercept=True, l2=0.0, weight=None, **options):
    f = cfgd.LinearModel(X, y, loss, l2, weight, intercept=intercept)
    return cfgd.minimize(f, np.zeros(f.shape), **options)


def noisy(n=40, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, (X @ [1.0, 2.0, -1.0] + random.logistic(size=n) > 0).astype(int)


def rotated(first, seed=0):
    """Return columns whose combination is `first`, and no single one of them."""
    random = np.random.default_rng(seed)
    Q = np.linalg.qr(random.normal(size=(3, 3)))[0]
    return np.column_stack([first, random.normal(size=(len(first), 2))]) @ Q


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.every_case
def test_complete_separation(sparse):
    X, y = noisy()
    y = (X @ [1.0, 2.0, -1.0] > 0.3).astype(int)
    solution = run(scipy.sparse.csr_array(X) if sparse else X, y)
    assert solution.status is Status.separated
    assert "The classes 0 and 1 are separated by the columns" in solution.message
    assert "(complete separation)" in solution.message
    assert "add a penalty" in solution.message
    assert not solution.success
    with pytest.raises(ValueError, match="covariance"):
        solution.covariance()


def test_quasi_complete_separation_by_one_column():
    """A column that is not zero in rows of one class alone."""
    X, y = noisy()
    rare = ((np.arange(40) % 5 == 0) & (y == 1)).astype(float)
    solution = run(np.column_stack([X, rare]), y)
    assert solution.status is Status.separated
    assert "by the column 3 (quasi-complete separation)" in solution.message
    assert run(X, y).success


def test_quasi_complete_separation_by_a_combination():
    solution = run(rotated(np.tile(TOUCHING, 3)), np.tile(LABELS, 3))
    assert solution.status is Status.separated
    assert "together (quasi-complete separation)" in solution.message


@pytest.mark.parametrize("overlap", [1e-2, 1e-5, 1e-8])
@pytest.mark.every_case
def test_an_overlap_however_small_is_no_separation(overlap):
    """The class 1 begins below where the class 0 ends: the likelihood has a maximum."""
    x = TOUCHING.copy()
    x[3], x[4] = -overlap, overlap
    solution = run(x[:, None], LABELS)
    assert solution.status is Status.converged
    x = np.tile(x, 3)
    assert run(rotated(x), np.tile(LABELS, 3)).status is Status.converged


def test_rows_of_weight_zero_do_not_count():
    X, y = noisy()
    right = ((X @ [1.0, 2.0, -1.0] > 0) == (y == 1)).astype(float)
    assert run(X, y, weight=right).status is Status.separated
    assert run(X, y, weight=np.maximum(right, 1e-3)).status is Status.converged


def test_a_penalty_or_a_bound_keeps_coefficients_finite():
    x = np.arange(-4.0, 4.0)[:, None] + 0.5
    y = (x[:, 0] > 0).astype(int)
    assert run(x, y, l2=1e-3).success
    assert run(x, y).status is Status.separated
    assert run(x, y, bounds=([-np.inf, -np.inf], [5.0, np.inf])).success
    assert run(-x, y, bounds=([0.0, -np.inf], [np.inf, np.inf])).success
    assert run(x, y, bounds=([0.0, -np.inf], [np.inf, np.inf])).status is Status.separated
    # the penalty of one column does not help against another one
    both = np.column_stack([x, np.cos(np.pi * np.arange(8))])
    assert run(both, y, l2=np.array([0.0, 1.0])).status is Status.separated
    assert run(both, y, l2=np.array([1.0, 0.0])).success


def test_without_an_intercept_the_plane_goes_through_zero():
    x = np.array([[1.0], [2.0], [3.0], [4.0]])
    y = np.array([0, 0, 1, 1])
    assert run(x, y).status is Status.separated
    assert run(x, y, intercept=False).status is Status.converged
    assert run(x - 2.5, y, intercept=False).status is Status.separated


def test_a_label_that_never_occurs_is_separated_by_the_intercept():
    X, _ = noisy()
    solution = run(X, np.ones(40))
    assert solution.status is Status.separated
    assert "the intercept alone: a class has no rows" in solution.message


def test_multinomial_classes_of_which_one_is_apart():
    random = np.random.default_rng(3)
    X = random.normal(size=(60, 2))
    y = 1 + (X[:, 0] + random.logistic(size=60) > 0)
    X, y = np.concatenate([X, [[0.0, 9.0], [1.0, 8.0]]]), np.append(y, [0, 0])
    solution = run(X, y, "multinomial")
    assert solution.status is Status.separated
    assert "The class 0 is separated from 1 and 2 by the column 1 (quasi" in solution.message
    assert run(X[:60], y[:60] - 1, "multinomial").success
    assert run(X, y, "multinomial", l2=0.1).success


def test_collinear_columns_do_not_hide_or_feign_it():
    X, y = noisy()
    more = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(40)])
    assert run(more, y).status is Status.converged
    assert run(more, (X[:, 1] > 0).astype(int)).status is Status.separated


def test_streamed_rows():
    X, y = noisy()
    f = cfgd.Blocks(X, (X @ [1.0, 1.0, 0.0] > 0).astype(float), intercept=True)
    before = f.passes
    solution = cfgd.minimize(f, np.zeros(4))
    assert solution.status is Status.separated
    assert f.passes - before == solution.evaluations
    assert cfgd.minimize(cfgd.Blocks(X, y.astype(float), intercept=True), np.zeros(4)).success


@pytest.mark.slow
def test_other_methods():
    x = np.arange(-4.0, 4.0)[:, None] + 0.5
    y = (x[:, 0] > 0).astype(int)
    solution = run(x, y, method=cfgd.GradientDescent(), max_iterations=100)
    assert solution.status is Status.separated


def test_an_offset_does_not_separate():
    """Rows are predicted right by the offset alone, and the coefficient has an estimate."""
    x = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    y = np.array([0, 0, 1, 1])
    f = cfgd.LinearModel(x, y, offset=np.array([-9.0, -9.0, 9.0, 9.0]))
    assert cfgd.minimize(f, np.zeros(1)).success


def is_separated(X, y, weight):
    """Konis' linear program on all rows at once."""
    rows = (X * (2 * y - 1)[:, None])[weight > 0]
    found = scipy.optimize.linprog(
        -rows.sum(0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1)
    )
    return -found.fun > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(150))
def test_random_data_agree_with_a_linear_program(seed):
    """Small integers, so that separation is often quasi-complete and decided exactly."""
    random = np.random.default_rng(seed)
    n, d = random.integers(6, 40), random.integers(1, 5)
    X = random.integers(-3, 4, (n, d)).astype(float)
    y = (X @ random.normal(size=d) + random.choice([0.1, 1.0, 3.0]) * random.normal(size=n) > 0) * 1
    weight = random.choice([0.0, 1.0, 2.0], n, p=[0.2, 0.5, 0.3])
    weight[0] = 1.0
    intercept = bool(random.integers(2))
    full = np.column_stack([X, np.ones(n)]) if intercept else X
    X = scipy.sparse.csr_array(X) if random.integers(2) else X
    solution = run(X, y, intercept=intercept, weight=weight)
    assert (solution.status is Status.separated) == is_separated(full, y, weight)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_random_classes_agree_with_a_linear_program(seed):
    random = np.random.default_rng(1000 + seed)
    n, d, k = random.integers(9, 40), 2, 3
    X = random.integers(-3, 4, (n, d)).astype(float)
    scores = X @ random.normal(size=(d, k)) + random.choice([0.1, 1.0]) * random.gumbel(size=(n, k))
    y = scores.argmax(1)
    y[:3] = [0, 1, 2]
    full = np.column_stack([X, np.ones(n)])
    rows = np.array([
        np.outer(x, np.eye(k)[own] - np.eye(k)[other]).ravel()
        for x, own in zip(full, y, strict=True)
        for other in range(k)
        if other != own
    ])  # fmt: skip
    found = scipy.optimize.linprog(
        -rows.sum(0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1)
    )
    solution = run(X, y, "multinomial")
    assert (solution.status is Status.separated) == (-found.fun > 1e-6)


@pytest.mark.slow
def test_breast_cancer_and_iris():
    from sklearn.datasets import load_breast_cancer, load_iris

    X, y = load_breast_cancer(return_X_y=True)
    assert run(X, y).status is Status.separated
    assert run(X[:, :10], y).status is Status.converged
    X, y = load_iris(return_X_y=True)
    solution = run(X, y, "multinomial")
    assert "The class 0 is separated from 1 and 2" in solution.message
    assert run(X[50:], y[50:] - 1).status is Status.converged
