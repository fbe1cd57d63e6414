"""Figure 1 of the paper: the adaptive terminal reaches the minimum in four iterations."""

import numpy as np
import pytest

import cfgd
from problems import FIGURE1, do_nothing, identity, lagged, reference_iterates


def errors_on_figure1(method, iterations):
    solution = cfgd.minimize(
        FIGURE1.objective,
        FIGURE1.x0,
        method,
        max_iterations=iterations,
        tolerance=0,
        record={"x": identity},
        callback=do_nothing,
    )
    return solution, np.linalg.norm(solution.history["x"], axis=1)


def figure1(past):
    return cfgd.AdaptiveTerminal(gamma=-1.0, past=[past])


def test_figure1():
    _, errors = errors_on_figure1(figure1((-1.0, -1.0)), 4)
    assert errors[4] <= 1e-12
    assert errors[3] > 1
    _, errors = errors_on_figure1(cfgd.GradientDescent(), 4)
    assert errors[4] > 1


ITERATIONS_TO_1E_12 = {(-1.0, -1.0): 4, (-1.0, -1.01): 20, (-2.0, -1.0): 43, (0.3, -0.7): 83}


@pytest.mark.one_case
@pytest.mark.parametrize(
    ("past", "iterations"), ITERATIONS_TO_1E_12.items(), ids=map(str, ITERATIONS_TO_1E_12)
)
def test_figure1_depends_on_its_past(past, iterations):
    _, errors = errors_on_figure1(figure1(past), iterations + 1)
    assert np.argmax(errors <= 1e-12) == iterations


@pytest.mark.slow
def test_figure1_from_a_past_at_the_minimiser():
    """There d = 0 although the gradient is not: without a reset the iteration would not move."""
    solution, errors = errors_on_figure1(figure1((0.0, 0.0)), 200)
    assert errors.min() <= 1e-12
    assert solution.resets > 0


def test_the_first_step_of_figure1_is_negative():
    solution, _ = errors_on_figure1(figure1((-1.0, -1.0)), 4)
    x0, x1 = solution.history["x"][:2]
    d = FIGURE1.A @ np.array([-1.0, -1.0])  # gamma = -1, separable: the gradient at the terminal
    eta = (x0 - x1) @ d / (d @ d)
    np.testing.assert_allclose(x0 - x1, eta * d, rtol=1e-12)
    np.testing.assert_allclose(eta, FIGURE1.x0 @ FIGURE1.A @ d / (d @ FIGURE1.A @ d), rtol=1e-12)
    assert eta < 0


def test_erratum_1():
    """With the square root of a_jj, as printed, the loss is still 1.5 after four iterations."""
    row, root = lagged(1, -1.0, np.array([[-1.0, -1.0]])), np.sqrt(np.diag(FIGURE1.A))
    printed = reference_iterates(FIGURE1, row, None, 4, diagonal=root)[-1]
    assert 1.4 < FIGURE1.value(printed) < 1.6
    assert FIGURE1.value(reference_iterates(FIGURE1, row, None, 4)[-1]) < 1e-24
