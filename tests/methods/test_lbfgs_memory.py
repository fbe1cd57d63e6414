"""The memory of L-BFGS: directions of explicit matrices; the preconditioner and the first step."""

import numpy as np
import pytest
from oracles import inverse_bfgs, random_spd

from cfgd.methods.auto.curvature_check import Probes
from cfgd.methods.auto.lbfgs_memory import (
    GROWTH,
    PAIRS,
    Memory,
    Pair,
    direction,
    first_step,
    secant_diagonal,
)
from cfgd.objectives.evaluation import Evaluation


def random_pairs(count, d=9, seed=4):
    """Return pairs of a quadratic, so that all have a positive product; and a gradient and P."""
    random = np.random.default_rng(seed)
    H = random_spd(random, d)
    steps = random.normal(size=(count, d))
    return [(s, H @ s) for s in steps], random.normal(size=d), random.uniform(0.5, 5, d)


def remember(pairs):
    memory = Memory.empty(pairs[0][0])
    for s, y in pairs:
        memory.add(Pair.of(s, y))
    return memory


def two_loop_recursion(pairs, g, P):
    """Return the inverse L-BFGS matrix times g: Nocedal and Wright, algorithm 7.4."""
    q, alphas = g.copy(), []
    for s, y in reversed(pairs):
        alphas.append(s @ q / (s @ y))
        q -= alphas[-1] * y
    s, y = pairs[-1]
    r = s @ y / (y @ (y / P)) * q / P
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        r += s * (alpha - y @ r / (s @ y))
    return r


# one pair, some, a full buffer, and buffers that were overwritten once and twice
@pytest.mark.parametrize("count", [1, 5, PAIRS, PAIRS + 3, 2 * PAIRS + 7])
def test_the_direction_is_that_of_the_two_loop_recursion(count):
    pairs, g, P = random_pairs(count)
    found = direction(remember(pairs), g, P, pairs[-1][0])
    np.testing.assert_allclose(found.p, two_loop_recursion(pairs[-PAIRS:], g, P), rtol=1e-8)
    assert found.slope == pytest.approx(g @ found.p)


def test_the_direction_is_that_of_the_inverse_matrix():
    pairs, g, P = random_pairs(6)
    s, y = pairs[-1]
    eta = s @ y / (y @ (y / P))
    found = direction(remember(pairs), g, P, s)
    np.testing.assert_allclose(found.p, inverse_bfgs(pairs, np.diag(eta / P)) @ g, rtol=1e-9)
    assert found.eta == pytest.approx(eta)


def test_without_pairs_the_direction_is_the_scaled_gradient():
    _, g, P = random_pairs(1)
    found = direction(Memory.empty(g), g, P, 0 * g)
    np.testing.assert_allclose(found.p, g / P, rtol=1e-15)
    assert (found.eta, found.gamma) == (1, 0)


def test_pairs_without_positive_curvature_are_left_out():
    """Their rows are empty: the direction is that of the other pairs."""
    pairs, g, P = random_pairs(6)
    s, y = pairs[2]
    negative = [*pairs[:2], (s, -y), *pairs[3:]]
    found = direction(remember(negative), g, P, pairs[-1][0])
    others = pairs[:2] + pairs[3:]
    np.testing.assert_allclose(found.p, two_loop_recursion(others, g, P), rtol=1e-9)


def test_after_a_step_without_curvature_the_next_one_is_longer():
    pairs, g, P = random_pairs(4)
    last = 100 * pairs[-1][0]
    memory = remember([*pairs, (last, -last)])
    assert memory.is_flat
    found = direction(memory, g, P, last)
    expected = two_loop_recursion(pairs, g, P)
    length = np.sqrt(P @ last**2)
    assert np.sqrt(P @ expected**2) < length
    np.testing.assert_allclose(
        found.p / np.sqrt(P @ found.p**2), expected / np.sqrt(P @ expected**2)
    )
    assert np.sqrt(P @ found.p**2) == pytest.approx(GROWTH * length)


def test_the_last_pair_may_be_overwritten_by_steps_without_curvature():
    pairs, g, P = random_pairs(1)
    memory = remember(pairs)
    for _ in range(PAIRS):
        memory.add(Pair.of(g, -g))
    found = direction(memory, g, P, 0 * g)
    np.testing.assert_allclose(found.p, g / P)


