"""Each objective against an independent implementation, at once and in batches."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd.objectives import base
from cfgd.objectives.linear import design
from cfgd.objectives.linear.samples import sum_of_parts
from cfgd.objectives.network import model as network_module
from cfgd.objectives.network.activation import activation_of
from objectives import (
    ACTIVATIONS,
    CASES,
    COMPARED,
    FAR,
    TIGHT,
    W0,
    X,
    Y,
    all_close,
    answers,
    arguments,
    batched_answers_of,
    close,
    in_float64,
    reference,
)
from problems import few, quick

QUANTITIES = [name for name in COMPARED if name != "Gauss-Newton diagonal"]

# Run without `make slow`: each loss in one format with weights and a penalty, half of the losses
# without them, and two networks.
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


@pytest.mark.one_case
@cases
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_answers_equal_those_of_the_reference(case, quantity):
    all_close(answers(case)[quantity], reference(case)[quantity])


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", quick({name: name for name, case in CASES.items() if case.gauss_newton}, QUICK)
)
def test_gauss_newton_diagonal_is_that_of_the_jacobian(case):
    close(answers(case)["Gauss-Newton diagonal"], reference(case)["Gauss-Newton diagonal"])


@pytest.mark.parametrize("case", [name for name, case in CASES.items() if not case.gauss_newton])
def test_objectives_without_a_model_have_no_gauss_newton_diagonal(case):
    assert answers(case)["Gauss-Newton diagonal"] is None


def welsch(p, y):
    """Return a loss that is concave for residuals beyond 1."""
    return 1 - jnp.exp(-((p - y) ** 2) / 2)


NOT_CONVEX = {"not convex": cfgd.LinearModel(X, Y, welsch, 0.1)}
MODELS = NOT_CONVEX | {name: case.objective for name, case in CASES.items() if name != "smooth"}


@pytest.mark.one_case
@pytest.mark.parametrize("name", quick({name: name for name in MODELS}, [*QUICK, *NOT_CONVEX]))
def test_products_diagonal_and_matrix_are_of_one_positive_matrix(name):
    objective = MODELS[name]
    x = CASES[name].x if name in CASES else W0
    with jax.enable_x64(True):
        curvature = objective.curvature(objective.evaluate(jnp.asarray(x)))
        H = np.stack([curvature.times(jnp.asarray(row)) for row in np.eye(x.size)])
        close(curvature.diagonal(), H.diagonal())
        if curvature.matrix is not None:
            close(curvature.matrix(), H)
        if curvature.rows is not None:
            J, r = map(np.asarray, curvature.rows())
            close(J.T @ J, H)
            close(J.T @ r, reference(name)["gradient"])
    close(H, H.T)
    assert np.linalg.eigvalsh(H)[0] > -TIGHT * np.max(H)
    if curvature.is_exact:
        d = arguments(x)[2]
        close(H @ d, reference(name)["Hessian times d"])


@cases
def test_aux_updated_along_a_line_equals_aux_of_an_evaluation(case):
    updated, computed = answers(case)["aux, updated and computed"]
    all_close(updated, computed)


@cases
def test_coordinate_slopes_of_the_table_are_distinct(case):
    """So that a swap of coordinates or of nodes is noticed by the tests above."""
    slopes = answers(case)["slopes"]
    assert np.min(np.abs(np.diff(np.sort(slopes[3])))) > 1e-6
    assert np.min(np.abs(slopes[3] - slopes[4])) > 1e-6


def wave_derivatives(x):
    """Return slopes and curvatures of `wave` by hand, to check the reference itself."""
    e = np.exp(0.4 * x[0] - 0.3 * x[1])
    slopes = [0.4 * e + x[0] ** 3 + x[1] / 2, -0.3 * e + x[0] / 2 + 2 * x[1]]
    return slopes, [0.16 * e + 3 * x[0] ** 2, 0.09 * e + 2]


def test_smooth_has_the_derivatives_by_hand():
    case = CASES["smooth"]
    _, t, *_ = arguments(case.x)
    for k, at in enumerate(t):
        for j in range(2):
            moved = case.x.copy()
            moved[j] = at[j]
            slopes, curvatures = wave_derivatives(moved)
            np.testing.assert_allclose(answers("smooth")["slopes"][k, j], slopes[j], rtol=1e-13)
            np.testing.assert_allclose(
                answers("smooth")["curvatures"][k, j], curvatures[j], rtol=1e-13
            )


PUBLIC = [
    "smooth",
    "logistic 0/1, csr, weights, l2",
    "network, tanh, p = 3",
    "quadratic",
    "least squares, wide, weights, l2",
]


@pytest.mark.parametrize("name", few(PUBLIC))
def test_public_coordinate_derivatives_take_numpy_arrays_and_lists(name):
    f = CASES[name].objective
    x, t, *_ = arguments(CASES[name].x)
    slopes = f.coordinate_slope(x, t[FAR])
    assert isinstance(slopes, np.ndarray)
    assert slopes.dtype == np.float64
    close(slopes, reference(name)["slopes"][FAR])
    close(f.coordinate_curvature(x.tolist(), t[FAR].tolist()), reference(name)["curvatures"][FAR])
    assert f.dimension == (None if name == "smooth" else x.size)


@pytest.mark.parametrize(("given", "fn"), ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_activations_return_their_derivatives(given, fn):
    u = np.array([[-3.0, -0.7], [0.0, 0.2], [1.4, 5.0]])
    parts = in_float64(activation_of("ShallowNetwork", given, u.dtype), u)
    for part in parts:
        close(part, in_float64(jax.jit(jax.vmap(jax.vmap(fn))), u), 1e-13)
        fn = jax.grad(fn)


# ------------------------------------------------------------------ batches

# sizes that leave a remainder: 11 samples by 3 and 7, 7 samples by 4, 12 slopes by 5
BATCHES = {
    "logistic 0/1, dense, weights, l2": [(4 * 3 + 1, 1), (4 * 7, 1), (1, 1)],
    "custom, dense, weights, l2": [(4 * 3, 1)],
    "network, tanh, p = 3": [(1, 8 * 8 * 4 + 3), (1, 1)],
    "smooth": [(1, 2 * 5 + 1), (1, 1)],
}
BATCH_ROWS = {
    f"{name}-{numbers}": (name, *numbers) for name, rows in BATCHES.items() for numbers in rows
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cache", "batch"),
    quick(BATCH_ROWS, [f"{name}-{rows[0]}" for name, rows in BATCHES.items()]),
)
def test_batch_sizes_do_not_change_answers(monkeypatch, name, cache, batch):
    monkeypatch.setattr(design, "CACHE_NUMBERS", cache)
    monkeypatch.setattr(base, "BATCH_NUMBERS", batch)
    monkeypatch.setattr(network_module, "BATCH_NUMBERS", batch)
    case = CASES[name]
    # a new function, so that a trace with other batch sizes is not reused
    fresh = eqx.filter_jit(lambda *given: batched_answers_of(*given))
    got = in_float64(fresh, case.objective, *arguments(case.x))
    all_close(got, {quantity: answers(name)[quantity] for quantity in got}, 1e-14)


PARTS = {f"{m} by {size}": (m, size) for m, size in [(11, 3), (12, 3), (7, 7), (5, 1), (9, 8)]}


@pytest.mark.slow
@pytest.mark.parametrize(("m", "size"), PARTS.values(), ids=PARTS)
def test_sum_of_parts_counts_every_sample_once(m, size):
    a, b = np.arange(1.0, m + 1), np.stack([np.arange(m) ** 2.0, np.ones(m)])
    got = in_float64(
        lambda a, b: sum_of_parts(lambda new, a, b: (b * a) @ new, m, size, (a, b)), a, b
    )
    np.testing.assert_allclose(got, b @ a, rtol=1e-14)
