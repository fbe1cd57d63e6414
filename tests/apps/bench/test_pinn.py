"""Physics-informed networks: equations, reference solutions, the clock, and a run."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from cfgd.apps.bench.field import pinn, pinn_references, pinn_solvers, pinn_trace
from cfgd.apps.bench.field.instance import AUTO, TracePoint
from cfgd.apps.bench.field.pinn_figure import median_curve
from cfgd.apps.bench.field.pinn_network import (
    PinnProblem,
    Term,
    count_weights,
    derivatives,
    tanh_network,
)
from cfgd.apps.bench.field.pinn_problems import MAKERS, VISCOSITY, problem
from cfgd.apps.bench.field.timing import TimeLimitError
from problems import few

# ---------------------------------------------------------------------- reference solutions


def test_burgers_by_cole_and_hopf_is_burgers_by_fourier():
    times, x = np.array([0.2, 0.5, 1.0]), pinn_references.grid(64)
    viscosity = 10 * VISCOSITY  # smooth: few points are enough
    ours = pinn_references.burgers(x, times[:, None], viscosity)
    other = pinn_references.burgers_by_fourier(times, viscosity, 256, 500)
    np.testing.assert_allclose(ours, other[:, ::4], atol=1e-8)


@pytest.mark.slow
def test_burgers_with_a_front_by_both_methods():
    times, x = np.array([0.4, 1.0]), pinn_references.grid(256)
    ours = pinn_references.burgers(x, times[:, None], VISCOSITY)
    other = pinn_references.burgers_by_fourier(times, VISCOSITY, 2048, 8000)
    np.testing.assert_allclose(ours, other[:, ::8], atol=1e-9)


def test_allen_cahn_is_the_solution_by_finite_differences():
    """The lines method with second differences does not share the code."""
    points, times = 200, np.array([0.0, 0.5, 1.0])
    x = pinn_references.grid(points)

    def slope(t, u):
        second = (np.roll(u, 1) - 2 * u + np.roll(u, -1)) / (2 / points) ** 2
        return 1e-4 * second + 5 * (u - u**3)

    lines = scipy.integrate.solve_ivp(
        slope, (0, 1), x**2 * np.cos(np.pi * x), "LSODA", times, rtol=1e-8, atol=1e-8
    )
    found = pinn_references.allen_cahn(times, 2 * points, 200)[:, ::2]
    # the second differences are wrong by some percent of a front of a few points
    assert np.linalg.norm(found - lines.y.T) <= 5e-3 * np.linalg.norm(found)


def test_korteweg_de_vries_moves_a_soliton():
    x, times, speed = pinn_references.grid(256), np.array([0.0, 0.25, 0.5]), 1.0

    def soliton(t):
        z = (x - speed * t + 0.25) / np.sqrt(4 * pinn_references.KDV_DISPERSION / speed)
        return 3 * speed / np.cosh(z) ** 2

    found = pinn_references.korteweg_de_vries_from(soliton(0), times, 1000)
    np.testing.assert_allclose(found, [soliton(t) for t in times], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["allen_cahn", "korteweg_de_vries"])
def test_reference_does_not_depend_on_its_resolution(name):
    solve, times = getattr(pinn_references, name), np.array([0.25, 1.0])
    coarse, fine = solve(times, 512, 500), solve(times, 1024, 1000)[:, ::2]
    assert np.linalg.norm(coarse - fine) <= 1e-4 * np.linalg.norm(fine)


# ---------------------------------------------------------------------- equations


def shifted(u, point, order):
    """Return a central difference of an order in each coordinate."""
    h = 1e-3
    stencil = {
        0: {0: 1.0},
        1: {-1: -0.5, 1: 0.5},
        2: {-1: 1.0, 0: -2.0, 1: 1.0},
        3: {-2: -0.5, -1: 1.0, 1: -1.0, 2: 0.5},
    }
    total = 0.0
    for moves in itertools.product(*(stencil[k].items() for k in order)):
        weight = np.prod([w for _, w in moves])
        total += weight * float(u(*(c + h * i for c, (i, _) in zip(point, moves, strict=True))))
    return total / h ** sum(order)


def laplace(u, p, q):
    return shifted(u, (p, q), (2, 0)) + shifted(u, (p, q), (0, 2))


# Left sides minus right sides, with the sources derived by hand.
EQUATIONS = {
    "Poisson 1-D": lambda u, x: (
        shifted(u, (x,), (2,))
        + np.pi**2 * np.sin(np.pi * x)
        + 6.25 * np.pi**2 * np.sin(5 * np.pi * x)
    ),
    "Poisson 2-D": lambda u, x, y: (
        laplace(u, x, y)
        - np.exp(-x * y)
        * (
            (x**2 + y**2 - 2 * np.pi**2) * np.sin(np.pi * x) * np.sin(np.pi * y)
            - 2 * np.pi * y * np.cos(np.pi * x) * np.sin(np.pi * y)
            - 2 * np.pi * x * np.sin(np.pi * x) * np.cos(np.pi * y)
        )
    ),
    "Helmholtz": lambda u, x, y: (
        laplace(u, x, y) + u(x, y) - (1 - 17 * np.pi**2) * np.sin(np.pi * x) * np.sin(4 * np.pi * y)
    ),
    "Burgers": lambda u, x, t: (
        shifted(u, (x, t), (0, 1))
        + u(x, t) * shifted(u, (x, t), (1, 0))
        - 0.01 / np.pi * shifted(u, (x, t), (2, 0))
    ),
    "Allen-Cahn": lambda u, x, t: (
        shifted(u, (x, t), (0, 1))
        - 1e-4 * shifted(u, (x, t), (2, 0))
        + 5 * u(x, t) ** 3
        - 5 * u(x, t)
    ),
    "Korteweg-de Vries": lambda u, x, t: (
        shifted(u, (x, t), (0, 1))
        + u(x, t) * shifted(u, (x, t), (1, 0))
        + 0.0025 * shifted(u, (x, t), (3, 0))
    ),
    # the coefficients begin at 0 and -6
    "inverse Burgers": lambda u, x, t: (
        shifted(u, (x, t), (0, 1)) - np.exp(-6) * shifted(u, (x, t), (2, 0))
    ),
}


def numpy_network(one, p):
    """Return the network of a problem in NumPy, with its inputs written out."""
    periodic = one.layers[0] == 3

    def u(*point):
        h = np.array(point, float)
        if len(point) == 2 and one.name not in ("Poisson 2-D", "Helmholtz"):
            h[1] = 2 * h[1] - 1
        if periodic:
            h = np.array([np.cos(np.pi * h[0]), np.sin(np.pi * h[0]), h[1]])
        at = 0
        for layer, (a, b) in enumerate(itertools.pairwise(one.layers)):
            h = h @ p[at : at + a * b].reshape(a, b) + p[at + a * b : at + a * b + b]
            at += a * b + b
            h = np.tanh(h) if layer < len(one.layers) - 2 else h
        return h[0]

    return u


@pytest.mark.parametrize("name", few(MAKERS, 1))
def test_residual_of_an_equation_is_that_of_finite_differences(name):
    one = problem(name)
    p, term = one.x0(3), one.terms[0]
    u = numpy_network(one, p)
    points = np.random.default_rng(0).uniform(0.1, 0.9, (4, len(term.samples)))
    with jax.enable_x64(True):
        residual, network = jax.jit(term.fn), jax.jit(one.network)
        for point in points:
            assert float(network(p, *point)) == pytest.approx(u(*point), rel=1e-12, abs=1e-12)
            wanted = EQUATIONS[name](u, *point)
            assert float(residual(p, *point)) == pytest.approx(wanted, rel=1e-4, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_a_problem_has_500_to_5000_weights_and_its_reference(name):
    one = problem(name)
    x0 = one.x0(0)
    assert 500 <= len(x0) <= 5000
    assert len(x0) == count_weights(one.layers) + len(one.coefficients)
    np.testing.assert_array_equal(x0, one.x0(0))
    assert np.any(x0 != one.x0(1))
    assert all(len(part) == one.reference.size for part in one.points)
    assert np.all(np.isfinite(one.reference))
    assert 0.5 < np.abs(one.reference).max() < 3
    assert 0.1 < one.error(x0) < 10


def test_conditions_of_a_problem_hold_for_its_reference():
    """The initial values of the terms are those of the reference solutions."""
    x = pinn_references.grid(128)
    for name, start in (("allen_cahn", x**2 * np.cos(np.pi * x)),):
        np.testing.assert_allclose(
            getattr(pinn_references, name)(np.zeros(1), 128, 10)[0], start, atol=1e-12
        )
    np.testing.assert_allclose(
        pinn_references.burgers(x, np.full(1, 1e-6), VISCOSITY), -np.sin(np.pi * x), atol=1e-4
    )


@pytest.mark.slow
def test_derivatives_of_all_orders():
    found = derivatives(lambda x: jnp.sin(2 * x), jnp.float32(0.3), 3)
    wanted = [np.sin(0.6), 2 * np.cos(0.6), -4 * np.sin(0.6), -8 * np.cos(0.6)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


# ---------------------------------------------------------------------- a small problem


def line_problem():
    """u' = 2 x with u(0) = 1 on five points, three neurons, and two terms of unequal weight."""
    layers = (1, 3, 1)
    network = tanh_network(layers)

    def u(p, x):
        return network(p, jnp.stack([x]))

    def equation(p, x):
        return derivatives(lambda x: u(p, x), x, 1)[1] - 2 * x

    def initial(p, x, value):
        return u(p, x) - value

    x = np.linspace(0, 1, 5)
    terms = (
        Term("equation", equation, (x,)),
        Term("initial", initial, (np.zeros(1), np.ones(1)), 7.0),
    )
    return PinnProblem("line", layers, u, terms, (x,), x**2 + 1)