@pytest.mark.parametrize("count", [3, 9])
def test_probes_are_pairs(count):
    pairs, g, P = random_pairs(count)
    s, y = pairs[1]
    pairs[1] = s, -y  # is left out
    probes = Probes(np.array([s for s, _ in pairs]), np.array([y for _, y in pairs]))
    found = direction(Memory.of_probes(g, probes), g, P, 0 * g)
    used = [pairs[0], *pairs[2:]]
    np.testing.assert_allclose(found.p, two_loop_recursion(used, g, P), rtol=1e-9)


def test_the_memory_of_long_vectors_has_fewer_pairs():
    assert len(Memory.empty(np.zeros(9_999)).steps) == PAIRS
    assert len(Memory.empty(np.zeros(10_000)).steps) == 11


# ---------------------------------------------------------------- the preconditioner


def test_the_secant_diagonal_is_that_of_the_bfgs_matrix():
    pairs, _, D_before = random_pairs(1)
    s, y = pairs[0]
    D = D_before * (y @ np.diag(1 / D_before) @ y) / (s @ y)
    B = np.diag(D) - np.outer(D * s, D * s) / (s @ (D * s)) + np.outer(y, y) / (s @ y)
    assert np.diag(B).min() > 0
    np.testing.assert_allclose(secant_diagonal(D_before, Pair.of(s, y)), np.diag(B), rtol=1e-12)
    assert secant_diagonal(D_before, Pair.of(s, -y)) is D_before


def test_the_first_step_moves_coordinates_by_a_tenth_at_most():
    x, g = np.array([1.0, -20.0, 0.0]), np.array([3.0, 5.0, 0.001])
    step = first_step(x, g)
    sizes = np.maximum(abs(x), 1e-3 * np.sqrt(np.mean(x**2)))
    assert np.max(abs(step) / sizes) == pytest.approx(0.1)
    np.testing.assert_allclose(step / g, step[0] / g[0])
    assert np.linalg.norm(first_step(0 * x, g)) == pytest.approx(1)


# ------------------------------------------------------------------ the pair of a step


def evaluation_on(polynomial, t):
    """Return the evaluation at x = t (1, 2) of a polynomial in <x, (1, 2)>."""
    x, v = t * np.array([1.0, 2.0]), np.array([1.0, 2.0])
    return Evaluation(x, np.float64(polynomial(x @ v)), polynomial.deriv()(x @ v) * v)


@pytest.mark.every_case
@pytest.mark.parametrize("coefficients", [[3.0, -1.0, 2.0, 0.0], [1.0, -1.0, 2.0, 0.7]])
def test_a_pair_has_the_curvature_at_the_end_of_its_step(coefficients):
    """On cubics, and so on quadratics, it is exact."""
    f = np.polynomial.Polynomial(coefficients)
    old, new = evaluation_on(f, 0.1), evaluation_on(f, 0.7)
    pair, plain = Pair.between(old, new), Pair.of(new.x - old.x, new.gradient - old.gradient)
    along = (new.x - old.x) @ np.array([1.0, 2.0])
    assert pair.product == pytest.approx(f.deriv(2)(0.7 * 5) * along**2)
    np.testing.assert_allclose(pair.change / plain.change, pair.product / plain.product)
    assert pair.product == pytest.approx(pair.step @ pair.change)
    assert pair.change2 == pytest.approx(pair.change @ pair.change)


def test_a_pair_at_a_concave_end_keeps_a_positive_curvature():
    f = np.polynomial.Polynomial([0.0, -1.0, 4.0, -0.5])  # concave from 8/3 on
    old, new = evaluation_on(f, 0.0), evaluation_on(f, 0.56)
    plain = Pair.of(new.x - old.x, new.gradient - old.gradient)
    assert f.deriv(2)(2.8) < 0 < plain.product
    assert Pair.between(old, new).product == pytest.approx(plain.product / 10)


def test_values_say_nothing_of_a_pair_where_they_hardly_change():
    """The curvature along the step is 0.7e-5 of f; at the end it is a tenth larger."""
    f = np.polynomial.Polynomial([1e5, 1.0, 2.0, 0.7])
    old, new = evaluation_on(f, 0.1), evaluation_on(f, 0.166)
    plain = Pair.of(new.x - old.x, new.gradient - old.gradient)
    np.testing.assert_array_equal(Pair.between(old, new).change, plain.change)