@pytest.fixture(scope="module")
def line():
    return line_problem()


def test_loss_is_half_the_weighted_means_of_squares(line):
    p = line.x0(0)
    a, b, c, d = p[:3], p[3:6], p[6:9], p[9]
    x = line.points[0]
    z = np.tanh(np.outer(x, a) + b)
    equation = ((1 - z**2) * a) @ c - 2 * x
    initial = np.tanh(b) @ c + d - 1
    wanted = np.mean(equation**2) / 2 + 7 * initial**2 / 2
    value, gradient = line.value_and_gradient(p)
    assert value == pytest.approx(wanted, rel=1e-12)
    r, jacobian = line.residuals_and_jacobian(p)
    np.testing.assert_allclose(line.residuals(p), r, rtol=1e-12)
    assert r @ r / 2 == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(jacobian.T @ r, gradient, rtol=1e-10, atol=1e-12)
    u = z @ c + d
    wanted = np.linalg.norm(u - line.reference) / np.linalg.norm(line.reference)
    assert line.error(p) == pytest.approx(wanted, rel=1e-12)
    # one bias of the output, one number of finite differences
    h = 1e-6 * np.eye(10)[4]
    slope = (line.value_and_gradient(p + h)[0] - line.value_and_gradient(p - h)[0]) / 2e-6
    assert gradient[4] == pytest.approx(slope, rel=1e-6)


@pytest.mark.slow
def test_objective_of_cfgd_is_the_loss(line):
    p = line.x0(1)
    objective = pinn_solvers.residuals_objective(line)
    value, gradient = line.value_and_gradient(p)
    assert float(objective.value(p)) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(objective.gradient(p), gradient, rtol=1e-9, atol=1e-12)


def ticking(monkeypatch, step):
    """Let each reading of the clock be `step` seconds later."""
    ticks = itertools.count()
    monkeypatch.setattr(pinn_trace.time, "perf_counter", lambda: step * next(ticks))


def test_trace_keeps_the_best_point_and_stops_in_time(monkeypatch):
    ticking(monkeypatch, 0.25)
    trace = pinn_trace.Trace(1.1)
    for value in (3.0, 1.0, 2.0, np.nan):
        trace.record(value, np.array([value]))
    with pytest.raises(TimeLimitError):
        trace.record(0.0, np.zeros(1))
    assert [(at, value) for at, value, _ in trace.points()] == [
        (0.25, 3.0),
        (0.5, 1.0),
        (0.75, 1.0),
        (1.0, 1.0),
        (1.1, 1.0),
    ]
    np.testing.assert_array_equal(trace.x, [1.0])


@pytest.mark.parametrize(
    "solver", [name for name in pinn_solvers.SOLVERS if name not in (AUTO, "the paper")]
)
def test_solver_reduces_loss_and_error_in_time(monkeypatch, line, solver):
    ticking(monkeypatch, 2e-3)
    monkeypatch.setattr(pinn, "problem", lambda name: line)
    monkeypatch.setattr(pinn, "SOLVERS", {solver: pinn_solvers.SOLVERS[solver]})
    (run,) = pinn.run_solvers("line", 0, 1.0, lambda solver: None)
    value, _ = line.value_and_gradient(line.x0(0))
    assert run.value < value / 1e3
    assert run.relative_error < 0.1
    assert run.history[-1] == TracePoint(1.0, run.value, run.relative_error)
    assert [point.value for point in run.history] == sorted(
        (point.value for point in run.history), reverse=True
    )
    assert (run.problem, run.measure, run.dimension) == ("line, 1 s", "relative error", 10)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [AUTO, "the paper"])
def test_methods_of_cfgd_reduce_the_loss_in_time(monkeypatch, line, solver):
    monkeypatch.setattr(pinn, "problem", lambda name: line)
    monkeypatch.setattr(pinn, "SOLVERS", {solver: pinn_solvers.SOLVERS[solver]})
    (run,) = pinn.run_solvers("line", 0, 5.0, lambda solver: None)
    value, _ = line.value_and_gradient(line.x0(0))
    assert run.value < value / (1e4 if solver == AUTO else 2)
    assert run.relative_error == run.history[-1].error


def test_curves_are_medians_of_what_was_last_recorded():
    first = (TracePoint(1.0, 8.0, 0.8), TracePoint(4.0, 2.0, 0.2))
    second = (TracePoint(2.0, 6.0, 0.6), TracePoint(4.0, 4.0, 0.4))
    times, errors = median_curve([first, second], "error")
    assert (times[0], times[-1]) == (2.0, 4.0)
    assert errors[0] == pytest.approx(0.7)
    assert errors[-1] == pytest.approx(0.3)
